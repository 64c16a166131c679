"""What a line costs the run: with a device its idle time counts, without one the interpreter's own time."""

from __future__ import annotations

import json
from pathlib import Path

from deepscope.analysis.build import build_profile
from deepscope.records import Line, Profile
from deepscope.trace.read import read_trace
from trace_builder import TraceBuilder


def profile_of(builder: TraceBuilder, folder: Path) -> Profile:
    return build_profile(read_trace(builder.write(folder / "t.pt.trace.json")))


def at(profile: Profile, line: int) -> Line:
    return next(row for row in profile.lines if row.line == line)


def test_python_time_is_what_operators_runtime_calls_and_inner_lines_leave_of_a_line(tmp_path: Path) -> None:
    trace = TraceBuilder()
    trace.line("a.py", 1, "main", 0, 1_000).op("aten::mm", 100, 300).op("aten::mm_out", 150, 100)  # 300 of 1,000
    trace.line("a.py", 5, "inner", 500, 200).op("aten::add", 550, 50)  # called from line 1
    profile = profile_of(trace, tmp_path)
    assert at(profile, 1).python_ns == 1_000 - 300 - 200
    assert at(profile, 5).python_ns == 200 - 50
    assert profile.metric == "cpu_self"
    assert [at(profile, n).cost_ns for n in (1, 5)] == [300 + 500, 50 + 150]
    assert sum(row.cost_ns for row in profile.lines) == 1_000, "the whole of the outer line, once"


def test_a_line_called_from_within_an_operator_is_taken_off_the_operator_not_twice_off_the_line(tmp_path: Path) -> None:
    trace = TraceBuilder()
    trace.line("a.py", 1, "main", 0, 1_000).op("MyFunction", 200, 600)
    trace.line("a.py", 9, "forward", 300, 400).op("aten::exp", 350, 100)
    profile = profile_of(trace, tmp_path)
    assert at(profile, 1).python_ns == 1_000 - 600
    assert at(profile, 9).python_ns == 400 - 100


def test_the_cost_of_recording_comes_off_python_time_and_never_below_nothing(tmp_path: Path) -> None:
    trace = TraceBuilder()
    trace.line("a.py", 1, "main", 0, 1_000).line("a.py", 2, "main", 1_000, 100)
    document = json.loads(trace.dumps())
    document["deepscope"]["lines"] = {"cost_ns": 250}
    path = tmp_path / "t.pt.trace.json"
    path.write_text(json.dumps(document))
    profile = build_profile(read_trace(path))
    assert [at(profile, n).python_ns for n in (1, 2)] == [750, 0]


def with_account(trace: TraceBuilder, folder: Path, **account: float) -> Profile:
    document = json.loads(trace.dumps())
    document["deepscope"]["lines"] = account
    path = folder / "t.pt.trace.json"
    path.write_text(json.dumps(document))
    return build_profile(read_trace(path))


def test_what_a_mark_tells_comes_off_all_runs_of_its_line_in_its_step(tmp_path: Path) -> None:
    trace = TraceBuilder()
    trace.step(1, 0, 1_000).step(2, 1_000, 1_000)
    trace.line("a.py", 1, "main", 0, 300).line("a.py", 1, "main", 400, 300).line("a.py", 1, "main", 1_000, 300)
    trace.event("python_recording", "@dr:450", 500, 1, recording_ns=450)
    profile = with_account(trace, tmp_path, cost_ns=1.0)
    assert at(profile, 1).python_ns == (600 - 450 - 2) + (300 - 1)
    assert at(profile, 1).recording_ns == 450 + 3


def test_torchs_recording_of_operators_comes_off_the_python_around_them(tmp_path: Path) -> None:
    trace = TraceBuilder()
    trace.line("a.py", 1, "main", 0, 1_000).op("aten::add", 100, 200).op("aten::to", 150, 100)
    profile = with_account(trace, tmp_path, cost_ns=10, operator_ns=50)
    assert at(profile, 1).python_ns == 800 - 10 - 2 * 50
    assert at(profile, 1).self_device_ns == 200


def test_what_lies_between_two_lines_of_a_function_is_its_callers(tmp_path: Path) -> None:
    trace = TraceBuilder()
    trace.line("a.py", 1, "main", 0, 100_000)
    for run in range(40):
        trace.line("a.py", 5 + run % 2, "work", 1_000 + run * 1_000, 900)
    profile = with_account(trace, tmp_path, cost_ns=300)
    assert at(profile, 1).python_ns == 100_000 - 40 * 900 - 40 * 100 - (300 - 100), "the gaps are 100 ns long"
    assert at(profile, 5).python_ns == 20 * (900 - (300 - 100))


def test_with_a_device_the_cost_is_device_time_and_blamed_idle_time(tmp_path: Path) -> None:
    trace = TraceBuilder()
    trace.step(1, 0, 1_000)
    trace.line("a.py", 1, "main", 0, 400).kernel("gemm", 100, 200, 300)  # busy 200-500
    trace.line("a.py", 2, "main", 400, 600).op("aten::mm", 450, 100)  # the device idles 0-200 and 500-1000
    profile = profile_of(trace, tmp_path)
    assert (at(profile, 1).self_device_ns, at(profile, 1).idle_ns, at(profile, 1).cost_ns) == (300, 200, 500)
    assert (at(profile, 2).self_device_ns, at(profile, 2).idle_ns, at(profile, 2).cost_ns) == (0, 500, 500)
    costs = sum(row.cost_ns for row in profile.lines) + profile.no_line.cost_ns
    assert costs == profile.totals.device_ns + profile.totals.idle_ns == profile.totals.wall_ns

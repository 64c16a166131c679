"""A line that recording slowed so much that its time is an estimate: it says so, and nothing is concluded from it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from deepscope.analysis.build import build_profile
from deepscope.analysis.numbers.recording_cost import is_slowed as is_lines_slowed
from deepscope.analysis.verdict import judge
from deepscope.comparison import compare
from deepscope.records import Line, Profile
from deepscope.report.line_verdict import why_words
from deepscope.trace.format.header import LineAccount
from deepscope.trace.read import read_trace
from trace_builder import TraceBuilder

MS = 1_000_000


def profile_of(folder: Path, marked_ns: int, *, backend: str = "settrace", spent_ns: int = 70 * MS) -> Profile:
    """Two steps whose second line took `spent_ns` each, `marked_ns` of it for recording."""
    trace = TraceBuilder()
    for number in (1, 2):
        start = number * 100 * MS
        trace.step(number, start, 100 * MS)
        trace.line("a.py", 1, "main", start, 20 * MS).op("aten::mm", start + MS, 19 * MS)
        trace.line("a.py", 2, "main", start + 20 * MS, spent_ns)
        trace.event("python_recording", f"@dr:{marked_ns}", start + 30 * MS, 1, recording_ns=marked_ns)
    document = json.loads(trace.dumps())
    document["deepscope"]["lines"] = {"backend": backend}
    path = folder / f"{marked_ns}.pt.trace.json"
    path.write_text(json.dumps(document))
    profile = build_profile(read_trace(path))
    judge(profile, None)
    return profile


def second(profile: Profile) -> Line:
    return next(line for line in profile.lines if line.line == 2)


@pytest.mark.parametrize(
    ("marked_ms", "backend", "is_slowed"),
    [
        (60, "settrace", True),
        (60, "monitoring", True),
        (0, "settrace", False),
        (30, "settrace", False),  # less than what is left
        (6, "settrace", False),
    ],
)
def test_a_line_is_slowed_where_its_time_is_mostly_an_estimate(
    marked_ms: int, backend: str, is_slowed: bool, tmp_path: Path
) -> None:
    line = second(profile_of(tmp_path, marked_ms * MS, backend=backend))
    assert line.python_ns == 2 * (70 - marked_ms) * MS
    assert line.slowed is is_slowed
    assert (line.verdict == "slowed by recording") is is_slowed
    assert why_words(line, None, on_device=False).startswith("slowed by recording") is is_slowed


def test_small_costs_are_known_well_enough(tmp_path: Path) -> None:
    assert not second(profile_of(tmp_path, 7 * MS, spent_ns=8 * MS)).slowed
    assert not second(profile_of(tmp_path, 15 * MS, spent_ns=16 * MS, backend="monitoring")).slowed


@pytest.mark.parametrize(
    ("python_ms", "backend", "is_slowed"), [(5, "settrace", True), (3, "settrace", False), (50, "monitoring", False)]
)
def test_lowered_python_under_settrace_is_slower_than_any_hook_knows(
    python_ms: int, backend: str, is_slowed: bool
) -> None:
    lines = LineAccount(backend=backend, slowdown=4)
    assert is_lines_slowed(0, python_ms * MS, 0, 1, lines, is_all_python=True) is is_slowed
    assert not is_lines_slowed(0, python_ms * MS, 0, 1, lines)


@pytest.mark.parametrize(
    ("slowdown", "recording_ms", "operators_ms", "is_slowed"),
    [
        (4, 28, 0, True),  # as much recording as Python: small calls, each with a hook
        (1, 28, 0, False),
        (4, 2, 0, False),  # few hooks: a long call of C
        (4, 28, 50, False),  # mostly operators
    ],
)
def test_python_between_hooks_of_settrace_is_slower_than_the_hooks_know(
    slowdown: float, recording_ms: int, operators_ms: int, is_slowed: bool
) -> None:
    lines = LineAccount(backend="settrace", slowdown=slowdown)
    assert is_lines_slowed(recording_ms * MS, 40 * MS, operators_ms * MS, 1, lines) is is_slowed


@pytest.mark.parametrize(("backend", "is_slowed"), [("settrace", True), ("monitoring", False)])
def test_a_comprehension_before_python_3_12_is_slowed_without_any_hook(
    backend: str, is_slowed: bool, tmp_path: Path
) -> None:
    trace = TraceBuilder()
    trace.step(1, 0, 100 * MS)
    trace.line("a.py", 2, "main", 10 * MS, 70 * MS)
    trace.line("a.py", 2, "main.<locals>.<listcomp>", 20 * MS, 50 * MS)
    document = json.loads(trace.dumps())
    document["deepscope"]["lines"] = {"backend": backend}
    path = tmp_path / "rank0.pt.trace.json"
    path.write_text(json.dumps(document))
    assert second(build_profile(read_trace(path))).slowed is is_slowed


def test_no_finding_names_a_cause_for_such_a_line(tmp_path: Path) -> None:
    assert any(one.line == 2 for one in profile_of(tmp_path, 0).findings)
    assert not any(one.line == 2 for one in profile_of(tmp_path, 60 * MS).findings)


def test_a_comparison_calls_its_difference_noise(tmp_path: Path) -> None:
    rows = {
        row.place.record.line: row
        for row in compare([profile_of(tmp_path, 0)], [profile_of(tmp_path, 60 * MS)]).rows
        if row.place
    }
    assert rows[2].within_noise
    assert rows[2].interval is None


def test_what_a_rank_does_itself_is_without_the_recording(tmp_path: Path) -> None:
    plain, slowed = (profile_of(tmp_path, ms * MS).own_times for ms in (0, 60))
    assert plain is not None
    assert slowed is not None
    assert sum(plain.wall_ns) - sum(slowed.wall_ns) == 2 * 60 * MS
    assert sum(row.python_ns for row in plain.lines) - sum(row.python_ns for row in slowed.lines) == 2 * 60 * MS


def python_ns_of(folder: Path, marked_ns: list[int], spent_ns: list[int], step: int | None = None) -> int:
    """Of a line that took `spent_ns` in each of as many steps, `marked_ns` of it for recording."""
    trace = TraceBuilder()
    for number, (marked, spent) in enumerate(zip(marked_ns, spent_ns, strict=True), 1):
        start = number * 100 * MS
        trace.step(number, start, 100 * MS).line("a.py", 2, "main", start, spent)
        if marked:
            trace.event("python_recording", f"@dr:{marked}", start + MS, 1, recording_ns=marked)
    document = json.loads(trace.dumps())
    document["deepscope"]["lines"] = {"backend": "monitoring"}
    path = folder / "one.pt.trace.json"
    path.write_text(json.dumps(document))
    (line,) = build_profile(read_trace(path), step=step).lines
    return line.python_ns


def test_a_step_in_which_a_line_was_lowered_counts_as_those_in_which_recording_cost_it_little(tmp_path: Path) -> None:
    assert python_ns_of(tmp_path, [19 * MS, 0, MS], [60 * MS, 4 * MS, 7 * MS]) == (5 + 4 + 6) * MS
    assert python_ns_of(tmp_path, [19 * MS, 0, MS], [60 * MS, 4 * MS, 7 * MS], step=1) == 5 * MS  # of a step, too
    assert python_ns_of(tmp_path, [19 * MS, 0, 0], [20 * MS, 4 * MS, 6 * MS]) == (1 + 4 + 6) * MS  # never more


def test_a_step_that_does_more_stays_longer_where_recording_cost_each_as_much(tmp_path: Path) -> None:
    assert python_ns_of(tmp_path, [30 * MS, 3 * MS, 3 * MS], [60 * MS, 6 * MS, 6 * MS]) == (30 + 3 + 3) * MS
    assert python_ns_of(tmp_path, [0, 0, 0], [60 * MS, 6 * MS, 6 * MS]) == 72 * MS

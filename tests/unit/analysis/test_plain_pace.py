"""The lines of a step take no longer than a plain step; what they lose is Python that recording slowed, and no more."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from deepscope.analysis.build import build_profile
from deepscope.records import Line, Profile
from deepscope.trace.read import read_trace
from trace_builder import TraceBuilder

MS = 1_000_000
Steps = Sequence[Mapping[str, float]]
"""For each step, milliseconds by kind of line, as they stand in it."""
LINES = {"comprehension": 1, "sorted": 2, "sleep": 3, "calls": 4, "other comprehension": 5, "operator": 6}


def times(cpu_ms: Sequence[float]) -> dict[str, Any]:
    spread = {"mean_ns": round(cpu_ms[1] * MS), "quartiles_ns": [round(one * MS) for one in cpu_ms]}
    return {"steps": 9, "wall": spread, "cpu": spread}


def profile_of(
    folder: Path,
    steps: Steps,
    plain_ms: Sequence[float] | None,
    *,
    hooks_ms: float = 0,
    backend: str = "settrace",
    step: int | None = None,
    **header: Any,
) -> Profile:
    """`hooks_ms` is what the hooks cost the line of calls in each step, a part of its time."""
    trace = TraceBuilder()
    for number, kinds in enumerate(steps, 1):
        at = start = number * 1000 * MS
        for kind, ms in kinds.items():
            length, line = round(ms * MS), LINES[kind]
            trace.line("a.py", line, "main", at, length)
            if kind.endswith("comprehension"):
                trace.line("a.py", line, "main.<locals>.<listcomp>", at + 1, length - 2)
            if kind == "sleep":
                trace.event("python_off_cpu", f"@do:{length}", at + length - 2, 1, off_cpu_ns=length)
            if kind == "operator":
                trace.op("aten::mm", at, length)
            if kind == "calls" and hooks_ms:
                hooks_ns = round(hooks_ms * MS)
                trace.event("python_recording", f"@dr:{hooks_ns}", at + 1, 1, recording_ns=hooks_ns)
            at += length
        trace.step(number, start, at - start)
    document = json.loads(trace.dumps())
    document["deepscope"] |= {"lines": {"backend": backend}, "machine": {"core_wait_ratio": 0.0}, **header}
    if plain_ms is not None:
        document["deepscope"]["plain_steps"] = times(plain_ms)
    path = folder / "rank0.pt.trace.json"
    path.write_text(json.dumps(document))
    return build_profile(read_trace(path), step=step)


def line_of(profile: Profile, kind: str) -> Line:
    return next(line for line in profile.lines if line.line == LINES[kind])


def ms_of(profile: Profile, kind: str) -> float:
    return line_of(profile, kind).python_ns / MS


def test_python_that_no_hook_sees_comes_out_at_the_pace_of_plain_steps(tmp_path: Path) -> None:
    profile = profile_of(tmp_path, 3 * [{"comprehension": 20}], (5.9, 6, 6.1))
    line = line_of(profile, "comprehension")
    assert line.python_ns == pytest.approx(3 * 6 * MS, abs=10)
    assert line.self_cpu_ns + line.recording_ns == 3 * 20 * MS
    assert not line.slowed
    assert profile.totals.recording_ns >= line.recording_ns


def test_a_line_of_code_in_c_keeps_its_time_and_one_that_sleeps_its_waiting(tmp_path: Path) -> None:
    kinds = {"sorted": 10, "comprehension": 20, "sleep": 50, "operator": 30}
    profile = profile_of(tmp_path, 3 * [kinds], (45, 46, 47))
    assert ms_of(profile, "sorted") == 3 * 10
    assert line_of(profile, "sleep").blocked_ns == 3 * 50 * MS
    assert line_of(profile, "operator").self_cpu_ns == 3 * 30 * MS
    assert ms_of(profile, "comprehension") == pytest.approx(3 * 6, abs=0.01)


def test_python_between_hooks_loses_no_more_than_may_have_run_there(tmp_path: Path) -> None:
    few = profile_of(tmp_path, 3 * [{"calls": 30}], (4, 5, 6), hooks_ms=1)
    assert ms_of(few, "calls") >= 3 * (30 - 1 - 3)
    many = profile_of(tmp_path, 3 * [{"calls": 30}], (4, 5, 6), hooks_ms=15)
    assert ms_of(many, "calls") == pytest.approx(3 * 5, abs=0.01)


def test_a_step_that_does_more_stays_longer(tmp_path: Path) -> None:
    profile = profile_of(tmp_path, [{"comprehension": ms} for ms in (20, 20, 20, 100)], (5.9, 6, 6.1))
    assert 3 * 6 + 100 * 0.1 < ms_of(profile, "comprehension") < 3 * 6 + 100 * 0.3


def test_a_step_alone_is_shown_as_within_the_whole(tmp_path: Path) -> None:
    steps = [{"comprehension": 20}, {"comprehension": 24}]
    whole = ms_of(profile_of(tmp_path, steps, (5.9, 6, 6.1)), "comprehension")
    parts = [ms_of(profile_of(tmp_path, steps, (5.9, 6, 6.1), step=number), "comprehension") for number in (1, 2)]
    assert sum(parts) == pytest.approx(whole, abs=0.01)


def test_hooks_that_cost_more_than_was_known_in_the_first_step_are_bounded_too(tmp_path: Path) -> None:
    steps = [{"calls": 200}, {"calls": 121}, {"calls": 121}, {"calls": 121}]
    assert ms_of(profile_of(tmp_path, steps, (4.8, 5, 5.2), hooks_ms=120), "calls") < 2 * 4 * 5


def test_a_busy_machine_is_no_slower_python(tmp_path: Path) -> None:
    profile = profile_of(tmp_path, 3 * [{"comprehension": 20}], (9, 10, 11), recorded_steps=times((10, 11, 12)))
    assert ms_of(profile, "comprehension") == 3 * 20


def test_of_two_kinds_that_may_differ_both_are_marked(tmp_path: Path) -> None:
    kinds = {"comprehension": 40, "other comprehension": 40}
    profile = profile_of(tmp_path, 3 * [kinds], (19, 20, 21))
    assert ms_of(profile, "comprehension") + ms_of(profile, "other comprehension") == pytest.approx(60, abs=0.01)
    assert line_of(profile, "comprehension").slowed
    assert line_of(profile, "other comprehension").slowed


@pytest.mark.parametrize(
    ("plain_ms", "more"),
    [
        (None, {}),
        ((5, 10, 30), {}),  # steps differ by more
        ((18, 19, 20), {}),
        ((5.9, 6, 6.1), {"machine": None}),  # nobody knows whether it waited
        ((5.9, 6, 6.1), {"configuration": {"record_shapes": True}}),  # operators take longer, too
    ],
)
def test_nothing_is_concluded_where_plain_steps_cannot_be_compared(
    plain_ms: Sequence[float] | None, more: dict[str, Any], tmp_path: Path
) -> None:
    assert ms_of(profile_of(tmp_path, 3 * [{"comprehension": 20}], plain_ms, **more), "comprehension") == 3 * 20


def test_a_lowered_line_runs_no_slower_under_monitoring(tmp_path: Path) -> None:
    profile = profile_of(tmp_path, 3 * [{"comprehension": 20}], (5.9, 6, 6.1), backend="monitoring")
    assert ms_of(profile, "comprehension") == 3 * 20


def test_lines_that_take_as_long_as_a_plain_step_are_not_slowed(tmp_path: Path) -> None:
    assert line_of(profile_of(tmp_path, 3 * [{"comprehension": 20}], None), "comprehension").slowed
    assert not line_of(profile_of(tmp_path, 3 * [{"comprehension": 20}], (18, 19, 20)), "comprehension").slowed


def test_what_the_rank_does_itself_loses_as_much(tmp_path: Path) -> None:
    steps = 3 * [{"operator": 5, "comprehension": 20}]
    before, after = (profile_of(tmp_path, steps, plain).own_times for plain in (None, (10.9, 11, 11.1)))
    assert before is not None
    assert after is not None
    lost_ns = sum(before.wall_ns) - sum(after.wall_ns)
    assert lost_ns == pytest.approx(3 * 14 * MS, abs=100)
    assert lost_ns == sum(row.python_ns for row in before.lines) - sum(row.python_ns for row in after.lines)


def test_what_steps_fall_short_of_plain_ones_was_no_cost_of_hooks(tmp_path: Path) -> None:
    steps = 3 * [{"calls": 80, "sorted": 5}]
    assert ms_of(profile_of(tmp_path, steps, None, hooks_ms=79), "calls") == 3
    profile = profile_of(tmp_path, steps, (20, 21, 22), hooks_ms=79)
    assert ms_of(profile, "calls") == pytest.approx(3 * 16, abs=0.01)
    assert ms_of(profile, "sorted") == 3 * 5
    assert not line_of(profile, "calls").slowed


def test_a_thread_that_may_wait_for_a_device_with_its_core_busy_gets_nothing_back_and_no_mark_lifted(
    tmp_path: Path,
) -> None:
    device = {"device": {"type": "cuda"}}
    short = profile_of(tmp_path, 3 * [{"calls": 80}], (20, 21, 22), hooks_ms=79, **device)
    assert ms_of(short, "calls") == 3
    assert line_of(profile_of(tmp_path, 3 * [{"comprehension": 20}], (18, 19, 20), **device), "comprehension").slowed
    beyond = profile_of(tmp_path, 3 * [{"comprehension": 20}], (5.9, 6, 6.1), **device)
    assert ms_of(beyond, "comprehension") == pytest.approx(3 * 6, abs=0.01)


def test_a_step_that_does_less_gets_no_more_back_than_the_others(tmp_path: Path) -> None:
    profiles = [
        profile_of(tmp_path, [{"calls": ms} for ms in each], (15, 16, 17), hooks_ms=79)
        for each in ((80,) * 3, (80, 80, 8))
    ]
    before, after = (ms_of(profile, "calls") for profile in profiles)
    assert before == pytest.approx(3 * 16, abs=0.01)
    assert after == pytest.approx(2 * 16 + 1.9, abs=0.1)


@pytest.mark.parametrize("plain_ms", [(30, 31, 32), (55, 56, 57), (140, 141, 142)])
def test_what_lines_lose_stands_with_the_recording_to_the_nanosecond(plain_ms: Sequence[float], tmp_path: Path) -> None:
    steps = [{"calls": 80, "comprehension": ms, "sorted": 3.3, "operator": 7} for ms in (20.1, 31.7, 19.9)]

    def measured_ns(plain: Sequence[float] | None) -> dict[int, int]:
        lines = profile_of(tmp_path, steps, plain, hooks_ms=71.3).lines
        return {line.line: line.self_cpu_ns + line.recording_ns for line in lines}

    assert measured_ns(plain_ms) == measured_ns(None)

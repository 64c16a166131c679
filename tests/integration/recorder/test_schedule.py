"""Which steps of a run are recorded, however short it is."""

from __future__ import annotations

import gc
import itertools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from deepscope.capture.machine_use import EndMemory
from deepscope.capture.notices import RecordingWarning
from deepscope.capture.options import RecordingOptions
from deepscope.capture.recorder import Recorder
from deepscope.capture.schedule import Plan, Schedule
from deepscope.capture.session import RecordingSession
from recorded import TESTS, load, step_names, steps


def test_the_schedule_chooses_the_steps(record: Callable[..., Recorder]) -> None:
    (path,) = record(8, skip_first=1, wait=1, warmup=1, active=2).traces
    assert step_names(path) == steps(3, 4)


def test_repeat_writes_a_file_for_each_cycle(record: Callable[..., Recorder]) -> None:
    traces = record(9, wait=1, warmup=1, active=1, repeat=2).traces
    assert [step_names(path) for path in traces] == [steps(2), steps(5)]
    assert [load(path)["deepscope"]["window"] for path in traces] == [0, 1]


def test_windows_follow_without_a_gap_where_there_is_no_wait_and_no_warmup(record: Callable[..., Recorder]) -> None:
    traces = record(4, wait=0, warmup=0, active=2, repeat=0).traces
    assert [step_names(path) for path in traces] == [steps(0, 1), steps(2, 3)]


def test_a_schedule_of_torch_takes_the_numbers_place(record: Callable[..., Recorder]) -> None:
    schedule = torch.profiler.schedule(wait=2, warmup=1, active=2, repeat=1)
    (path,) = record(6, schedule=schedule).traces
    assert step_names(path) == steps(3, 4)
    assert load(path)["deepscope"]["schedule"] is None


def test_without_a_schedule_all_is_recorded(record: Callable[..., Recorder]) -> None:
    (path,) = record(3, scheduled=False).traces
    assert step_names(path) == steps(0, 1, 2)


def test_a_block_without_steps_has_none_in_the_trace(tmp_path: Path) -> None:
    recorder = Recorder(RecordingSession(RecordingOptions(root=TESTS)), folder=tmp_path)
    recorder.start()
    torch.ones(3).sum()
    recorder.stop()
    recorder.wait()
    assert step_names(recorder.traces[0]) == []
    assert "aten::sum" in {event["name"] for event in load(recorder.traces[0])["traceEvents"]}


@pytest.mark.parametrize("total", [1, 2, 3, 4, 5])
def test_a_run_of_known_length_yields_a_trace_however_short(record: Callable[..., Recorder], total: int) -> None:
    (path,) = record(total, total_steps=total).traces
    assert step_names(path) == steps(*range(min(total - 1, 2), total))


@pytest.mark.parametrize(("count", "expected"), [(1, (0,)), (2, (0,)), (3, (2,)), (4, (2, 3))])
def test_a_run_of_unknown_length_yields_a_trace_however_short(
    record: Callable[..., Recorder], count: int, expected: tuple[int, ...]
) -> None:
    (path,) = record(count).traces
    assert step_names(path) == steps(*expected)
    assert load(path)["deepscope"]["window"] == 0


def test_a_schedule_of_torch_that_never_opens_gives_way_to_the_last_step(record: Callable[..., Recorder]) -> None:
    (path,) = record(2, total_steps=2, schedule=torch.profiler.schedule(wait=5, warmup=1, active=1)).traces
    assert step_names(path) == steps(1)


def test_the_first_step_is_kept_only_if_the_schedule_never_opens(record: Callable[..., Recorder]) -> None:
    assert len(record(6).traces) == 1


def test_a_run_that_ends_while_torch_warms_up_leaves_it_usable(record: Callable[..., Recorder]) -> None:
    record(2, total_steps=100)
    (path,) = record(5).traces
    assert step_names(path) == steps(2, 3, 4)


@pytest.mark.parametrize(
    ("options", "recorded"),
    [
        ({"wait": 0, "warmup": 0, "active": 5, "repeat": 2}, [steps(0, 1, 2), steps(5, 6, 7)]),
        ({"scheduled": False}, [steps(0, 1, 2)]),
    ],
    ids=["cycles", "whole"],
)
def test_a_window_ends_before_memory_is_too_short_to_end_it(
    record: Callable[..., Recorder], monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], recorded: list[list[str]]
) -> None:
    looks = itertools.count(1)  # one behind each step of a window
    monkeypatch.setattr(EndMemory, "shortage", lambda _: None if next(looks) % 3 else (4 << 30, 6 << 30))
    with pytest.warns(RecordingWarning, match="ends early, after 3 steps: torch may take 4GiB of memory to end it"):
        recorder = record(12, **options)
    assert [step_names(path) for path in recorder.traces] == recorded
    assert not any(load(path)["deepscope"]["complete"] for path in recorder.traces)
    assert recorder.is_stopped


def test_a_block_without_steps_ends_before_memory_is_too_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EndMemory, "shortage", lambda _: (4 << 30, 6 << 30))
    recorder = Recorder(RecordingSession(RecordingOptions(root=TESTS), name="job"), folder=tmp_path)
    calls, until = 0, time.monotonic() + 60

    def work() -> None:
        nonlocal calls
        while not recorder.is_stopped and time.monotonic() < until:
            torch.ones(3).sum()
            calls += 1
            time.sleep(0.001)  # few operators are read sooner

    recorder.start()
    with pytest.warns(RecordingWarning, match="the window ends early: torch may take 4GiB of memory"):
        work()
    torch.ones(3).sum()
    recorder.stop()
    recorder.wait()
    (path,) = recorder.traces
    assert not load(path)["deepscope"]["complete"]
    operators = [one["name"] for one in load(path)["traceEvents"] if one.get("cat") == "cpu_op"]
    assert operators.count("aten::ones") in {calls, calls - 1}


def test_a_reserve_that_is_not_needed_is_let_go_without_the_garbage_collector(tmp_path: Path) -> None:
    options = RecordingOptions(root=TESTS, wait=1, warmup=0)
    recorder = Recorder(RecordingSession(options), Plan(Schedule.of(options)), folder=tmp_path)
    gc.collect()
    gc.disable()
    try:
        before = _torch_profilers()
        recorder.start()
        recorder.expect(total_steps=10)
        assert _torch_profilers() == before
    finally:
        gc.enable()
        recorder.discard()


def _torch_profilers() -> int:
    kind = torch.autograd.profiler.profile
    return sum(type(one) is kind for one in gc.get_referrers(kind))

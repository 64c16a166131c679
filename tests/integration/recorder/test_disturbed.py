"""A torch profiler of the user's beside ours, before, within and across a window; Ctrl-C while a window ends."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.profiler import ProfilerAction, ProfilerActivity

import deepscope
from deepscope.capture.lines import LineRecorder
from deepscope.capture.notices import RecordingWarning
from deepscope.capture.session import Recording
from recorded import TESTS, load, scopes_of


def users(**options: Any) -> torch.profiler.profile:
    return torch.profiler.profile(activities=[ProfilerActivity.CPU], **options)


def additions(profiler: torch.profiler.profile) -> int:
    return sum(event.name == "aten::add" for event in profiler.events() or [])


def ours(folder: Path, **options: Any) -> Recording:
    return deepscope.profile(folder, root=TESTS, **options)


def add(times: int) -> None:
    for _ in range(times):
        torch.ones(3) + 1


@pytest.mark.parametrize("schedule", [{}, {"wait": 0, "warmup": 1, "active": 1}, {"wait": 1, "warmup": 1, "active": 1}])
def test_a_profiler_that_runs_already_is_left_alone(tmp_path: Path, schedule: dict[str, int]) -> None:
    recording = ours(tmp_path, **schedule)

    def run() -> None:
        with recording:
            for _ in range(4):
                add(1)
                recording.step()

    with users() as profiler:
        add(1)
        with pytest.warns(RecordingWarning, match="another torch profiler is running"):
            run()
        add(1)
    assert additions(profiler) == 6
    assert not recording.traces


def test_a_profiler_that_warms_up_is_left_alone(tmp_path: Path) -> None:
    plan = [ProfilerAction.WARMUP, ProfilerAction.WARMUP, ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE]
    counts: list[int] = []
    with users(schedule=plan.__getitem__, on_trace_ready=lambda done: counts.append(additions(done))) as profiler:
        with pytest.warns(RecordingWarning, match="another torch profiler is running"):
            ours(tmp_path)(add)(1)
        for _ in range(3):
            profiler.step()
            add(1)
    assert counts == [2]


@pytest.mark.parametrize("outlives", [False, True])
def test_a_window_ends_where_a_profiler_starts_within_it(tmp_path: Path, outlives: bool) -> None:
    recording, profiler = ours(tmp_path), users()

    @recording
    def run() -> None:
        add(1)
        profiler.start()
        add(2)
        if not outlives:
            profiler.stop()
            add(1)

    with pytest.warns(RecordingWarning, match="a torch profiler was started in a window") as warned:
        run()
    if outlives:
        add(2)
        profiler.stop()
    assert len(warned) == 1
    assert additions(profiler) == (4 if outlives else 2)
    (trace,) = recording.traces
    assert sum(event["name"] == "aten::add" for event in load(trace)["traceEvents"]) == 1
    assert load(trace)["deepscope"]["complete"] is False


def test_a_warm_up_ends_where_a_profiler_starts_within_it(tmp_path: Path) -> None:
    with ours(tmp_path, wait=0, warmup=1, active=1, total_steps=2) as recording:
        with pytest.warns(RecordingWarning, match="a torch profiler was started in a window"):
            profiler = users().__enter__()
        add(1)
        recording.step()
        add(1)
        profiler.stop()
    assert additions(profiler) == 2
    assert not recording.traces


def test_torch_is_as_it_was_after_a_window(tmp_path: Path) -> None:
    before = torch.autograd.profiler._prepare_profiler
    with ours(tmp_path):
        assert torch.autograd.profiler._prepare_profiler is not before
    with ours(tmp_path, wait=0, warmup=1, active=1, total_steps=5):
        add(1)
    assert torch.autograd.profiler._prepare_profiler is before


@pytest.fixture
def python_ctrl_c() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("moment", ["start", "stop"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_ctrl_c_while_a_window_is_switched_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, python_ctrl_c: None, moment: str, when: str
) -> None:
    original: Callable[[LineRecorder], Any] = getattr(LineRecorder, moment)

    def interrupted(self: LineRecorder) -> Any:
        if when == "before":
            signal.raise_signal(signal.SIGINT)
        answer = original(self)
        if when == "after":
            signal.raise_signal(signal.SIGINT)
        return answer

    monkeypatch.setattr(LineRecorder, moment, interrupted)
    recording = ours(tmp_path)

    def run() -> None:
        recording.start()
        add(1)
        recording.stop()

    with pytest.raises(KeyboardInterrupt):
        run()
    monkeypatch.undo()
    with ours(tmp_path / "next"):  # which says so where another one is open
        add(1)
    recording._recorder.wait()
    (trace,) = recording.traces
    assert scopes_of(trace)
    assert load(trace)["deepscope"]["complete"] is (moment == "stop")


def test_a_trace_without_lines_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError("no")

    monkeypatch.setattr("deepscope.capture.lines.recorder._Window", refuse)
    recording = ours(tmp_path)
    with pytest.warns(RecordingWarning, match="lines are not recorded: OSError: no") as warned:
        recording(add)(1)
    assert len(warned) == 1
    assert load(recording.traces[0])["deepscope"]["lines"]["warnings"] == ["lines are not recorded: OSError: no"]


@pytest.mark.parametrize("modules", [True, False])
def test_modules_are_recorded_without_lines(tmp_path: Path, modules: bool) -> None:
    with ours(tmp_path, lines=False, modules=modules) as recording:
        torch.nn.Linear(3, 3)(torch.ones(3))
    kinds = [scope[0] for scope in load(recording.traces[0])["deepscope"]["scopes"]]
    assert kinds == ([1] if modules else [])

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
from deepscope.capture.recording import Recording
from recorded import TESTS, load, run_python, scopes_of


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
    recording.stop()  # waits for the files; there is nothing else left to stop
    (trace,) = recording.traces
    assert scopes_of(trace)
    assert load(trace)["deepscope"]["complete"] is (moment == "stop")


def test_a_trace_without_lines_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError("no")

    monkeypatch.setattr("deepscope.capture.lines.recorder.make_hooks", refuse)
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


class Preempted(Exception):
    pass


def test_an_exception_of_the_users_signal_handler_reaches_the_user_while_a_window_is_switched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def preempt(*_: object) -> None:
        raise Preempted

    original = LineRecorder.stop

    def told_to_end(self: LineRecorder) -> Any:
        signal.raise_signal(signal.SIGTERM)
        return original(self)

    monkeypatch.setattr(LineRecorder, "stop", told_to_end)
    before = signal.signal(signal.SIGTERM, preempt)
    recording = ours(tmp_path, wait=0, warmup=0, active=1)
    try:
        recording.start()
        add(1)
        with pytest.raises(Preempted):
            recording.step()
    finally:
        signal.signal(signal.SIGTERM, before)
    recording.stop()
    assert len(recording.traces) == 1


TERMINATED = """
    import os, signal, sys, torch, deepscope
    {before}
    with deepscope.profile({folder!r}, root={root!r}{options}) as prof:
        for step in range(6):
            torch.ones(3).sum()
            if step == 3:
                os.kill(os.getpid(), signal.SIGTERM)
            prof.step()
    print("went on")
"""


@pytest.mark.parametrize("options", ["", ", wait=1, active=9"])
def test_a_run_that_is_told_to_end_keeps_its_window_and_ends(tmp_path: Path, options: str) -> None:
    program = TERMINATED.format(before="", folder=str(tmp_path), root=str(TESTS), options=options)
    done = run_python(program)
    assert (done.returncode, done.stdout) == (-signal.SIGTERM, ""), done.stderr
    (trace,) = tmp_path.glob("*.pt.trace.json.gz")
    assert load(trace)["deepscope"]["complete"] is False
    assert "aten::sum" in {event["name"] for event in load(trace)["traceEvents"]}


def test_a_handler_of_the_users_own_for_sigterm_is_the_only_one(tmp_path: Path) -> None:
    before = "mine = lambda *_: print('mine'); signal.signal(signal.SIGTERM, mine)"
    program = TERMINATED.format(before=before, folder=str(tmp_path), root=str(TESTS), options="")
    done = run_python(program)
    assert (done.returncode, done.stdout) == (0, "mine\nwent on\n"), done.stderr
    (trace,) = tmp_path.glob("*.pt.trace.json.gz")
    assert load(trace)["deepscope"]["complete"] is True


@pytest.fixture
def _default_sigterm() -> Iterator[None]:
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("_default_sigterm")
def test_sigterm_does_again_what_it_did_before_once_the_window_is_saved(tmp_path: Path) -> None:
    with ours(tmp_path, wait=0, warmup=0, active=1) as recording:
        assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
        add(1)
        recording.step()
        recording.wait()
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_run_that_is_told_to_end_while_a_trace_is_written_keeps_it_and_ends(tmp_path: Path) -> None:
    done = run_python(f"""
        import os, signal, time, torch, deepscope
        from deepscope.capture.saving import saver
        rewrite = saver.rewrite
        def slowly(instructions):
            time.sleep(1)
            return rewrite(instructions)
        saver.rewrite = slowly
        prof = deepscope.profile({str(tmp_path)!r}, root={str(TESTS)!r}, wait=0, warmup=0, active=1).start()
        torch.ones(3).sum()
        prof.step()
        os.kill(os.getpid(), signal.SIGTERM)
        print("went on")
    """)
    assert (done.returncode, done.stdout) == (-signal.SIGTERM, ""), done.stderr
    (trace,) = tmp_path.glob("*.pt.trace.json.gz")
    assert load(trace)["deepscope"]["complete"] is True


def test_sigterm_is_given_back_by_the_thread_that_saved_the_last_trace(tmp_path: Path) -> None:
    done = run_python(f"""
        import signal, threading, time, torch, deepscope
        prof = deepscope.profile({str(tmp_path)!r}, root={str(TESTS)!r}, wait=0, warmup=0, active=1, repeat=1).start()
        torch.ones(3).sum()
        prof.step()
        (saver,) = [thread for thread in threading.enumerate() if thread.name == "deepscope-saver"]
        print(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)
        saver.join()
        time.sleep(0)
        print(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)
    """)
    assert (done.returncode, done.stdout) == (0, "False\nTrue\n"), done.stderr


def test_a_child_that_is_forked_in_a_window_ends_when_it_is_told_to(tmp_path: Path) -> None:
    done = run_python(f"""
        import os, signal, time, torch, deepscope
        with deepscope.profile({str(tmp_path)!r}, root={str(TESTS)!r}) as prof:
            torch.ones(3).sum()
            child = os.fork()
            if not child:
                assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
                os.kill(os.getpid(), signal.SIGTERM)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """)
    assert (done.returncode, done.stdout) == (0, "-15\n"), done.stderr
    assert len(list(tmp_path.iterdir())) == 1

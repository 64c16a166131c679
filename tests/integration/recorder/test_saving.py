"""Files are whole before anyone hears of them; saving that fails leaves nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from deepscope.capture import saver
from deepscope.capture.notices import RecordingWarning
from deepscope.capture.options import RecordingOptions
from deepscope.capture.recorder import Recorder
from recorded import TESTS, load, run_python, scopes_of, step_names, steps


def test_an_error_of_on_trace_ready_costs_a_warning_and_not_the_trace(record: Callable[..., Recorder]) -> None:
    with pytest.warns(RecordingWarning, match="on_trace_ready failed"):
        recorder = record(6, on_trace_ready=lambda path: 1 / 0)
    assert len(recorder.traces) == 1


def test_on_trace_ready_is_given_files_that_are_whole(record: Callable[..., Recorder]) -> None:
    seen: list[list[str]] = []
    record(6, on_trace_ready=lambda path: seen.append(step_names(path)))
    assert seen == [steps(2, 3, 4)]


def test_on_trace_ready_may_wait_for_its_own_trace(tmp_path: Path) -> None:
    seen: list[int] = []
    recorder: list[Recorder] = []

    def look(path: Path) -> None:
        recorder[0].wait()
        seen.append(len(step_names(path)))

    options = RecordingOptions(root=TESTS, wait=0, warmup=0, active=1, repeat=0, on_trace_ready=look)
    recorder.append(Recorder(options, folder=tmp_path))
    recorder[0].start()
    for _ in range(3):
        torch.ones(3).sum()
        recorder[0].step()
    recorder[0].stop()
    recorder[0].wait()
    assert seen == [1, 1, 1]


def test_a_large_export_is_rewritten_by_another_process(
    record: Callable[..., Recorder], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saver, "_IN_PROCESS_BYTES", 0)
    monkeypatch.setattr(saver, "rewrite", lambda instructions: pytest.fail("rewritten here"))
    (path,) = record(6).traces
    assert step_names(path) == steps(2, 3, 4)
    assert scopes_of(path)


def test_a_process_that_fails_to_rewrite_costs_a_warning(
    record: Callable[..., Recorder], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saver, "_IN_PROCESS_BYTES", 0)
    monkeypatch.setattr(saver.sys, "executable", "/bin/false")
    with pytest.warns(RecordingWarning, match="not saved"):
        assert record(6).traces == []


def test_a_disk_that_fills_up_costs_a_warning_and_leaves_nothing(tmp_path: Path) -> None:
    done = run_python(f"""
        import resource, torch, deepscope
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
        with deepscope.profile({str(tmp_path)!r}, root={str(TESTS)!r}):
            for _ in range(200):
                torch.ones(3).sum()
        print("trained")
    """)
    assert done.stdout == "trained\n", done.stderr
    assert done.stderr.count("RecordingWarning: DeepScope: ") == 1
    assert list(tmp_path.iterdir()) == []


def test_where_no_thread_can_be_started_the_trace_is_written_at_once(
    record: Callable[..., Recorder], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    traces = record(9, wait=1, warmup=1, active=1, repeat=2).traces
    assert [load(path)["deepscope"]["window"] for path in traces] == [0, 1]

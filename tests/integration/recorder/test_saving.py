"""Files are whole before anyone hears of them; saving that fails leaves nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from deepscope.capture import naming
from deepscope.capture.notices import RecordingWarning
from deepscope.capture.options import RecordingOptions
from deepscope.capture.recorder import Recorder
from deepscope.capture.saving import saver
from deepscope.capture.schedule import Plan, Schedule
from deepscope.capture.session import RecordingSession
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
    recorder.append(Recorder(RecordingSession(options), Plan(Schedule.of(options)), folder=tmp_path))
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
    monkeypatch.setattr(saver, "IN_PROCESS_BYTES", 0)
    monkeypatch.setattr(saver, "rewrite", lambda instructions: pytest.fail("rewritten here"))
    (path,) = record(6).traces
    assert step_names(path) == steps(2, 3, 4)
    assert scopes_of(path)


def test_a_process_that_fails_to_rewrite_is_made_up_for_here(
    record: Callable[..., Recorder], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saver, "IN_PROCESS_BYTES", 0)
    monkeypatch.setattr(saver.sys, "executable", "/bin/false")
    (path,) = record(6).traces
    assert step_names(path) == steps(2, 3, 4)


def writer_that_dies(folder: Path, number: int) -> str:
    """A program in the writer's place that a signal ends."""
    program = folder / "writer"
    program.write_text(f"#!/bin/sh\nkill -{number} $$\n")
    program.chmod(0o755)
    return str(program)


def test_a_trace_is_written_though_its_writer_is_told_to_end(
    record: Callable[..., Recorder], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(saver, "IN_PROCESS_BYTES", 0)
    monkeypatch.setattr(saver.sys, "executable", writer_that_dies(tmp_path, 15))
    (path,) = record(6).traces
    assert step_names(path) == steps(2, 3, 4)
    assert list(path.parent.iterdir()) == [path]


def make_old(*paths: Path) -> None:
    """Last touched an hour ago, by a process that is gone."""
    for path in paths:
        os.utime(path, (time.time() - 3600,) * 2)


def left_behind(folder: Path) -> list[Path]:
    """Rename exports as if a process had made them that has ended."""
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    found = [
        raw.rename(raw.with_name(raw.name.replace(f"@{os.getpid()}.", f"@{dead.pid}.")))
        for raw in folder.glob(".*.deepscope-raw")
    ]
    make_old(*found)
    return found


def test_an_export_whose_writer_is_killed_again_and_again_becomes_a_trace_in_the_next_recording(
    record: Callable[..., Recorder], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Where memory runs out, writing it in the training's own process would end the training."""
    folder = tmp_path / "runs"
    with monkeypatch.context() as patch:
        patch.setattr(saver, "IN_PROCESS_BYTES", 0)
        patch.setattr(saver.sys, "executable", writer_that_dies(tmp_path, 9))
        with pytest.warns(RecordingWarning, match=r"killed twice.*next recording"):
            assert record(6).traces == []
    assert len(left_behind(folder)) == 1
    monkeypatch.setattr(saver, "looked_after", set())  # as in a new process
    (own,) = record(6).traces
    (recovered,) = set(folder.iterdir()) - {own}
    assert step_names(recovered) == steps(2, 3, 4)
    assert scopes_of(recovered)
    assert f"killed saved to {recovered}" in capfd.readouterr().err


def test_only_what_dead_processes_of_this_host_have_left_is_swept(
    record: Callable[..., Recorder], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "runs"
    (temporary := tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setattr(saver, "looked_after", set())
    folder.mkdir()
    host, living = naming.host_name(), os.getppid()
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    kept = [
        folder / f".job.rank0.1@{host}@{living}.deepscope-raw",
        folder / f".job.rank0.2@elsewhere@{dead.pid}.deepscope-raw",
        folder / ".mine.deepscope-raw",
        folder / "notes.txt",
        temporary / f"deepscope-workers-{host}-{living}-abc",
        temporary / f"deepscope-workers-elsewhere-{dead.pid}-abc",
        temporary / "other",
    ]
    young = folder / f".job.rank0.3@{host}@{dead.pid}.deepscope-raw"
    swept = [
        folder / f".job.rank0.4@{host}@{dead.pid}.deepscope-raw",
        folder / f".job.rank0.5@{host}@{dead.pid}.deepscope-raw.tmp",
        temporary / f"deepscope-workers-{host}-{dead.pid}-abc",
    ]
    for path in (*kept, young, *swept):
        path.mkdir() if path.parent == temporary else path.write_text("{")
    make_old(*kept, *swept)
    record(6)
    assert [path for path in (*kept, young) if not path.exists()] == []
    assert [path for path in swept if path.exists()] == []


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


def test_a_full_disk_is_called_by_its_name(
    record: Callable[..., Recorder], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """No disk can be filled here: the question for its free space is answered by a stand-in."""
    real = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: real._replace(free=4096))
    with pytest.warns(RecordingWarning, match=r"the disk is full: 4 KiB are free in ") as caught:
        recorder = record(6)
    assert len(caught) == 1
    assert recorder.traces == []


def test_where_no_thread_can_be_started_the_trace_is_written_at_once(
    record: Callable[..., Recorder], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    traces = record(9, wait=1, warmup=1, active=1, repeat=2).traces
    assert [load(path)["deepscope"]["window"] for path in traces] == [0, 1]

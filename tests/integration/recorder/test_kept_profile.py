"""The process that writes a trace leaves its profile in the cache: the one that reading the trace gives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch

from deepscope.capture.options import RecordingOptions
from deepscope.capture.recorder import Recorder
from deepscope.capture.saving import saver
from deepscope.capture.saving.saver import wait_for_profile
from deepscope.capture.session import RecordingSession
from deepscope.records import WHOLE, Profile
from deepscope.store import cache, load_profile
from deepscope.store.files import TraceFile, single_file
from deepscope.store.single_trace import read_profile
from recorded import TESTS, Net, load, run_python, train_step


@pytest.fixture(autouse=True)
def another_process_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saver, "IN_PROCESS_BYTES", 0)


def trace_file(path: Path) -> TraceFile:
    file = single_file(str(path))
    assert file is not None
    return file


def kept_of(path: Path) -> Profile | None:
    wait_for_profile(path)
    return cache.load_kept(trace_file(path), partial=False)


def read_anew(path: Path) -> Profile:
    return read_profile(trace_file(path), WHOLE, partial=False, cache=False)


def check_kept(path: Path) -> None:
    kept = kept_of(path)
    assert kept is not None
    assert msgspec.json.encode(kept).decode() == msgspec.json.encode(read_anew(path)).decode()


def forbid_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deepscope.store.load.read_profile", lambda *_, **__: pytest.fail("the trace is read"))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"profile_memory": True, "record_shapes": True},
        {"lines": False},
        {"with_stack": True},
        {"counters": "window"},
        {"compress": False},
    ],
    ids=lambda options: "-".join(options) or "plain",
)
def test_the_profile_that_is_kept_is_the_one_that_reading_gives(
    record: Callable[..., Recorder], options: dict[str, Any]
) -> None:
    (path,) = record(6, **options).traces
    check_kept(path)


def test_a_rank_behind_others_leaves_its_own(tmp_path: Path) -> None:
    session = RecordingSession(RecordingOptions(root=TESTS), name="job", rank=1, local_rank=1, world_size=2)
    recorder = Recorder(session, folder=tmp_path)
    recorder.start()
    torch.ones(30, 30).mm(torch.ones(30, 30))
    recorder.stop()
    recorder.wait()
    (path,) = recorder.traces
    check_kept(path)
    assert read_anew(path).trace.ranks == [1]


def test_a_window_that_was_interrupted_leaves_its_profile(tmp_path: Path) -> None:
    recorder = Recorder(RecordingSession(RecordingOptions(root=TESTS)), folder=tmp_path)
    net = Net()
    recorder.start()
    train_step(net, torch.optim.SGD(net.parameters(), lr=0.1), torch.randn(4, 8))
    recorder.stop(complete=False)
    recorder.wait()
    (path,) = recorder.traces
    check_kept(path)
    assert load(path)["deepscope"]["complete"] is False


def test_a_recording_asked_for_its_profile_reads_nothing(
    record: Callable[..., Recorder], monkeypatch: pytest.MonkeyPatch
) -> None:
    forbid_reading(monkeypatch)
    profile = record(6).profile
    assert profile is not None
    assert len(profile.steps) == 3


def test_what_is_kept_is_not_taken_for_a_file_that_came_in_its_place(record: Callable[..., Recorder]) -> None:
    (path,) = record(6).traces
    (other,) = record(8, wait=1, active=5).traces
    assert kept_of(path) is not None
    wait_for_profile(other)
    other.replace(path)
    assert len(load_profile(path).steps) == 5


def test_where_the_cache_keeps_nothing_the_trace_is_whole_and_is_read(
    record: Callable[..., Recorder], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (blocked := tmp_path / "file").touch()
    monkeypatch.setenv("DEEPSCOPE_CACHE_DIR", str(blocked / "cache"))
    recorder = record(6)
    (path,) = recorder.traces
    assert kept_of(path) is None
    assert recorder.profile is not None
    assert list(path.parent.iterdir()) == [path]


def test_the_end_of_a_program_does_not_wait_for_the_profile(tmp_path: Path) -> None:
    done = run_python(
        f"""
        import threading, torch, deepscope
        from deepscope.capture.saving import saver
        from deepscope.processes import HelperProcess
        saver.IN_PROCESS_BYTES = 0
        HelperProcess.finish = lambda process: threading.Event().wait()
        with deepscope.profile({str(tmp_path / "runs")!r}):
            torch.ones(3).sum()
        """
    )
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "runs").iterdir())) == 1


def test_deepscope_run_prints_the_profile_that_is_kept(tmp_path: Path) -> None:
    (program := tmp_path / "train.py").write_text(
        """
import torch
from deepscope.capture.saving import saver
from deepscope.store import load

def read_profile(*_, **__):
    raise AssertionError("the trace is read")

saver.IN_PROCESS_BYTES = 0
load.read_profile = read_profile
torch.ones(300, 300).mm(torch.ones(300, 300))
"""
    )
    done = run_python(
        f"""
        import sys
        from deepscope.cli import main
        sys.argv = ["deepscope", "run", "--whole", "--folder", {str(tmp_path / "runs")!r}, {str(program)!r}]
        main()
        """
    )
    assert done.returncode == 0, done.stderr
    assert "train.py" in done.stdout

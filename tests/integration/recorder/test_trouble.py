"""What goes wrong in a recording costs a warning, never the run, and keeps what was recorded."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import deepscope
from deepscope.capture.notices import RecordingWarning
from deepscope.capture.options import RecordingOptions
from deepscope.capture.recorder import Recorder
from deepscope.capture.schedule import Plan, Schedule
from deepscope.capture.session import RecordingSession
from deepscope.capture.window import Window
from recorded import TESTS, OutOfMemoryError, load, run_python, step_names


class Stop(BaseException):
    """As Ctrl-C: no Exception."""


@pytest.mark.parametrize("error", [ValueError, Stop, OutOfMemoryError])
def test_an_early_end_keeps_what_was_recorded_and_says_so(tmp_path: Path, error: type[BaseException]) -> None:
    options = RecordingOptions(root=TESTS, wait=0, warmup=0)
    recorder = Recorder(RecordingSession(options), Plan(Schedule.of(options)), folder=tmp_path)
    recorder.start()
    try:
        torch.ones(3).sum()
        raise error
    except error:
        recorder.stop(complete=False)
    recorder.wait()
    own = load(recorder.traces[0])["deepscope"]
    assert own["complete"] is False


def test_a_failure_of_the_recorder_costs_one_warning(
    record: Callable[..., Recorder], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Window, path: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Window, "export", fail)
    with pytest.warns(RecordingWarning, match="No space left") as caught:
        recorder = record(8, repeat=0, wait=0, warmup=0, active=1)
    assert len(caught) == 1
    assert recorder.traces == []


def test_a_failure_in_the_middle_of_a_window_takes_the_hooks_out(
    record: Callable[..., Recorder], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Window, "next_step", lambda self, step: 1 / 0)
    with pytest.warns(RecordingWarning, match="ZeroDivisionError") as caught:
        record(8)
    assert len(caught) == 1


def test_an_export_that_was_cut_costs_a_warning_and_leaves_nothing(
    record: Callable[..., Recorder], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    original = Window.export

    def cut(self: Window, path: Path) -> None:
        original(self, path)
        os.truncate(path, 5_000)

    monkeypatch.setattr(Window, "export", cut)
    with pytest.warns(RecordingWarning, match="not saved") as caught:
        recorder = record(6)
    assert len(caught) == 1
    assert recorder.traces == []
    assert list((tmp_path / "runs").iterdir()) == []


def test_a_profiler_of_the_users_own_keeps_running_and_ours_warns(record: Callable[..., Recorder]) -> None:
    with torch.profiler.profile() as theirs:
        with pytest.warns(RecordingWarning, match="another torch profiler") as caught:
            recorder = record(6)
    assert len(caught) == 1
    assert recorder.traces == []
    assert "aten::linear" in {event.key for event in theirs.key_averages()}


def test_a_folder_that_cannot_be_made_costs_a_warning(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    recorder = Recorder(RecordingSession(RecordingOptions(root=TESTS)), folder=tmp_path / "file" / "runs")
    with pytest.warns(RecordingWarning, match=r"file.runs: traces cannot be written there"):
        recorder.start()
    assert not recorder.recording  # before anything is recorded
    torch.ones(3).sum()
    recorder.stop()


def test_a_folder_that_takes_no_files_costs_a_warning_before_the_window(tmp_path: Path) -> None:
    """Not even root can write to /proc; the folder itself need not be there yet."""
    with pytest.warns(RecordingWarning, match=r"/proc/runs: traces cannot be written there") as caught:
        with deepscope.profile("/proc/runs", root=TESTS) as recording:
            assert not recording.is_recording
    assert len(caught) == 1


@pytest.mark.parametrize("options", ["", ", counters='run', filename='{program}'"])
def test_a_working_folder_that_was_removed_is_no_error_of_the_programs(tmp_path: Path, options: str) -> None:
    program = tmp_path / "program.py"
    program.write_text(f"""
import os, tempfile, torch, torch._dynamo  # which itself needs a working folder to be imported
gone = tempfile.mkdtemp()
os.chdir(gone)
os.rmdir(gone)
import deepscope
with deepscope.profile("runs"{options}):
    torch.ones(3).sum()
with deepscope.profile({str(tmp_path / "runs")!r}{options}) as recording:
    torch.ones(3).sum()
assert recording.traces[0].exists() and not os.path.exists(gone)
""")
    done = run_python(f"import runpy; runpy.run_path({str(program)!r}, run_name='__main__')")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("RecordingWarning") == 1


def test_a_temporary_folder_that_is_missing_costs_the_workers_and_not_the_trace(
    record: Callable[..., Recorder], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    with pytest.warns(RecordingWarning, match="workers are not timed: FileNotFoundError") as caught:
        recorder = record(6)
    assert len(caught) == 1
    assert len(recorder.traces) == 1


def test_where_warnings_are_errors_a_failure_of_the_recorder_is_logged_and_the_run_goes_on(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = run_python(f"""
        import warnings, torch, deepscope
        deepscope.profile
        warnings.simplefilter("error")
        with deepscope.profile({str(tmp_path / "file" / "runs")!r}, root={str(TESTS)!r}):
            torch.ones(3).sum()
        print("trained")
    """)
    assert (done.returncode, done.stdout) == (0, "trained\n"), done.stderr
    assert done.stderr.count("DeepScope: recording stopped: ") == 1


def test_without_a_stderr_the_trace_is_saved(tmp_path: Path) -> None:
    done = run_python(f"""
        import sys, torch, deepscope
        sys.stderr = None
        with deepscope.profile({str(tmp_path)!r}, root={str(TESTS)!r}) as prof:
            torch.ones(3).sum()
        print(len(prof.traces), prof.profile is not None)
    """)
    assert (done.returncode, done.stdout) == (0, "1 True\n"), done.stderr


def test_a_process_that_ends_without_stop_saves_its_window(tmp_path: Path) -> None:
    done = run_python(f"""
        import torch, deepscope
        deepscope.profile({str(tmp_path)!r}, root={str(TESTS)!r}).start()
        torch.ones(3).sum()
    """)
    assert done.returncode == 0, done.stderr
    (path,) = tmp_path.iterdir()
    assert load(path)["deepscope"]["complete"] is False


def test_in_a_forked_child_the_recorder_does_nothing(tmp_path: Path) -> None:
    done = run_python(f"""
        import os, torch, deepscope
        with deepscope.profile({str(tmp_path)!r}, root={str(TESTS)!r}) as recording:
            torch.ones(3).sum()
            child = os.fork()
            if not child:
                recording.step()
                recording.stop()
                os._exit(7 if not recording.is_recording else 8)
            assert os.waitpid(child, 0)[1] == 7 << 8
    """)
    assert done.returncode == 0, done.stderr
    (path,) = tmp_path.iterdir()
    assert step_names(path) == []

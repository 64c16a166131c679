"""Threads that the user starts: recorded where torch can do so safely, and spoken of where they are not."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
import torch

from deepscope.capture.options import RecordingOptions
from deepscope.capture.recorder import Recorder
from deepscope.capture.session import RecordingSession
from deepscope.report.text_report import text_report
from deepscope.store import load_profile
from line_truth import everywhere
from recorded import TESTS, load, name_of, run_python

records_threads = pytest.mark.skipif(
    everywhere() is None,
    reason=f"torch {torch.__version__} records no threads but its own and the caller's",
)


def record_a_thread(folder: Path, **options: Any) -> dict[str, Any]:
    """The trace of a thread that the user starts in a window."""
    recorder = Recorder(RecordingSession(RecordingOptions(root=TESTS, **options)), folder=folder)

    def work() -> None:
        torch.ones(3).cumsum(0)

    recorder.start()
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    recorder.stop()
    recorder.wait()
    return load(recorder.traces[0])


@records_threads
def test_threads_that_the_user_starts_are_recorded_with_their_lines(tmp_path: Path) -> None:
    trace = record_a_thread(tmp_path, all_threads=True)
    (operator,) = [event for event in trace["traceEvents"] if event["name"] == "aten::cumsum"]
    assert operator["tid"] != threading.get_native_id()
    assert operator["args"]["Call stack"].partition("): ")[2].endswith(name_of("<locals>.work"))
    own = trace["deepscope"]
    assert (own["all_threads"], own["lines"]["threads"], own["lines"]["unrecorded_threads"]) == (True, 2, 0)


@records_threads
@pytest.mark.parametrize(
    ("version", "options", "is_recorded"),
    [("2.13.1", {}, False), ("2.14.0", {}, True), ("2.14.0", {"profile_memory": True}, False)],
)
def test_threads_are_recorded_by_default_where_torch_can_do_so_safely(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, options: dict[str, Any], is_recorded: bool
) -> None:
    """The torch at hand stands in for that version; one short thread is no risk to it."""
    monkeypatch.setattr(torch, "__version__", torch.torch_version.TorchVersion(version))
    trace = record_a_thread(tmp_path, **options)
    found = "aten::cumsum" in {event["name"] for event in trace["traceEvents"]}
    own = trace["deepscope"]
    assert (found, own["all_threads"], own["lines"]["unrecorded_threads"]) == (
        is_recorded,
        is_recorded,
        1 - is_recorded,
    )


@records_threads
def test_with_memory_threads_are_left_out_although_they_were_asked_for_and_that_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    trace = record_a_thread(tmp_path, all_threads=True, profile_memory=True)
    assert "drops its memory events" in caplog.text
    caplog.clear()
    own = trace["deepscope"]
    assert (own["all_threads"], own["lines"]["unrecorded_threads"]) == (False, 1)
    (path,) = tmp_path.glob("*.gz")
    assert [one for one in load_profile(path).trace.warnings if "with profile_memory it must be" in one]


def test_only_threads_that_ran_user_code_count_as_unrecorded(tmp_path: Path) -> None:
    recorder = Recorder(RecordingSession(RecordingOptions(root=TESTS, all_threads=False)), folder=tmp_path)
    recorder.start()
    for target in (torch.seed, json.dumps, torch.seed):
        thread = threading.Thread(target=target, args=((1,) if target is json.dumps else ()))
        thread.start()
        thread.join()
    recorder.stop()
    recorder.wait()
    assert load(recorder.traces[0])["deepscope"]["lines"]["unrecorded_threads"] == 0


@records_threads
def test_the_report_tells_of_threads_that_were_not_recorded(tmp_path: Path) -> None:
    def notes(folder: Path, **options: Any) -> str:
        record_a_thread(folder, **options)
        # What is above is rows, and the text of this test is in some of them.
        return text_report(load_profile(next(folder.glob("*.gz"))), width=200).partition("\nnote ")[2]

    assert "1 thread ran your code unrecorded; all_threads=True" in notes(tmp_path / "off", all_threads=False)
    assert "unrecorded" not in notes(tmp_path / "on", all_threads=True)


def test_threads_that_come_and_go_while_windows_close_do_not_crash_the_process(tmp_path: Path) -> None:
    """With all threads recorded, torch 2.13 crashes in about one run of three."""
    done = run_python(f"""
        import threading, torch, deepscope
        stop = threading.Event()
        def work():
            for _ in range(30):
                torch.ones(8) + 1
        def spawn():
            while not stop.is_set():
                threads = [threading.Thread(target=work) for _ in range(4)]
                [thread.start() for thread in threads]
                [thread.join() for thread in threads]
        spawner = threading.Thread(target=spawn)
        spawner.start()
        options = dict(wait=0, warmup=0, active=1, repeat=4, record_shapes=True)
        with deepscope.profile({str(tmp_path)!r}, root={str(TESTS)!r}, **options) as prof:
            for _ in range(4):
                [torch.ones(8) + 1 for _ in range(20)]
                prof.step()
            stop.set()
        spawner.join()
        print(len(prof.traces))
    """)
    assert (done.returncode, done.stdout) == (0, "4\n"), done.stderr

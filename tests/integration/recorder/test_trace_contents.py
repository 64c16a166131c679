"""What stands in the files of a recording."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import torch

from deepscope.capture.options import RecordingOptions
from deepscope.capture.recorder import Recorder
from deepscope.capture.schedule import Plan, Schedule
from deepscope.capture.session import RecordingSession
from deepscope.errors import OptionError
from recorded import TESTS, load, scopes_of, step_names, steps


def test_spans_stand_in_the_trace_while_a_window_is_open_and_end_with_it(tmp_path: Path) -> None:
    options = RecordingOptions(root=TESTS, wait=1, warmup=0, active=1)
    recorder = Recorder(RecordingSession(options), Plan(Schedule.of(options, 3)), folder=tmp_path)
    recorder.start()
    with recorder.annotate("outside"):
        recorder.step()
    with recorder.annotate("deepscope.forward"):
        torch.ones(3).sum()
    recorder.push("open")
    recorder.step()
    recorder.pop("open")
    recorder.stop()
    recorder.wait()
    names = {
        event["name"] for event in load(recorder.traces[0])["traceEvents"] if event.get("cat") == "user_annotation"
    }
    assert names == {"ProfilerStep#1", "deepscope.forward", "open"}


def test_a_span_of_lightnings_takes_few_calls_of_python_each_of_which_the_trace_function_would_see(
    tmp_path: Path,
) -> None:
    recorder = Recorder(RecordingSession(RecordingOptions(root=TESTS, lines=False)), folder=tmp_path)
    recorder.start()
    recorder.push("span")
    recorder.pop("span")
    called: list[str] = []

    def note(frame: FrameType, event: str, _arg: Any) -> None:
        if event == "call":
            called.append(frame.f_code.co_name)

    sys.setprofile(note)
    recorder.push("span")
    recorder.pop("span")
    sys.setprofile(None)
    recorder.stop()
    recorder.wait()
    assert called == ["push", "push_light", "pop", "pop", "_exit"]


def test_the_users_lines_are_in_the_trace_and_their_text(record: Callable[..., Recorder]) -> None:
    (path,) = record(6).traces
    own = load(path)["deepscope"]
    assert {"recorded.py", "conftest.py", "test_trace_contents.py"} == {
        name.partition("(")[0] for name in scopes_of(path)
    }
    texts = {Path(file["path"]).name: file.get("text", "") for file in own["files"]}
    assert texts["recorded.py"] == (TESTS / "recorded.py").read_text()
    assert own["project_root"] == str(TESTS)


@pytest.mark.parametrize(("source", "keys"), [("hash", {"path", "sha256"}), ("none", {"path"})])
def test_source_text_stays_out_where_that_is_asked_for(
    record: Callable[..., Recorder], source: str, keys: set[str], capfd: pytest.CaptureFixture[str]
) -> None:
    (path,) = record(6, source=source).traces
    assert {key for file in load(path)["deepscope"]["files"] for key in file} == keys
    assert {"hash": "hashes only", "none": "not included"}[source] in capfd.readouterr().err


def test_the_path_is_told_once(record: Callable[..., Recorder], capfd: pytest.CaptureFixture[str]) -> None:
    recorder = record(6, wait=0, warmup=0, active=1, repeat=3)
    captured = capfd.readouterr()
    assert captured.err.count("DeepScope:") == 1
    assert str(recorder.traces[0]) in captured.err
    assert captured.out == ""


@pytest.mark.parametrize(("ranks", "told"), [(None, 0), ([1], 1), ([1, 2], 1), ([0, 1], 0)])
def test_the_path_is_told_where_rank_0_records_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], ranks: list[int] | None, told: int
) -> None:
    counts = []
    for rank in range(3):
        options = RecordingOptions(root=TESTS, ranks=ranks)
        recorder = Recorder(RecordingSession(options, rank=rank), folder=tmp_path)
        recorder.start()
        torch.ones(3).sum()
        recorder.stop()
        recorder.wait()
        counts.append(capfd.readouterr().err.count("DeepScope: trace saved"))
    assert counts == [int(rank == told) for rank in range(3)]


def test_without_lines_no_scope_is_in_the_trace(record: Callable[..., Recorder]) -> None:
    (path,) = record(6, lines=False, modules=False).traces
    trace = load(path)
    assert trace["deepscope"]["scopes"] == []
    assert {event.get("cat") for event in trace["traceEvents"]}.isdisjoint({"python_line", "python_module"})


def test_the_object_names_run_process_and_versions(record: Callable[..., Recorder]) -> None:
    (path,) = record(6).traces
    own = load(path)["deepscope"]
    assert own["format"] == 2
    assert (own["rank"], own["world_size"], own["stage"], own["window"], own["complete"]) == (0, 1, "", 0, True)
    assert own["pid"] == os.getpid()
    assert own["versions"]["torch"] == torch.__version__
    assert own["schedule"] == {"skip_first": 0, "wait": 1, "warmup": 1, "active": 3, "repeat": 1}
    assert own["recorder_ns"].keys() == {"prepare", "start", "stop", "export"}
    assert path.name.startswith("job.rank0.")


def test_metadata_is_kept_and_what_json_cannot_say_is_refused(tmp_path: Path) -> None:
    recorder = Recorder(RecordingSession(RecordingOptions(root=TESTS)), folder=tmp_path)
    with pytest.raises(OptionError, match="must be JSON"):
        recorder.add_metadata("loader", object())
    recorder.start()
    recorder.add_metadata("batch", {"size": 4, "names": ["a", "ü"]})
    recorder.stop()
    recorder.wait()
    assert load(recorder.traces[0])["deepscope"]["metadata"] == {"batch": {"size": 4, "names": ["a", "ü"]}}


def test_memory_and_shapes_are_recorded_where_asked_for(record: Callable[..., Recorder]) -> None:
    (path,) = record(6, profile_memory=True, record_shapes=True).traces
    events = load(path)["traceEvents"]
    assert [event for event in events if event["name"] == "[memory]"]
    assert [event for event in events if "Input Dims" in event.get("args", {})]


def test_the_cpu_is_recorded_whatever_activities_are_asked_for(record: Callable[..., Recorder]) -> None:
    activities = [torch.profiler.ProfilerActivity.XPU]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "XPU is not available")  # which newer torch says
        (path,) = record(3, scheduled=False, activities=activities).traces
    assert "aten::linear" in {event["name"] for event in load(path)["traceEvents"]}


def test_uncompressed_files_have_the_plain_name(record: Callable[..., Recorder]) -> None:
    (path,) = record(6, compress=False).traces
    assert path.name.endswith(".pt.trace.json")
    assert step_names(path) == steps(2, 3, 4)

"""Recording real torch: windows by schedule, short runs, errors, and nothing left behind."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from deepscope.capture import saver
from deepscope.capture.notices import RecordingWarning
from deepscope.capture.options import RecordingOptions
from deepscope.capture.recorder import Recorder
from deepscope.capture.window import Window
from deepscope.errors import NestedProfileError, OptionError
from recorded import TESTS, Net, load, scopes_of, step_names, train_step

QUALIFIED = sys.version_info >= (3, 11)
"""Whether code objects know their qualified names."""


@pytest.fixture
def record(tmp_path: Path) -> Callable[..., Recorder]:
    """Runs so many steps under a recorder of these options and waits for its files."""

    def run(steps: int, *, total_steps: int | None = None, scheduled: bool = True, **options: Any) -> Recorder:
        recorder = Recorder(
            RecordingOptions(root=TESTS, **options),
            folder=tmp_path / "runs",
            name="job",
            total_steps=total_steps,
            scheduled=scheduled,
        )
        net = Net()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        recorder.start()
        for _ in range(steps):
            train_step(net, optimizer, torch.randn(4, 8))
            recorder.step()
        recorder.stop()
        recorder.wait()
        return recorder

    return run


@pytest.fixture(autouse=True)
def nothing_is_left_installed() -> Iterator[None]:
    trace_function = sys.gettrace()
    yield
    assert sys.gettrace() is trace_function
    if sys.version_info >= (3, 12):
        assert not [number for number in (3, 4) if sys.monitoring.get_tool(number)]
    assert not torch.autograd._profiler_enabled()


def steps(*numbers: int) -> list[str]:
    return [f"ProfilerStep#{number}" for number in numbers]


# Windows


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
    recorder = Recorder(RecordingOptions(root=TESTS), folder=tmp_path, scheduled=False)
    recorder.start()
    torch.ones(3).sum()
    recorder.stop()
    recorder.wait()
    assert step_names(recorder.traces[0]) == []
    assert "aten::sum" in {event["name"] for event in load(recorder.traces[0])["traceEvents"]}


# Runs shorter than their schedule


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


# What goes wrong


class Stop(BaseException):
    """As Ctrl-C: no Exception."""


@pytest.mark.parametrize("error", [ValueError, Stop, torch.OutOfMemoryError])
def test_an_early_end_keeps_what_was_recorded_and_says_so(tmp_path: Path, error: type[BaseException]) -> None:
    recorder = Recorder(RecordingOptions(root=TESTS, wait=0, warmup=0), folder=tmp_path)
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
    recorder = Recorder(RecordingOptions(root=TESTS), folder=tmp_path / "file" / "runs", scheduled=False)
    recorder.start()
    torch.ones(3).sum()
    with pytest.warns(RecordingWarning):
        recorder.stop()


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


# Several recorders


def test_a_recorder_inside_another_is_refused(tmp_path: Path) -> None:
    outer = Recorder(RecordingOptions(root=TESTS), folder=tmp_path, scheduled=False)
    inner = Recorder(RecordingOptions(root=TESTS), folder=tmp_path, scheduled=False)
    outer.start()
    with pytest.raises(NestedProfileError, match="already open"):
        inner.start()
    outer.stop()
    outer.wait()
    inner.start()
    inner.stop()
    inner.wait()
    assert len(inner.traces) == 1


def test_recorders_of_one_owner_take_turns(tmp_path: Path) -> None:
    owner = object()
    options = RecordingOptions(root=TESTS, wait=0, warmup=0, active=2)
    outer = Recorder(options, folder=tmp_path, name="outer", owner=owner, total_steps=4)
    inner = Recorder(options, folder=tmp_path, name="inner", owner=owner, total_steps=4)
    outer.start()
    inner.start()
    for _ in range(4):
        torch.ones(3).sum()
        outer.step()
        inner.step()
    outer.stop()
    inner.stop()
    outer.wait()
    inner.wait()
    assert step_names(outer.traces[0]) == steps(0, 1)
    assert step_names(inner.traces[0]) == steps(2, 3)


def test_a_rank_that_was_not_chosen_records_nothing(record: Callable[..., Recorder]) -> None:
    assert record(8, ranks=(3,)).traces == []


# What is in the trace


def test_spans_stand_in_the_trace_while_a_window_is_open_and_end_with_it(tmp_path: Path) -> None:
    recorder = Recorder(RecordingOptions(root=TESTS, wait=1, warmup=0, active=1), folder=tmp_path, total_steps=3)
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


def test_the_users_lines_are_in_the_trace_and_their_text(record: Callable[..., Recorder]) -> None:
    (path,) = record(6).traces
    own = load(path)["deepscope"]
    assert {"recorded.py", "test_recorder.py"} == {name.partition("(")[0] for name in scopes_of(path)}
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
        recorder = Recorder(options, folder=tmp_path, rank=rank, scheduled=False)
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
    assert own["format"] == 1
    assert (own["rank"], own["world_size"], own["stage"], own["window"], own["complete"]) == (0, 1, "", 0, True)
    assert own["pid"] == os.getpid()
    assert own["versions"]["torch"] == torch.__version__
    assert own["schedule"] == {"skip_first": 0, "wait": 1, "warmup": 1, "active": 3, "repeat": 1}
    assert own["recorder_ns"].keys() == {"prepare", "start", "stop", "export"}
    assert path.name.startswith("job.rank0.")


def test_metadata_is_kept_and_what_json_cannot_say_is_refused(tmp_path: Path) -> None:
    recorder = Recorder(RecordingOptions(root=TESTS), folder=tmp_path, scheduled=False)
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
    with pytest.warns(UserWarning, match="XPU is not available"):
        (path,) = record(3, scheduled=False, activities=activities).traces
    assert "aten::linear" in {event["name"] for event in load(path)["traceEvents"]}


def test_uncompressed_files_have_the_plain_name(record: Callable[..., Recorder]) -> None:
    (path,) = record(6, compress=False).traces
    assert path.name.endswith(".pt.trace.json")
    assert step_names(path) == steps(2, 3, 4)


def test_threads_that_the_user_starts_are_recorded_with_their_lines(tmp_path: Path) -> None:
    recorder = Recorder(RecordingOptions(root=TESTS), folder=tmp_path, scheduled=False)

    def work() -> None:
        torch.ones(3).cumsum(0)

    recorder.start()
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    recorder.stop()
    recorder.wait()
    events = load(recorder.traces[0])["traceEvents"]
    (operator,) = [event for event in events if event["name"] == "aten::cumsum"]
    assert operator["tid"] != threading.get_native_id()
    assert operator["args"]["Call stack"].partition("): ")[2].endswith("<locals>.work" if QUALIFIED else "work")


# Processes


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


def run_python(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


def test_a_process_that_ends_without_stop_saves_its_window(tmp_path: Path) -> None:
    done = run_python(f"""
        import torch, deepscope
        deepscope.profile({str(tmp_path)!r}, root={str(TESTS)!r}).start()
        torch.ones(3).sum()
    """)
    assert done.returncode == 0, done.stderr
    (path,) = tmp_path.iterdir()
    assert load(path)["deepscope"]["complete"] is False


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


def test_two_ranks_write_a_file_each_and_share_the_run(tmp_path: Path) -> None:
    program = tmp_path / "ranks.py"
    program.write_text(
        textwrap.dedent(f"""
        import sys, torch, torch.distributed as dist, deepscope
        def main(rank):
            dist.init_process_group("gloo", init_method="file://{tmp_path}/store", rank=rank, world_size=2)
            with deepscope.profile("{tmp_path}/runs", name="job", root="{tmp_path}"):
                dist.all_reduce(torch.ones(3))
            dist.destroy_process_group()
        if __name__ == "__main__":
            main(int(sys.argv[1]))
        """)
    )
    ranks = [subprocess.Popen([sys.executable, str(program), str(rank)]) for rank in (0, 1)]
    assert [rank.wait(timeout=100) for rank in ranks] == [0, 0]
    paths = sorted((tmp_path / "runs").iterdir())
    own = [load(path)["deepscope"] for path in paths]
    assert [path.name.split(".")[:2] for path in paths] == [["job", "rank0"], ["job", "rank1"]]
    assert [(each["rank"], each["world_size"]) for each in own] == [(0, 2), (1, 2)]
    assert own[0]["run_id"] == own[1]["run_id"]
    assert load(paths[0])["distributedInfo"]["backend"] == "gloo"

"""The lines of data-loader workers reach the training process, however the workers are started, and nothing is left."""

from __future__ import annotations

import importlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from torch.utils.data import DataLoader

import deepscope
from deepscope.capture.lines import UserCode
from deepscope.capture.workers import WorkerClocks, WorkerTiming
from recorded import name_of

TARGETS = Path(__file__).parents[1] / "targets"


@pytest.fixture
def target(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(TARGETS))
    return importlib.import_module("loader_rows")


@pytest.fixture
def clocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WorkerClocks]:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    clocks = WorkerClocks(UserCode.find(root=TARGETS))
    clocks.arm()
    yield clocks
    clocks.disarm()
    assert list(tmp_path.glob("deepscope*")) == []


def loader(dataset: Any, target: Any, **options: Any) -> DataLoader:
    return DataLoader(dataset, batch_size=2, num_workers=2, collate_fn=target.collate, **options)


def line_of(mark: str) -> int:
    lines = (TARGETS / "loader_rows.py").read_text().splitlines()
    return next(number for number, text in enumerate(lines, 1) if text.endswith(f"# {mark}"))


def calls(timings: list[WorkerTiming], mark: str) -> int:
    return sum(line.calls for timing in timings for line in timing.lines if line.line == line_of(mark))


def self_ns(timings: list[WorkerTiming], mark: str) -> int:
    return sum(line.self_ns for timing in timings for line in timing.lines if line.line == line_of(mark))


def test_forked_workers_report_each_line_with_its_time(clocks: WorkerClocks, target: Any) -> None:
    clocks.open_window()
    batches = list(loader(target.Rows(), target, multiprocessing_context="fork"))
    timings = clocks.end_window()()
    assert len(batches) == 12
    assert {timing.worker_id for timing in timings} == {0, 1}
    assert os.getpid() not in {timing.pid for timing in timings}
    assert {line.file for timing in timings for line in timing.lines} == {str(TARGETS / "loader_rows.py")}
    assert {line.function for timing in timings for line in timing.lines} == {name_of("Rows.__getitem__"), "collate"}


def test_times_are_those_of_the_lines(clocks: WorkerClocks, target: Any) -> None:
    with_window = iter(loader(target.Rows(), target, multiprocessing_context="fork", persistent_workers=True))
    clocks.open_window()
    list(with_window)
    timings = clocks.end_window()()
    rows, collates = calls(timings, "row"), calls(timings, "collate")
    assert rows >= 2 * collates - 4 > 0
    # sleep() lasts as long as asked at least.
    assert self_ns(timings, "row") >= rows * 4_000_000 - 4_000_000
    assert self_ns(timings, "collate") >= collates * 2_000_000 - 2_000_000
    for timing in timings:
        assert sum(line.self_ns for line in timing.lines) <= timing.wall_ns


def test_time_asleep_is_told_from_time_on_the_cpu(clocks: WorkerClocks, target: Any) -> None:
    clocks.open_window()
    list(loader(target.Busy(), target, multiprocessing_context="fork"))
    timings = clocks.end_window()()
    lines = [line for timing in timings for line in timing.lines]
    assert all(0 <= line.cpu_ns <= line.self_ns for line in lines)
    runs = calls(timings, "asleep")
    assert runs >= 6, "all but those that a worker made before it joined the window"
    asleep = [line for line in lines if line.line == line_of("asleep")]
    assert sum(line.self_ns for line in asleep) >= runs * 20_000_000
    # A sleep takes some microseconds of the CPU; the loop what it asked of the thread's clock, less the timing.
    assert sum(line.cpu_ns for line in asleep) < runs * 2_000_000
    in_loop = range(line_of("busy"), line_of("busy") + 2)
    assert sum(line.cpu_ns for line in lines if line.line in in_loop) > runs * 15_000_000


def test_an_iterable_data_set_counts_too(clocks: WorkerClocks, target: Any) -> None:
    clocks.open_window()
    list(loader(target.Stream(), target, multiprocessing_context="fork"))
    timings = clocks.end_window()()
    assert calls(timings, "stream") == 48


def test_nothing_is_timed_outside_windows_and_each_window_has_its_own(clocks: WorkerClocks, target: Any) -> None:
    batches = loader(target.Rows(), target, multiprocessing_context="fork", persistent_workers=True)
    list(batches)
    assert clocks.end_window()() == []
    found = []
    for _ in range(2):
        clocks.open_window()
        list(batches)
        found.append(calls(clocks.end_window()(), "row"))
        list(batches)
    assert found == [24, 24]


def test_spawned_workers_take_part_through_their_init_function(clocks: WorkerClocks, target: Any) -> None:
    spawning = loader(target.Rows(), target, multiprocessing_context="spawn")
    spawning.worker_init_fn = clocks.wrap_init(target.mark)
    clocks.open_window()
    assert len(list(spawning)) == 12
    assert calls(clocks.end_window()(), "row") == 24


# torch tells of the crash where it notices: in a signal, maybe while the loader is taken apart, and maybe once more.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_crash_of_a_worker_is_torchs_to_report_and_delays_nothing(clocks: WorkerClocks, target: Any) -> None:
    clocks.open_window()
    with suppress(RuntimeError), pytest.raises((RuntimeError, ConnectionError, EOFError)):
        list(loader(target.Crashing(), target, multiprocessing_context="fork"))
    assert isinstance(clocks.end_window()(), list)


def test_a_loader_without_workers_reports_nothing(clocks: WorkerClocks, target: Any) -> None:
    clocks.open_window()
    list(DataLoader(target.Rows(), batch_size=8))
    assert clocks.end_window()() == []


def test_disarmed_clocks_leave_loaders_alone(target: Any, tmp_path: Path) -> None:
    clocks = WorkerClocks(UserCode.find(root=TARGETS))
    assert clocks.wrap_init(target.mark) is target.mark
    clocks.open_window()
    assert len(list(loader(target.Rows(), target, multiprocessing_context="fork"))) == 12
    assert clocks.end_window()() == []
    clocks.disarm()


def test_workers_outlive_the_recording(target: Any) -> None:
    clocks = WorkerClocks(UserCode.find(root=TARGETS))
    clocks.arm()
    batches = loader(target.Rows(), target, multiprocessing_context="fork", persistent_workers=True)
    clocks.open_window()
    list(batches)
    clocks.end_window()()
    clocks.disarm()
    assert len(list(batches)) == 12


def test_a_recording_carries_its_workers_lines_to_the_report(tmp_path: Path, target: Any) -> None:
    rows = loader(target.Rows(), target, multiprocessing_context="fork")
    with deepscope.profile(tmp_path / "runs", root=TARGETS) as prof:
        for _ in prof.iterate(rows):
            pass
    profile = prof.profile
    assert profile is not None
    by_line = {line.line: line for line in profile.lines if line.file.endswith("loader_rows.py")}
    timed = {number for number, line in by_line.items() if line.worker_ns}
    assert {line_of("row"), line_of("collate")} <= timed, "lines that only workers ran are there"
    assert all(by_line[number].text for number in timed), "with the text that ran"
    assert profile.totals.worker_ns == sum(line.worker_ns for line in profile.lines) > 0
    assert profile.totals.worker_cpu_ns == sum(line.worker_cpu_ns for line in profile.lines) > 0


class OwnLoader(DataLoader):
    """As users derive them: with attributes, and a generator around the batches."""

    __slots__ = ("extra",)

    def __iter__(self) -> Any:
        for batch in super().__iter__():
            yield batch * 1


@pytest.mark.parametrize(("method", "kind"), [("spawn", DataLoader), ("forkserver", OwnLoader)])
def test_workers_that_are_not_forked_take_part_in_a_plain_loop(
    tmp_path: Path, target: Any, method: str, kind: type[DataLoader]
) -> None:
    rows = kind(target.Rows(), batch_size=2, num_workers=2, multiprocessing_context=method)
    given = rows.worker_init_fn
    loading = rows._get_iterator.__globals__["_MultiProcessingDataLoaderIter"]
    start = loading.__init__
    with deepscope.profile(tmp_path / "runs", root=TARGETS) as prof:
        for _ in rows:
            pass
    assert prof.profile is not None
    assert prof.profile.totals.worker_ns > 0
    assert rows.worker_init_fn is given
    assert loading.__init__ is start, "nothing is left in torch"


def test_a_recording_that_nobody_waits_for_leaves_nothing_in_torch(tmp_path: Path) -> None:
    loading: Any = DataLoader._get_iterator.__globals__["_MultiProcessingDataLoaderIter"]  # type: ignore[attr-defined]
    start = loading.__init__
    with deepscope.profile(tmp_path / "runs", root=TARGETS):
        assert loading.__init__ is not start
    assert loading.__init__ is start
    with deepscope.profile(tmp_path / "runs", root=TARGETS, wait=0, warmup=0, active=1) as prof:
        assert loading.__init__ is not start
        prof.step()
        assert loading.__init__ is start, "the schedule is over"


def test_several_recordings_may_be_armed_and_the_one_with_a_window_is_told(clocks: WorkerClocks, target: Any) -> None:
    others = [WorkerClocks(UserCode.find(root=TARGETS)) for _ in range(2)]
    others[0].arm()
    others[1].arm()
    for context in ("fork", "spawn"):
        batches = loader(target.Rows(), target, multiprocessing_context=context, persistent_workers=True)
        for one in (others[1], clocks, others[0]):
            one.open_window()
            assert len(list(batches)) == 12
            assert calls(one.end_window()(), "row") == 24
    for one in others:
        one.disarm()

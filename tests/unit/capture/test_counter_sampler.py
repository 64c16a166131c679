"""The thread that samples: from begin to end, seldom where samples are expensive, and never at the run's cost."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from deepscope.capture.counters import sampler as sampler_module
from deepscope.capture.counters.sampler import MOST_SHARE, Counted, Opened, Sampler
from deepscope.capture.counters.source import Series
from deepscope.trace.format.counters import CounterAccount


class Reads:
    """Counts its readings; `at` lets the test wait for one."""

    series = (Series("memory", "used"),)

    def __init__(
        self, *, dear_s: float = 0.0, dear_reads: float = math.inf, fails: type[Exception] | None = None
    ) -> None:
        self.count = 0
        self.reached = threading.Condition()
        self._dear_s, self._dear_reads = dear_s, dear_reads
        self._fails = fails

    def read(self) -> Sequence[float]:
        until = time.thread_time() + (self._dear_s if self.count < self._dear_reads else 0)
        while time.thread_time() < until:
            pass
        with self.reached:
            self.count += 1
            self.reached.notify_all()
        if self._fails is not None:
            raise self._fails("gone")
        return (float(self.count),)

    def close(self) -> None:
        pass

    def wait_for(self, count: int) -> None:
        with self.reached:
            assert self.reached.wait_for(lambda: self.count >= count, timeout=60)


class Few:
    """A machine of these sources."""

    def __init__(self, *sources: Reads) -> None:
        self._sources = sources
        self.closed = 0

    def open(self) -> Opened:
        return Opened(list(self._sources), CounterAccount(cores=3))

    def finish(self, account: CounterAccount) -> None:
        pass

    def close(self) -> None:
        self.closed += 1


def sampler_of(*sources: Reads, interval_s: float = 0.001) -> Sampler:
    return Sampler(lambda: Few(*sources), interval_s=interval_s)


def test_it_samples_from_begin_to_end():
    source = Reads()
    sampler = sampler_of(source)
    sampler.prepare()
    assert source.count == 0
    before = time.time_ns()
    sampler.begin()
    source.wait_for(3)
    counted = sampler.end()()
    after = time.time_ns()
    assert counted.account is not None
    assert (counted.account.samples, counted.account.cores) == (source.count, 3)
    assert 0 < counted.account.cost_ns < after - before
    (track,) = counted.tracks
    assert [value for (value,) in track.values] == list(range(1, source.count + 1))
    assert before <= track.at_ns[0] < track.at_ns[-1] <= after
    assert not [thread for thread in threading.enumerate() if thread.name == "deepscope-counters"]


def test_each_window_has_its_own_samples():
    source = Reads()
    sampler = sampler_of(source, interval_s=60)
    windows = []
    for _ in range(2):
        sampler.begin()
        source.wait_for(source.count + 1)
        windows.append(sampler.end()())
    assert [[value for (value,) in window.tracks[0].values] for window in windows] == [[1, 2], [3, 4]]


def test_an_end_right_after_the_beginning_harms_nothing():
    sampler = sampler_of(Reads())
    sampler.begin()
    assert isinstance(sampler.end()(), Counted)
    assert sampler.end()() == Counted()


def test_a_dear_source_is_asked_less_often():
    source = Reads(dear_s=0.002)
    sampler = sampler_of(source)
    sampler.begin()
    source.wait_for(2)
    counted = sampler.end()()
    assert counted.account is not None
    assert counted.account.interval_ns >= 0.002 / MOST_SHARE * 1e9


def test_a_dear_first_sample_does_not_make_the_others_rare():
    source = Reads(dear_s=0.002, dear_reads=1)
    sampler = sampler_of(source)
    sampler.begin()
    source.wait_for(8)
    counted = sampler.end()()
    assert counted.account is not None
    assert counted.account.interval_ns < 0.002 / MOST_SHARE * 1e9 / 2


def test_the_interval_doubles_where_there_are_too_many_samples(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sampler_module, "MOST_SAMPLES", 8)
    source = Reads()
    sampler = sampler_of(source, interval_s=0.0001)
    sampler.begin()
    source.wait_for(30)
    counted = sampler.end()()
    assert counted.account is not None
    assert len(counted.tracks[0].at_ns) <= 8
    assert counted.account.samples == source.count
    assert counted.account.interval_ns >= 4 * 100_000


def test_a_sensor_that_can_never_be_read_does_not_end_a_long_run(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sampler_module, "MOST_SAMPLES", 8)
    gone, there = Reads(fails=OSError), Reads()
    sampler = sampler_of(gone, there, interval_s=0.0001)
    sampler.begin()
    there.wait_for(20)
    (track,) = sampler.end()().tracks
    assert track.values[-1] == [there.count]


def test_a_device_that_comes_into_use_later_is_counted_from_then_on(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sampler_module, "LOOK_EVERY_S", 0.0)
    first, second, third = Reads(), Reads(), Reads()

    class Grows(Few):
        def open(self) -> Opened:
            # The second source gives way to the third.
            late = [third] if second.count > 2 else [second] if first.count > 2 else []
            return Opened([first, *late], CounterAccount(cores=1 + len(late)))

    sampler = Sampler(lambda: Grows(), interval_s=0.001)
    sampler.begin()
    third.wait_for(3)
    counted = sampler.end()()
    assert counted.account is not None
    assert counted.account.cores == 2
    found = [[value for (value,) in track.values] for track in counted.tracks]
    assert sorted(found) == sorted(list(range(1, source.count + 1)) for source in (first, second, third))


@pytest.mark.parametrize("error", [OSError, ValueError, RuntimeError])
def test_a_sensor_that_goes_is_left_out(error: type[Exception]):
    gone, there = Reads(fails=error), Reads()
    sampler = sampler_of(gone, there)
    sampler.begin()
    there.wait_for(2)
    counted = sampler.end()()
    assert [len(track.values) >= 2 for track in counted.tracks] == [True]


def test_a_sensor_that_fails_as_nobody_foresaw_costs_the_counters_alone():
    class Fails(Few):
        def open(self) -> Opened:
            raise RuntimeError("a driver's own error")

    machine = Fails()
    sampler = Sampler(lambda: machine, interval_s=0.1)
    sampler.begin()
    assert sampler.end()() == Counted()
    assert machine.closed == 1


def test_a_look_at_the_end_that_fails_leaves_the_samples():
    class Fails(Few):
        def finish(self, account: CounterAccount) -> None:
            raise ValueError("odd text")

    source = Reads()
    sampler = Sampler(lambda: Fails(source), interval_s=0.001)
    sampler.begin()
    source.wait_for(2)
    counted = sampler.end()()
    assert counted.account is not None
    assert counted.tracks


def test_each_window_closes_what_it_opened():
    machines: list[Few] = []

    def new() -> Few:
        machines.append(Few(Reads()))
        return machines[-1]

    sampler = Sampler(new, interval_s=0.001)
    for _ in range(2):
        sampler.begin()
        sampler.end()()
    sampler.prepare()  # of a window that is never opened
    sampler.end()()
    assert [one.closed for one in machines] == [1, 1, 1]


def test_without_a_thread_nothing_is_counted(monkeypatch: pytest.MonkeyPatch):
    def no_thread(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", no_thread)
    sampler = sampler_of(Reads())
    sampler.begin()
    assert sampler.end()() == Counted()


class ReadsFile(Reads):
    """Holds a file open for a while, and says when."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.opened = threading.Event()
        self._path = path

    def read(self) -> Sequence[float]:
        with self._path.open("rb"):
            self.opened.set()
            time.sleep(0.01)
            return super().read()


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="which files are open is told by Linux")
def test_forked_children_inherit_no_file_of_a_sensor(tmp_path: Path) -> None:
    path = tmp_path / "sensor"
    path.touch()
    source = ReadsFile(path)
    sampler = sampler_of(source)
    sampler.begin()
    assert source.opened.wait(60)
    child = os.fork()
    if not child:
        files = Path("/proc/self/fd").iterdir()
        os._exit(any(file.exists() and file.samefile(path) for file in files))
    assert os.waitpid(child, 0)[1] == 0
    sampler.end()()


def test_a_window_that_ends_before_the_first_sample_still_has_an_account():
    is_over = threading.Event()

    class OpenedLate(Few):
        def open(self) -> Opened:
            is_over.wait(60)
            return super().open()

    sampler = Sampler(lambda: OpenedLate(Reads()), interval_s=0.001)
    sampler.begin()
    counted = sampler.end()
    is_over.set()
    account = counted().account
    assert account is not None
    assert (account.cores, account.samples, account.interval_ns) == (3, 1, 1_000_000)

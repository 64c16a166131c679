"""The thread that samples counters: it sleeps nearly all of the time, and wakes less often where they are expensive."""

from __future__ import annotations

import math
import os
import threading
import time
from array import array
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import groupby
from statistics import median_low
from typing import Protocol

import msgspec

from deepscope.capture.counters.source import CounterSource, Series
from deepscope.trace.format.counters import CounterAccount

MOST_SAMPLES = 1_200
"""Of a source; where there are more, each two become one."""
_DIGITS = 4
"""That matter of a value."""


class CounterTrack(msgspec.Struct):
    """A counter over time: each value holds until the next one."""

    name: str
    series: list[str]
    at_ns: list[int]
    """By the clock of the samples."""
    values: list[list[float | None]]
    """One a moment and series."""


class CounterSamples:
    """The readings of one source in the order of time, in two flat arrays."""

    def __init__(self, series: Sequence[Series]) -> None:
        self._series = list(series)
        self._at = array("q")
        self._read = array("d")

    def __len__(self) -> int:
        return len(self._at)

    def add(self, at_ns: int, values: Sequence[float]) -> None:
        """One reading of all series."""
        read = array("d", values)  # all of them or, where one is no number, none
        if len(read) == len(self._series):
            self._at.append(at_ns)
            self._read.extend(read)

    def thin(self) -> None:
        """Each two readings become one: of totals the first, so that all growth is kept; of others the mean.

        The last one stays as it is.
        """
        width, count = len(self._series), len(self._at)
        if not count:  # a sensor that could be opened and never be read
            return
        at, read = array("q"), array("d")
        for row in range(0, count - 1, 2):
            at.append(self._at[row])
            here, there = self._row(row), self._row(row + 1 if row + 2 < count else row)
            for series, first, second in zip(self._series, here, there, strict=True):
                read.append(first if series.is_total else _mean(first, second))
        at.append(self._at[-1])
        read.extend(self._read[-width:])
        self._at, self._read = at, read

    def _row(self, row: int) -> Sequence[float]:
        width = len(self._series)
        return self._read[row * width : (row + 1) * width]

    def tracks(self) -> list[CounterTrack]:
        """The tracks that tell something; nothing where there are not two readings."""
        if len(self._at) < 2:
            return []
        columns = [self._column(place) for place in range(len(self._series))]
        found = []
        by_track = sorted(range(len(columns)), key=lambda place: self._series[place].track)
        for name, places in groupby(by_track, key=lambda place: self._series[place].track):
            readable = [place for place in places if self._tells(place, columns[place])]
            if readable:
                found.append(self._track(name, readable, columns))
        return found

    def _tells(self, place: int, values: Sequence[float]) -> bool:
        series = self._series[place]
        may_vanish = series.is_total or series.may_vanish
        return any(not math.isnan(value) and (value or not may_vanish) for value in values)

    def _track(self, name: str, places: Sequence[int], columns: Sequence[Sequence[float]]) -> CounterTrack:
        """Moments at which nothing changes are left out, but for the last one: it tells how far the track goes."""
        rows = list(zip(*(columns[place] for place in places), strict=True))
        kept = [row for row in range(len(rows)) if row in (0, len(rows) - 1) or rows[row] != rows[row - 1]]
        return CounterTrack(
            name=name,
            series=[self._series[place].name for place in places],
            at_ns=[self._at[row] for row in kept],
            values=[[None if math.isnan(value) else _shorter(value) for value in rows[row]] for row in kept],
        )

    def _column(self, place: int) -> list[float]:
        """The values by moment. Of a total its growth in a second up to the next moment; the last one repeats."""
        series = self._series[place]
        read = self._read[place :: len(self._series)]
        if not series.is_total:
            return [value * series.scale for value in read]
        rates = [self._rate(series, read, row, row + 1) for row in range(len(read) - 1)]
        # The last stretch ends when the window does: in a few milliseconds one tick looks like all cores at work.
        if len(rates) > 1 and 2 * (self._at[-1] - self._at[-2]) < self._at[-2] - self._at[-3]:
            both = self._rate(series, read, len(read) - 3, len(read) - 1)
            if not math.isnan(rates[-1] + rates[-2]):
                rates[-2:] = both, both
        return [*rates, rates[-1]]

    def _rate(self, series: Series, read: Sequence[float], first: int, last: int) -> float:
        seconds = (self._at[last] - self._at[first]) / 1e9
        growth = read[last] - read[first]
        # What a counter loses when it wraps or starts anew is not known.
        is_known = growth >= 0 and seconds > 0
        return min(growth * series.scale / seconds, series.most) if is_known else math.nan


def _mean(first: float, second: float) -> float:
    return second if math.isnan(first) else first if math.isnan(second) else (first + second) / 2


def _shorter(value: float) -> float:
    """The value with as many digits as matter: whole numbers stay whole."""
    if not math.isfinite(value):
        return 0.0
    if abs(value) >= 10**_DIGITS:
        return float(round(value))
    return float(f"{value:.{_DIGITS}g}")


MOST_SHARE = 0.005
"""Of a core's time the thread takes at most so much: where a sample is expensive, the interval grows."""
LOOK_EVERY_S = 1.0
"""So often the thread asks what can be counted by now: a program may come to its device long after the beginning."""
_PATIENCE_S = 2.0
"""So long the end of a window waits for the last sample at most, off the training thread."""
_FORK_PATIENCE_S = 0.2
"""So long a fork waits at most for sensors to be opened or read."""


class Opened(msgspec.Struct):
    """What can be counted here."""

    sources: Sequence[CounterSource]
    account: CounterAccount


class Samplable(Protocol):
    """What a sampling thread opens, samples and closes."""

    def open(self) -> Opened:
        """The sources: ahead of the sampling, as it begins, and again and again; those that are still good are kept."""

    def finish(self, account: CounterAccount) -> None:
        """May add to the account behind the last sample."""

    def close(self) -> None:
        """Lets go of all that is open."""


class Counted(msgspec.Struct):
    """What was counted in a window."""

    tracks: list[CounterTrack] = []
    """On the clock of `time.time_ns`."""
    account: CounterAccount | None = None


class _Forks:
    """Holds forks off while a sensor is opened or read: a child would keep the file that it is read from open."""

    def __init__(self) -> None:
        self._reading = threading.Lock()
        self._is_forking = False
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(before=self._wait, after_in_parent=self._go_on, after_in_child=self._begin_anew)

    def held_off(self) -> threading.Lock:
        """For a `with` statement."""
        return self._reading

    def _wait(self) -> None:
        if self._reading.acquire(timeout=_FORK_PATIENCE_S):
            self._is_forking = True

    def _go_on(self) -> None:
        if self._is_forking:
            self._is_forking = False
            self._reading.release()

    def _begin_anew(self) -> None:
        self._is_forking = False
        self._reading = threading.Lock()


_forks = _Forks()


class Sampler:
    """Samples from `begin` to `end`; each window has a machine of its own, which its thread closes."""

    def __init__(self, new_machine: Callable[[], Samplable], *, interval_s: float) -> None:
        self._new_machine = new_machine
        self._interval_s = interval_s
        self._window: SamplingThread | None = None

    def prepare(self) -> None:
        """Open the sources ahead of `begin`, on the thread that will sample."""
        if self._window is None:
            self._window = SamplingThread(self._new_machine(), self._interval_s)
            self._window.start()

    def begin(self) -> None:
        self.prepare()
        assert self._window is not None
        self._window.go.set()

    def end(self) -> Callable[[], Counted]:
        """Sample no longer. What is returned gives what was counted; it may wait a little for the last sample."""
        window, self._window = self._window, None
        if window is None:
            return Counted
        window.stop()
        return window.counted

    def abandon(self) -> None:
        """In a forked child: the thread is the parent's."""
        self._window = None


class SamplingThread(threading.Thread):
    """Samples until it is stopped. It never keeps the interpreter alive, and what fails on it ends it alone."""

    def __init__(
        self,
        machine: Samplable,
        interval_s: float,
        *,
        keep: Callable[[Counted], None] | None = None,
        keep_every_s: float = 0.0,
    ) -> None:
        """`keep` gets what was counted so far, again and again."""
        super().__init__(name="deepscope-counters", daemon=True)
        self.go = threading.Event()
        self._ended = threading.Event()
        self._machine = machine
        self._interval_s = interval_s
        self._keep = keep
        self._keep_every_s = keep_every_s
        self._costs_s: list[float] = []
        self._samples: list[tuple[CounterSource, CounterSamples]] = []
        self._closed: list[CounterSamples] = []
        """Of sources that others have taken the place of."""
        self._account: CounterAccount | None = None
        self._unix_ns = 0
        """What to add to the clock of the samples to get Unix time."""

    def start(self) -> None:
        """Where no thread can be had, nothing is counted."""
        with suppress(RuntimeError):
            super().start()

    def stop(self) -> None:
        """Take the last sample and end; returns at once."""
        self._ended.set()
        self.go.set()

    def run(self) -> None:
        """Open, wait for the window, sample until it ends."""
        with suppress(Exception):  # a sensor that nobody foresaw: the run goes on without counters
            self._open()
            self.go.wait()
            self._sample_all()
        with suppress(Exception):
            self._machine.close()

    def _open(self) -> Opened:
        with _forks.held_off():
            return self._machine.open()

    def _sample_all(self) -> None:
        began = time.thread_time_ns()
        opened = self._take(self._open())  # anew: in the warm-up steps a device may have come into use
        self._unix_ns = time.time_ns() - time.perf_counter_ns()
        interval_s = least_s = self._interval_s
        count = 0
        kept_s = looked_s = time.monotonic()
        while True:
            is_last = self._ended.is_set()
            self._costs_s.append(self._sample())
            count += 1
            if is_last:
                break
            if max(map(len, self._all_samples()), default=0) >= MOST_SAMPLES:
                for samples in self._all_samples():
                    samples.thin()
                least_s *= 2
            interval_s = max(least_s, median_low(self._costs_s[-5:]) / MOST_SHARE)  # the first often costs most
            del self._costs_s[:-5]
            if self._keep is not None and time.monotonic() - kept_s >= self._keep_every_s:
                kept_s = time.monotonic()
                self._keep(self._so_far(self._described(opened, interval_s, count, began)))
            if not self._ended.wait(interval_s) and time.monotonic() - looked_s >= LOOK_EVERY_S:
                looked_s = time.monotonic()
                with suppress(Exception):  # whatever fails there: what is counted already goes on
                    opened = self._take(self._open())
        account = self._described(opened, interval_s, count, began)
        with suppress(Exception):  # of what nobody foresaw there the samples are no less true
            self._machine.finish(account)
        account.cost_ns = time.thread_time_ns() - began
        self._account = account
        if self._keep is not None:
            self._keep(self._so_far(account))

    def _take(self, opened: Opened) -> Opened:
        """Sample these sources from here on."""
        so_far = {id(source): samples for source, samples in self._samples}
        self._samples = [
            (one, so_far.pop(id(one)) if id(one) in so_far else CounterSamples(one.series)) for one in opened.sources
        ]
        self._closed += so_far.values()
        return opened

    def _all_samples(self) -> list[CounterSamples]:
        return [*self._closed, *(samples for _, samples in self._samples)]

    @staticmethod
    def _described(opened: Opened, interval_s: float, count: int, began: int) -> CounterAccount:
        return msgspec.structs.replace(
            opened.account,
            interval_ns=int(interval_s * 1e9),
            samples=count,
            cost_ns=time.thread_time_ns() - began,
            missing=list(opened.account.missing),
        )

    def _sample(self) -> float:
        """One sample of each source; what it cost this thread, in seconds."""
        began = time.thread_time_ns()
        for source, samples in self._samples:
            at_ns = time.perf_counter_ns()
            with _forks.held_off(), suppress(Exception):  # a sensor that has gone for a moment, or for good
                samples.add(at_ns, source.read())
        return (time.thread_time_ns() - began) / 1e9

    def wait(self, most_s: float) -> None:
        """Until it has come to its end, which `stop` asks for."""
        if self.is_alive():
            self.join(most_s)

    def counted(self) -> Counted:
        """What was counted; nothing where the thread does not come to its end."""
        self.wait(_PATIENCE_S)
        if self.is_alive() or self._account is None:
            return Counted()
        return self._so_far(self._account)

    def _so_far(self, account: CounterAccount) -> Counted:
        tracks = [track for samples in self._all_samples() for track in samples.tracks()]
        for track in tracks:
            track.at_ns = [at_ns + self._unix_ns for at_ns in track.at_ns]
        return Counted(tracks, account)

"""The thread that samples counters: it sleeps for nearly all of the time, and wakes less often where they are dear."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from statistics import median_low
from typing import Protocol

import msgspec

from deepscope.capture.counters.samples import MOST_SAMPLES, CounterSamples, CounterTrack
from deepscope.capture.counters.source import CounterSource
from deepscope.trace.format.counters import CounterAccount

INTERVAL_S = 0.1
MOST_SHARE = 0.005
"""Of a core's time the thread takes at most so much: where a sample is dear, the interval grows."""
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

    def __init__(self, new_machine: Callable[[], Samplable], *, interval_s: float = INTERVAL_S) -> None:
        self._new_machine = new_machine
        self._interval_s = interval_s
        self._window: SamplingThread | None = None

    def prepare(self) -> None:
        """Open the sources ahead of `begin`, on the thread that will sample."""
        if self._window is None:
            self._window = SamplingThread(self._new_machine(), self._interval_s)
            self._window.start()

    def begin(self) -> None:
        """Sample from here on."""
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
        least_s = self._interval_s
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
            interval_s = max(least_s, median_low(self._costs_s[-5:]) / MOST_SHARE)  # the first is often the dearest
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

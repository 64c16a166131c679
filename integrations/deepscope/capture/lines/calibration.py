"""What recording costs, measured where it is paid: in callbacks taken as samples while a window is open."""

from __future__ import annotations

from collections import deque
from enum import Enum, auto
from time import perf_counter_ns

from deepscope.capture.lines.overhead import Overhead, measure_overhead

_KEPT = 512
_FIRST_BURST = 384
_BURST = 96
_INTERRUPTED = 8
"""A sample of so many times the median was interrupted. Shorter ones count: in some of them torch takes memory."""
_FEWEST = 4
_UNKNOWN_NS = 800


class Work(Enum):
    """What one callback did."""

    ENTRY = auto()
    """A line began, with a scope."""
    QUIET = auto()
    """A line past its budget began, without one."""
    SILENT = auto()
    """A library's line that holds no operator began, without a scope."""
    TRIAL = auto()
    """A line on trial began, with a scope whose time is taken."""
    MODULE = auto()
    """A module's call began, with a scope."""
    CALL = auto()
    """A frame began, or ended: half a call."""


_TIMES_AN_ENTRY = {Work.QUIET: 2, Work.TRIAL: 3, Work.MODULE: 2}


class CostSamples:
    """Durations of callbacks of this process, the newest of each kind of work, taken in bursts."""

    clock = staticmethod(perf_counter_ns)

    def __init__(self) -> None:
        self._samples: dict[Work, deque[int]] = {work: deque(maxlen=_KEPT) for work in Work}
        self._means: dict[Work, int] = {}
        self._wanted = _FIRST_BURST
        self.is_complete = False
        """Whether the burst is over; no property, for the hooks read it."""
        self.overhead = Overhead()
        """Python's own part; none until `prepare`."""
        self._is_prepared = False

    def begin_burst(self) -> None:
        """Take samples again for a while."""
        self._wanted = max(self._wanted, _BURST)
        self.is_complete = False

    def add(self, work: Work, duration_ns: int) -> None:
        """Take in one callback's duration."""
        self._wanted -= 1
        self.is_complete = self._wanted <= 0
        self._samples[work].append(duration_ns)
        self._means.pop(work, None)

    def prepare(self) -> None:
        """Before a window, while no hook is in place: measure once what Python itself takes."""
        self.begin_burst()
        if not self._is_prepared:
            self._is_prepared = True
            self.overhead = measure_overhead()

    def of(self, work: Work) -> int:
        """Nanoseconds that one callback costs, Python's part included; a guess where there are few samples."""
        known = self._means.get(work)
        if known is None:
            samples = sorted(self._samples[work])
            if len(samples) < _FEWEST:
                return _TIMES_AN_ENTRY[work] * self.of(Work.ENTRY) if work in _TIMES_AN_ENTRY else self._unknown_ns
            longest = _INTERRUPTED * samples[len(samples) // 2]
            kept = [sample for sample in samples if sample <= longest]
            known = self._means[work] = sum(kept) // len(kept)
        return known + self.overhead.event_ns

    @property
    def _unknown_ns(self) -> int:
        return _UNKNOWN_NS + self.overhead.event_ns

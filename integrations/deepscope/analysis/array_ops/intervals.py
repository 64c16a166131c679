"""Operations on half-open time intervals `[start, end)` in exact integer nanoseconds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from deepscope.analysis.array_ops.selection import Mask, expanded, sums
from deepscope.trace.arrays import distinct_places, distinct_values
from deepscope.trace.model import Events, Int64


@dataclass(frozen=True, slots=True)
class Intervals:
    """Disjoint intervals in ascending order, none of them empty; both arrays have shape (k,)."""

    start: Int64
    end: Int64

    @property
    def total_ns(self) -> int:
        """Their length together."""
        return int((self.end - self.start).sum())

    def covered_before(self, ts: Int64) -> Int64:
        """How many covered nanoseconds lie before each instant; `ts` and the result have shape (q,)."""
        if not len(self.start):
            return np.zeros(len(ts), np.int64)
        before = np.concatenate(([0], np.cumsum(self.end - self.start)))
        i = np.searchsorted(self.start, ts, side="right")
        inside = np.minimum(ts, self.end[i - 1]) - self.start[i - 1]
        return np.where(i > 0, before[i - 1] + inside, 0)

    def overlap_ns(self, start: Int64, end: Int64) -> Int64:
        """Covered nanoseconds within each interval `[start, end)` asked for; shape (q,)."""
        return self.covered_before(np.maximum(start, end)) - self.covered_before(start)

    def locate(self, ts: Int64) -> Int64:
        """Index of the interval that holds each instant, -1 for none; shape (q,)."""
        if not len(self.start):
            return np.full(len(ts), -1, np.int64)
        i = np.searchsorted(self.start, ts, side="right") - 1
        return np.where((i >= 0) & (ts < self.end[i]), i, -1)

    def near(self, start: int, end: int) -> Intervals:
        """Those with a part between two instants."""
        low = int(np.searchsorted(self.end, start, side="right"))
        chosen = slice(low, max(low, int(np.searchsorted(self.start, end, side="left"))))
        return Intervals(self.start[chosen], self.end[chosen])

    def cut(self, at: Int64) -> Intervals:
        """All of them in touching pieces that end at each instant `at` within."""
        cuts = distinct_values(np.concatenate((self.start, self.end, at)))
        start, end = cuts[:-1], cuts[1:]
        inside = self.locate(start) >= 0
        return Intervals(start[inside], end[inside])

    def complement(self, window: Intervals) -> Intervals:
        """The part of `window` that they leave free."""
        return _sweep(window, self, wanted=2)

    def intersection(self, other: Intervals) -> Intervals:
        """What lies in both."""
        return _sweep(self, other, wanted=3)

    def of_each_ns(self, start: Int64, end: Int64) -> Int64:
        """How much of any intervals, summed up, lies in each of these; shape (k,)."""
        first = np.searchsorted(self.end, start, side="right")
        row, place = expanded(first, np.searchsorted(self.start, end, side="left") - first)
        return sums(
            place, len(self.start), np.minimum(end[row], self.end[place]) - np.maximum(start[row], self.start[place])
        )


NO_INTERVALS = Intervals(np.zeros(0, np.int64), np.zeros(0, np.int64))


def _sweep(a: Intervals, b: Intervals, *, wanted: int) -> Intervals:
    """The stretches where "in a" counts 2 and "in b" counts 1 and the sum is `wanted`."""
    ts = np.concatenate((a.start, a.end, b.start, b.end))
    step = np.repeat(np.array([2, -2, 1, -1]), [len(a.start), len(a.end), len(b.start), len(b.end)])
    order = np.argsort(ts, kind="stable")
    ts = ts[order]
    state = np.cumsum(step[order])
    hit = np.flatnonzero((state[:-1] == wanted) & (ts[1:] > ts[:-1])) if len(ts) else np.zeros(0, np.int64)
    return union(ts[hit], ts[hit + 1])


def union(start: Int64, end: Int64) -> Intervals:
    """The union of any intervals, in any order. Touching ones become one; empty ones vanish."""
    real = end > start
    if not real.all():
        start, end = start[real], end[real]
    if not len(start):
        return NO_INTERVALS
    order = np.argsort(start, kind="stable")
    start = start[order]
    reach = np.maximum.accumulate(end[order])
    first = np.flatnonzero(np.concatenate(([True], start[1:] > reach[:-1])))
    last = np.concatenate((first[1:] - 1, [len(start) - 1]))
    return Intervals(start[first], reach[last])


class Timed(Protocol):
    """What has a start and an end, in two columns: events, work."""

    @property
    def start_ns(self) -> Int64: ...
    @property
    def end_ns(self) -> Int64: ...


def covered_by(timed: Timed, rows: Int64 | Mask) -> Intervals:
    """The union of the time of some events, or of some work."""
    return union(timed.start_ns[rows], timed.end_ns[rows])


def union_of(*several: Intervals) -> Intervals:
    """What lies in any of them."""
    nothing = np.zeros(0, np.int64)
    return union(
        np.concatenate([nothing, *(one.start for one in several)]),
        np.concatenate([nothing, *(one.end for one in several)]),
    )


class GroupedUnion(NamedTuple):
    """The unions of the intervals of several groups."""

    groups: Int64
    """The groups that occur, ascending."""
    place: Int64
    """The group of each stretch, a place in `groups`; the stretches of a group are disjoint. Shape (k,)."""
    start: Int64
    end: Int64


def grouped_union(start: Int64, end: Int64, group: npt.NDArray[np.integer]) -> GroupedUnion:
    """The union of the intervals of each group; all arguments have shape (n,)."""
    groups, place = distinct_places(group)
    if not len(groups):
        return GroupedUnion(groups, place, start, end)
    # One sweep serves all groups when each has a stretch of the axis to itself.
    origin = int(start.min())
    span = int(end.max()) - origin + 1
    if span * len(groups) < 2**63:
        shift = place * span - origin
        whole = union(start + shift, end + shift)
        of = whole.start // span
        return GroupedUnion(groups, of, whole.start - of * span + origin, whole.end - of * span + origin)
    instants, places = np.unique(np.concatenate((start, end)), return_inverse=True)
    width = len(instants)
    whole = union(*(places.reshape(2, -1) + place * width))
    return GroupedUnion(groups, whole.start // width, instants[whole.start % width], instants[whole.end % width])


@dataclass(frozen=True, slots=True)
class Extent:
    """Spans of time, None for the whole trace. Events count where they start; durations are clipped."""

    spans: Intervals | None
    events: Mask | None = None
    """The CPU's events that count, where that is not a matter of time alone; shape (n,)."""
    work: Mask | None = None
    """The same of work, whatever the time of its launch; shape (w,)."""

    @property
    def is_whole(self) -> bool:
        """Whether it leaves out nothing."""
        return self.spans is None and self.events is None and self.work is None

    def holds(self, ts: Int64) -> Mask:
        """Which instants lie in it; shape (q,)."""
        return np.ones(len(ts), np.bool_) if self.spans is None else self.spans.locate(ts) >= 0

    def chooses(self, rows: Int64) -> Mask:
        """Which events (indexes, -1 for none) count at all, whatever their time; shape (q,)."""
        return np.ones(len(rows), np.bool_) if self.events is None else (rows >= 0) & self.events[rows]

    def begins(self, events: Events, rows: Int64) -> Mask:
        """Which events (indexes) start in it; shape (q,)."""
        found = self.holds(events.start_ns[rows])
        return found if self.events is None else found & self.events[rows]

    def launched(self, launch_ns: Int64) -> Mask:
        """Which work was launched in it; shape (w,)."""
        return self.holds(launch_ns) if self.work is None else self.work

    def clipped_ns(self, start: Int64, end: Int64) -> Int64:
        """How much of each interval lies in it; shape (q,)."""
        return end - start if self.spans is None else self.spans.overlap_ns(start, end)

    def clipped_ns_of(self, rows: Int64, start: Int64, end: Int64) -> Int64:
        """The same of intervals that stand for events (indexes); shape (q,)."""
        lengths = self.clipped_ns(start, end)
        return lengths if self.events is None else np.where(self.events[rows], lengths, 0)

    def nested_ns(self, events: Int64, start: Int64, end: Int64, callers: Int64) -> Int64:
        """`clipped_ns_of`, each end cut to that of its caller (a position, -1 for none): not all close in order."""
        limit = np.where(callers < 0, end, end[callers])
        return self.clipped_ns_of(events, start, np.minimum(end, limit))

    def grouped_union_ns(self, start: Int64, end: Int64, group: npt.NDArray[np.integer]) -> tuple[Int64, Int64]:
        """The groups that occur, ascending, and how much of the union of each one's intervals lies in it; both (g,)."""
        found = grouped_union(start, end, group)
        return found.groups, sums(found.place, len(found.groups), self.clipped_ns(found.start, found.end))

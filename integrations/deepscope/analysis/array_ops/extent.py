"""Which part of a trace is asked for: all of it, some spans of time, some of its events."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deepscope.analysis.array_ops.intervals import Intervals, grouped_union_ns
from deepscope.analysis.array_ops.selection import Mask
from deepscope.trace.model import Events, Int64


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

    def grouped_union_ns(self, start: Int64, end: Int64, group: Int64) -> tuple[Int64, Int64]:
        """`intervals.grouped_union_ns` of what lies in it. A group may occur once for each span."""
        if self.spans is None:
            return grouped_union_ns(start, end, group)
        groups, lengths = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for first, last in zip(self.spans.start, self.spans.end, strict=True):
            inside = (start < last) & (end > first)
            found = grouped_union_ns(np.maximum(start[inside], first), np.minimum(end[inside], last), group[inside])
            groups.append(found[0])
            lengths.append(found[1])
        return np.concatenate(groups), np.concatenate(lengths)

"""Which part of a trace is asked for: all of it, or one step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deepscope.analysis.algebra.intervals import Intervals, grouped_union_ns
from deepscope.analysis.algebra.selection import Mask
from deepscope.trace.model import Int64

__all__ = ["Extent"]


@dataclass(frozen=True, slots=True)
class Extent:
    """Spans of time, None for the whole trace. Events count where they start; durations are clipped."""

    spans: Intervals | None

    def holds(self, ts: Int64) -> Mask:
        """Which instants lie in it; shape (q,)."""
        return np.ones(len(ts), np.bool_) if self.spans is None else self.spans.locate(ts) >= 0

    def clipped_ns(self, start: Int64, end: Int64) -> Int64:
        """How much of each interval lies in it; shape (q,)."""
        return end - start if self.spans is None else self.spans.overlap_ns(start, end)

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

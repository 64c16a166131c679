"""Where the CPU waited for the device: synchronising calls, by line, each thread's overlaps counted once."""

from __future__ import annotations

import numpy as np

from deepscope.analysis.algebra.selection import by_line
from deepscope.analysis.extent import WHOLE, Extent
from deepscope.analysis.ownership.attribution import Attribution
from deepscope.trace.model import Int64

__all__ = ["wait_by_line"]


def wait_by_line(attribution: Attribution, extent: Extent = WHOLE) -> Int64:
    """Nanoseconds waited by line; shape (lines + 1,), the last place for waits on no line."""
    events = attribution.trace.events
    found = attribution.waits
    lines = len(attribution.scopes.locations)
    group = events.thread[found].astype(np.int64) * (lines + 1) + attribution.location[found] + 1
    groups, lengths = extent.grouped_union_ns(events.start_ns[found], events.end_ns[found], group)
    return by_line(groups % (lines + 1) - 1, lines, lengths)

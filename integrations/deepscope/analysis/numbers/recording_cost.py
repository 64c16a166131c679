"""What the line scopes themselves cost the program, as the recorder calibrated it."""

from __future__ import annotations

import numpy as np

from deepscope.analysis.algebra.intervals import Intervals
from deepscope.analysis.algebra.selection import by_line
from deepscope.analysis.ownership.attribution import Attribution
from deepscope.trace.model import Int64

__all__ = ["cost_of_entry_ns", "recorded_ns", "recorded_within_ns"]

_DEAREST_ENTRY_NS = 10**6
"""A thousand times what entries cost: a greater cost is damage, and would overflow."""


def cost_of_entry_ns(attribution: Attribution) -> int:
    """What one entry of a line scope cost; 0 for traces of others."""
    if attribution.scopes.source != "scopes":
        return 0
    return round(min(max(attribution.trace.header.lines.cost_ns, 0), _DEAREST_ENTRY_NS))


def recorded_ns(attribution: Attribution, stretches: Intervals) -> Int64:
    """What entries on the training thread within stretches of time cost, by line; shape (lines + 1,)."""
    start, location = _entries(attribution)
    location = location[stretches.locate(start) >= 0]
    return np.asarray(by_line(location, len(attribution.scopes.locations)) * cost_of_entry_ns(attribution))


def recorded_within_ns(attribution: Attribution, start: Int64, end: Int64) -> Int64:
    """What entries on the training thread cost within each stretch of time; shape (k,), as `start` and `end`."""
    entered = np.sort(_entries(attribution)[0])
    entries = np.searchsorted(entered, end) - np.searchsorted(entered, start)
    return np.asarray(entries * cost_of_entry_ns(attribution))


def _entries(attribution: Attribution) -> tuple[Int64, Int64]:
    """When the training thread entered a line, and which."""
    events = attribution.trace.events
    entered = np.flatnonzero(attribution.scopes.marks & (events.thread == attribution.training_thread))
    return events.start_ns[entered], attribution.scopes.location[entered]

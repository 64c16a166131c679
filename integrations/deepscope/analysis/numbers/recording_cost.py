"""What the line scopes themselves cost the program, as the recorder calibrated it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deepscope.analysis.algebra.intervals import Intervals
from deepscope.analysis.algebra.selection import by_line
from deepscope.analysis.ownership.locations import Scopes
from deepscope.analysis.ownership.owners import LineRuns
from deepscope.trace.model import Int64, Trace

__all__ = ["RecordingCost", "cost_of_entry_ns", "recording_cost"]

_DEAREST_ENTRY_NS = 10**6
"""A thousand times the usual cost. A greater one is damage, and would overflow."""


def cost_of_entry_ns(trace: Trace, scopes: Scopes) -> int:
    """What one entry of a line scope cost; 0 for traces of others."""
    if scopes.source != "scopes":
        return 0
    return round(min(max(trace.header.lines.cost_ns, 0), _DEAREST_ENTRY_NS))


@dataclass(frozen=True, slots=True)
class RecordingCost:
    """What entries of line scopes cost the training thread; arrays of shape (k,), one row an entry."""

    entry_ns: int
    start: Int64
    """When each line was entered, ascending."""
    location: Int64
    lines: int

    def by_line(self, stretches: Intervals) -> Int64:
        """The cost within stretches of time; shape (lines + 1,)."""
        inside = stretches.locate(self.start) >= 0
        return np.asarray(by_line(self.location[inside], self.lines) * self.entry_ns)

    def within(self, start: Int64, end: Int64) -> Int64:
        """The cost in each stretch of time; shape (q,), as `start` and `end`."""
        entries = np.searchsorted(self.start, end) - np.searchsorted(self.start, start)
        return np.asarray(entries * self.entry_ns)


def recording_cost(trace: Trace, scopes: Scopes, runs: LineRuns, training_thread: int) -> RecordingCost:
    """The cost of all runs of lines on the training thread; those of library lines count where they were called."""
    entered = np.concatenate((runs.nodes, runs.library))
    location = np.concatenate((runs.location, runs.location[runs.library_caller]))
    here = np.flatnonzero(trace.events.thread[entered] == training_thread)
    start = trace.events.start_ns[entered[here]]
    order = np.argsort(start, kind="stable")
    return RecordingCost(cost_of_entry_ns(trace, scopes), start[order], location[here[order]], len(scopes.locations))

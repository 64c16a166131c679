"""CPU time by line: inside the line's scopes, without (self) and with (total) the lines called from it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deepscope.analysis.algebra.ancestry import nearest, pick, position_in
from deepscope.analysis.algebra.selection import by_line, of_kind
from deepscope.analysis.extent import WHOLE, Extent
from deepscope.analysis.numbers.off_cpu import waiting_ns
from deepscope.analysis.numbers.recording_cost import cost_of_entry_ns
from deepscope.analysis.ownership.attribution import Attribution
from deepscope.trace.model import Int64, Kind

__all__ = ["CpuTime", "cpu_time"]


@dataclass(frozen=True, slots=True)
class CpuTime:
    """CPU time by call path on the thread itself, and entries by line."""

    self_by_path: Int64
    """Shape (paths,)."""
    no_line_ns: int
    """Time in operators that ran with no line open on their thread."""
    calls: Int64
    """Times each line was entered; shape (lines + 1,)."""
    recording: Int64
    """DeepScope's own cost by line, already taken off; shape (lines + 1,)."""
    python: Int64
    """Self time by line outside operators and runtime calls; shape (lines + 1,), 0 without line scopes."""
    loader_wait: Int64
    """The part of it that waited for data-loader workers; shape (lines + 1,)."""
    blocked: Int64
    """The part of it that was off the CPU for another reason; shape (lines + 1,)."""


def cpu_time(attribution: Attribution, extent: Extent = WHOLE) -> CpuTime:
    """CPU time of every line. A line's total is the sum over the paths that hold it, `PathTable.totals`.

    Without scopes in the trace (`Call stack` texts alone) the operators' own time stands in for the scopes'.
    """
    if attribution.scopes.source == "call_stack":
        return _from_operators(attribution, extent)
    events = attribution.trace.events
    nodes = np.flatnonzero(attribution.scopes.marks)
    around = pick(attribution.open_scope, attribution.calls.parent[nodes])
    callers = position_in(nodes, around, len(events))
    start = events.start_ns[nodes]
    within = _nested_ns(start, events.end_ns[nodes], callers, extent)
    np.subtract.at(within, callers[callers >= 0], within[callers >= 0])
    entered = extent.holds(start)
    cost = cost_of_entry_ns(attribution)
    own = np.maximum(within - cost * entered, 0)
    paths = attribution.paths
    path = paths.intern_forest(callers, attribution.scopes.location[nodes])
    by_path = np.zeros(len(paths), np.int64)
    np.add.at(by_path, path, own)
    location, lines = attribution.scopes.location[nodes], len(attribution.scopes.locations)
    calls = by_line(location[entered], lines)
    outside = _outside_calls_ns(attribution, extent, nodes)
    python = np.minimum(np.maximum(outside - cost * entered, 0), own)
    loader_wait, blocked = waiting_ns(attribution, extent, nodes, python, np.maximum(within - outside, 0))
    return CpuTime(
        by_path,
        _without_line_ns(attribution, extent),
        calls,
        calls * cost,
        *(by_line(location, lines, values) for values in (python, loader_wait, blocked)),
    )


def _outside_calls_ns(attribution: Attribution, extent: Extent, scopes: Int64) -> Int64:
    """Time in each line scope when no operator, no runtime call and no other scope was open in it; same shape."""
    if attribution.scopes.source != "scopes":
        return np.zeros(len(scopes), np.int64)
    events = attribution.trace.events
    counted = attribution.scopes.marks | of_kind(attribution.trace, Kind.OPERATOR, Kind.RUNTIME)
    nodes = np.flatnonzero(counted)
    parent = attribution.calls.parent
    callers = position_in(nodes, pick(nearest(parent, counted), parent[nodes]), len(events))
    within = _nested_ns(events.start_ns[nodes], events.end_ns[nodes], callers, extent)
    outside = within.copy()
    np.subtract.at(outside, callers[callers >= 0], within[callers >= 0])
    own: Int64 = outside[position_in(nodes, scopes, len(events))]
    return np.maximum(own, 0)


def _nested_ns(start: Int64, end: Int64, callers: Int64, extent: Extent) -> Int64:
    """Durations within the extent, each end cut to its caller's: scopes not closed in order overlap."""
    limit = np.where(callers < 0, end, end[callers])
    return extent.clipped_ns(start, np.minimum(end, limit))


def _without_line_ns(attribution: Attribution, extent: Extent) -> int:
    """Time in outermost operators on threads where no line was open."""
    events = attribution.trace.events
    operators = attribution.operators
    top = operators.nodes[(operators.caller < 0) & (attribution.open_scope[operators.nodes] < 0)]
    return int(extent.clipped_ns(events.start_ns[top], events.end_ns[top]).sum())


def _from_operators(attribution: Attribution, extent: Extent) -> CpuTime:
    operators = attribution.operators
    counted = extent.holds(attribution.trace.events.start_ns[operators.nodes])
    by_path = np.zeros(len(attribution.paths), np.int64)
    # As with scopes, the time of autograd's engine is not the forward line's.
    path = np.where(attribution.backward, 0, attribution.path)[operators.nodes]
    np.add.at(by_path, path[counted], operators.self_ns[counted])
    no_line, by_path[0] = int(by_path[0]), 0
    nothing = np.zeros(len(attribution.scopes.locations) + 1, np.int64)
    return CpuTime(by_path, no_line, nothing, nothing, nothing, nothing, nothing)

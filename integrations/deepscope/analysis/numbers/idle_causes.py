"""Idle time by what the CPU did meanwhile (waited, loaded data, launched, else); a training framework's own time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deepscope.analysis.array_ops.intervals import NO_INTERVALS, Extent, Intervals, covered_by, union_of
from deepscope.analysis.array_ops.selection import Columns, Mask, by_line, of_kind
from deepscope.analysis.numbers.phases import PhaseTimeline
from deepscope.analysis.numbers.work import HostTimeline, idle, is_copy_in
from deepscope.analysis.ownership.attribution import Attribution
from deepscope.analysis.ownership.modules import FrameworkSpans
from deepscope.trace.arrays import distinct_places, distinct_values, nearest, pick, position_in, self_values
from deepscope.trace.joins.nesting import innermost
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Events, Int64


@dataclass(frozen=True, slots=True)
class FrameworkTime:
    """Nanoseconds by line and part; nothing for most traces."""

    line: Int64
    """The lines that call the framework's loop, ascending; shape (h,)."""
    ns: Int64
    """Shape (h, parts)."""

    def by_line(self, lines: int) -> Int64:
        """All parts together; shape (lines + 1,)."""
        return by_line(self.line, lines, self.ns.sum(axis=1))

    def __add__(self, other: FrameworkTime) -> FrameworkTime:
        return _summed(np.concatenate((self.line, other.line)), np.concatenate((self.ns, other.ns)))

    @classmethod
    def none(cls, parts: int) -> FrameworkTime:
        """No line has any."""
        return cls(np.zeros(0, np.int64), np.zeros((0, parts), np.int64))


def self_times(of: Attribution, counted: Mask, extent: Extent) -> tuple[Int64, Int64]:
    """Some events (ascending), and the time in each within the extent in which no other of them was open."""
    events = of.trace.events
    nodes = np.flatnonzero(counted)
    caller = position_in(nodes, pick(nearest(of.calls.parent, counted), of.calls.parent[nodes]), len(events))
    return nodes, self_values(extent.nested_ns(nodes, events.start_ns[nodes], events.end_ns[nodes], caller), caller)


def python_of_framework(of: Attribution, *, counted: Mask, at_most: Int64, extent: Extent) -> FrameworkTime:
    """Python's own time in the lines that call the loop, where it is the framework's.

    Args:
        of: the joined trace.
        counted: the events that stand for lines, operators and calls of the runtime; shape (n,).
        at_most: Python's own time in each run of a line, without that of waiting for a loader; shape (k,).
        extent: the part of the trace that counts.
    """
    spans, runs, among = of.framework, of.runs, len(of.trace.events)
    hosts, parts = spans.hosts, len(spans.parts)
    if not len(hosts):
        return FrameworkTime.none(parts)
    inner = counted.copy()
    inner[spans.nodes] = True
    nodes, own = self_times(of, inner, extent)
    # The loop itself is what no span tells of: the first part.
    events_of = np.concatenate((hosts, spans.nodes))
    host = np.concatenate((np.arange(len(hosts)), position_in(hosts, spans.run, among)))
    part = np.concatenate((np.zeros(len(hosts), np.int64), spans.part))
    known = part >= 0
    found = np.zeros((len(hosts), parts), np.int64)
    np.add.at(found, (host[known], part[known]), own[position_in(nodes, events_of[known], among)])
    place = position_in(runs.nodes, hosts, among)
    return _summed(runs.location[place], _limited(found, at_most[place]))


def idle_of_framework(
    events: Events, spans: FrameworkSpans, *, calls: Intervals, line: HostTimeline, location: Int64, idle: Intervals
) -> FrameworkTime:
    """A device's idle time while the framework worked on the training thread.

    Args:
        events: of the trace.
        spans: of the framework, on the training thread alone.
        calls: when operators and calls of the runtime ran on that thread.
        line: what the thread was on.
        location: the line of each event; shape (n,).
        idle: the idle time that has no other cause.
    """
    hosts, parts = spans.hosts, len(spans.parts)
    if not len(hosts):
        return FrameworkTime.none(parts)
    own = calls.complement(idle)
    start, end = events.start_ns[spans.nodes], events.end_ns[spans.nodes]
    cuts = distinct_values(np.concatenate((line.start, line.end, start, end)))
    begin, after = cuts[:-1], cuts[1:]
    zero = np.zeros(len(begin), np.int64)
    found = innermost(begin, zero, start, end, np.zeros(len(start), np.int64))
    part = np.where(found < 0, 0, pick(spans.part, found))
    at = np.searchsorted(line.start, begin, side="right") - 1
    here = pick(line.location, np.where((at >= 0) & (begin < line.end[at]), at, -1))
    counted = (part >= 0) & np.isin(here, distinct_values(location[hosts])) & (here >= 0)
    values = np.zeros((int(counted.sum()), parts), np.int64)
    values[np.arange(len(values)), part[counted]] = own.overlap_ns(begin[counted], after[counted])
    return _summed(here[counted], values)


def _limited(values: Int64, at_most: Int64) -> Int64:
    """Rows that sum to more than they may are lowered in proportion; both of shape (h, …)."""
    whole: Int64 = values.sum(axis=1)
    over = whole > at_most
    lowered = values[over] * (np.maximum(at_most[over], 0) / whole[over])[:, None]
    result: Int64 = values.copy()
    result[over] = lowered.astype(np.int64)
    return result


def _summed(line: Int64, ns: Int64) -> FrameworkTime:
    lines, place = distinct_places(line)
    sums = np.zeros((len(lines), ns.shape[1]), np.int64)
    np.add.at(sums, place, ns)
    return FrameworkTime(lines, sums)


def idle_by_cause(
    of: Attribution, timeline: HostTimeline | None, within: Intervals, phases: PhaseTimeline, waits: Int64
) -> tuple[Columns, FrameworkTime]:
    """Idle nanoseconds by line, divided into `data_ns`, `waiting_ns`, `launch_ns` and `host_ns`, which sum to it.

    At an instant when several hold, the first of them counts. Shape (lines + 1,), the last place for no line. Beside
    them the part of `host_ns` in which the framework worked.

    Args:
        of: the joined trace.
        timeline: the line of the training thread at each instant of the window; None without a device.
        within: the window.
        phases: of the trace.
        waits: `find_waits`.
    """
    lines = len(of.scopes.locations)
    names = ("data_ns", "waiting_ns", "launch_ns")
    columns = {name: np.zeros(lines + 1, np.int64) for name in (*names, "host_ns")}
    found = FrameworkTime.none(len(of.framework.parts))
    if timeline is None:
        return columns, found
    states = _states(of, phases, waits)
    spans, calls = _on_training_thread(of)
    for gap in idle(of.work, within):
        left = gap
        for name, state in zip(names, states, strict=True):
            columns[name] += _at_lines(timeline, left.intersection(state), lines)
            left = state.complement(left)
        columns["host_ns"] += _at_lines(timeline, left, lines)
        found += idle_of_framework(
            of.trace.events, spans, calls=calls, line=timeline, location=of.owners.location, idle=left
        )
    return columns, found


def occupied(of: Attribution, phases: PhaseTimeline, waits: Int64) -> Intervals:
    """While the training thread loads data or waits for the device, or something launches work."""
    return union_of(*_states(of, phases, waits))


def _states(of: Attribution, phases: PhaseTimeline, waits: Int64) -> tuple[Intervals, Intervals, Intervals]:
    events = of.trace.events
    waiting = covered_by(events, waits[events.thread[waits] == of.training.thread])
    return _loading(of, phases), waiting, _launching(of)


def _on_training_thread(of: Attribution) -> tuple[FrameworkSpans, Intervals]:
    """The framework's spans there, and when operators and calls of the runtime ran."""
    events, spans = of.trace.events, of.framework
    here = events.thread[spans.nodes] == of.training.thread
    if not here.any():
        return spans.only(here), NO_INTERVALS
    calls = np.flatnonzero(of_kind(of.trace, Kind.OPERATOR, Kind.RUNTIME) & (events.thread == of.training.thread))
    return spans.only(here), covered_by(events, calls)


def _at_lines(timeline: HostTimeline, spans: Intervals, lines: int) -> Int64:
    return by_line(timeline.location, lines, spans.overlap_ns(timeline.start, timeline.end))


def _loading(of: Attribution, phases: PhaseTimeline) -> Intervals:
    """While the training thread loads data, or runs an operator that copies to the device."""
    operators = of.operators
    copying = pick(operators.nodes, pick(operators.around, of.work.node[is_copy_in(of.trace, of.work, "h2d")]))
    copying = copying[copying >= 0]
    events = of.trace.events
    copying = copying[events.thread[copying] == of.training.thread]
    return union_of(phases.spans_of("data"), covered_by(events, copying))


def _launching(of: Attribution) -> Intervals:
    """While an outermost operator that launches work runs on any thread, or a call of the runtime that does."""
    operators, calls = of.operators, of.work.node[of.work.node >= 0]
    at = pick(operators.around, calls)
    outermost = nearest(operators.caller, operators.caller < 0)
    top = pick(outermost, at)
    return covered_by(of.trace.events, np.concatenate((operators.nodes[top[top >= 0]], calls[top < 0])))

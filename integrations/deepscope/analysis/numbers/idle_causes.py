"""Idle time of the devices by what the CPU did meanwhile: waited, loaded data, launched work, or anything else."""

from __future__ import annotations

import numpy as np

from deepscope.analysis.array_ops.ancestry import nearest
from deepscope.analysis.array_ops.intervals import NO_INTERVALS, Intervals, union
from deepscope.analysis.array_ops.selection import Columns, Mask, by_line, distinct, of_kind
from deepscope.analysis.numbers.framework_time import FrameworkTime, idle_of_framework
from deepscope.analysis.numbers.phases import PhaseTimeline
from deepscope.analysis.numbers.work import HostTimeline, copy_direction, idle
from deepscope.analysis.ownership.attribution import Attribution
from deepscope.analysis.ownership.modules import FrameworkSpans
from deepscope.records import PHASES
from deepscope.trace.arrays import pick
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Events, Int64


def is_copy_in(of: Attribution, *directions: str) -> Mask:
    """Which pieces of work are copies of these directions (`h2d`, `d2h`); shape (w,)."""
    trace, work = of.trace, of.work
    copies = work.kind == Kind.MEMCPY
    names = trace.events.name[work.event]
    table = np.zeros(len(trace.strings) + 1, np.bool_)
    for name in distinct(names[copies], len(trace.strings)):
        table[name] = copy_direction(trace.strings[name]) in directions
    return np.asarray(copies & table[names])


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
    states = _states(of, phases, waits)
    return union(np.concatenate([one.start for one in states]), np.concatenate([one.end for one in states]))


def _states(of: Attribution, phases: PhaseTimeline, waits: Int64) -> tuple[Intervals, Intervals, Intervals]:
    events = of.trace.events
    waiting = _spans(events, waits[events.thread[waits] == of.training.thread])
    return _loading(of, phases), waiting, _launching(of)


def _on_training_thread(of: Attribution) -> tuple[FrameworkSpans, Intervals]:
    """The framework's spans there, and when operators and calls of the runtime ran."""
    events, spans = of.trace.events, of.framework
    here = events.thread[spans.nodes] == of.training.thread
    if not here.any():
        return spans.only(here), NO_INTERVALS
    calls = np.flatnonzero(of_kind(of.trace, Kind.OPERATOR, Kind.RUNTIME) & (events.thread == of.training.thread))
    return spans.only(here), _spans(events, calls)


def _at_lines(timeline: HostTimeline, spans: Intervals, lines: int) -> Int64:
    return by_line(timeline.location, lines, spans.overlap_ns(timeline.start, timeline.end))


def _spans(events: Events, chosen: Int64) -> Intervals:
    return union(events.start_ns[chosen], events.end_ns[chosen])


def _loading(of: Attribution, phases: PhaseTimeline) -> Intervals:
    """While the training thread loads data, or runs an operator that copies to the device."""
    is_data = phases.phase == PHASES.index("data")
    operators = of.operators
    copying = pick(operators.nodes, pick(operators.around, of.work.node[is_copy_in(of, "h2d")]))
    copying = copying[copying >= 0]
    events = of.trace.events
    copying = copying[events.thread[copying] == of.training.thread]
    return union(
        np.concatenate((phases.spans.start[is_data], events.start_ns[copying])),
        np.concatenate((phases.spans.end[is_data], events.end_ns[copying])),
    )


def _launching(of: Attribution) -> Intervals:
    """While an outermost operator that launches work runs on any thread, or a call of the runtime that does."""
    operators, calls = of.operators, of.work.node[of.work.node >= 0]
    at = pick(operators.around, calls)
    outermost = nearest(operators.caller, operators.caller < 0)
    top = pick(outermost, at)
    return _spans(of.trace.events, np.concatenate((operators.nodes[top[top >= 0]], calls[top < 0])))

"""Time that recording took: a step that nobody records has none of it.

Without a device it is what was taken off the runs of the training thread's lines (`cpu_time.py`), so that a step is as
long as what its lines cost and what is on no line.

Beside a device kernels take as long when they are recorded; what makes a recorded step longer than a plain one is the
CPU, which comes later with the next kernel: the device is idle for longer. Where the device has work meanwhile, the CPU
comes later to what it waits for, and waits less. Hooks of lines and operators are known to cost something; what
recorded steps take beyond the plain ones on top of that is the time in operators and calls of the runtime, drawn out by
torch's profiler and by the device's tracer.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from deepscope.analysis.array_ops.intervals import NO_INTERVALS, Intervals, union
from deepscope.analysis.array_ops.selection import Floats, Mask, of_kind
from deepscope.analysis.numbers.recording_cost import cost_of_entry_ns, marked_costs, operator_cost_ns, runs_around
from deepscope.analysis.numbers.work import timeline
from deepscope.analysis.ownership.attribution import Attribution
from deepscope.trace.joins.nesting import innermost
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64


class Added(NamedTuple):
    """Stretches of time that were not without the recording."""

    idle: Intervals
    """While no device worked; on a CPU alone all of them."""
    busy: Intervals
    """While one did: nothing took longer for them."""


def added_to_lines(of: Attribution, recording_by_run: Int64) -> Added:
    """What recording added to a trace of the CPU alone.

    `recording_by_run` is what it cost in each of `LineRuns.nodes`; shape (k,), or empty where nothing is known.
    """
    events, runs, steps = of.trace.events, of.runs, of.training.steps
    here = np.flatnonzero(events.thread[runs.nodes] == of.training.thread)
    start, end = events.start_ns[runs.nodes[here]], events.end_ns[runs.nodes[here]]
    marks, marked_ns = marked_costs(of.trace)
    apart = (events.thread[marks] == of.training.thread) & (runs_around(of.trace, marks, runs) < 0)
    # What has no line has one place for each step, and one for what is in none.
    beside_ns = np.bincount(steps.of(events.start_ns[marks[apart]]) + 1, marked_ns[apart], len(steps) + 1)
    in_runs = recording_by_run[here] if len(recording_by_run) else np.zeros(len(here), np.int64)
    cost_ns = np.concatenate((in_runs, beside_ns))
    if not cost_ns.any():
        return Added(NO_INTERVALS, NO_INTERVALS)
    in_calls = _spans(of, np.flatnonzero(of_kind(of.trace, Kind.OPERATOR, Kind.RUNTIME)))
    cuts = np.concatenate((start, end, steps.spans.start, steps.spans.end))
    pieces = in_calls.complement(of.training.window).cut(cuts)
    run = innermost(pieces.start, np.zeros_like(pieces.start), start, end, np.zeros_like(start))
    place = np.where(run >= 0, run, len(here) + 1 + steps.of(pieces.start))
    length = pieces.end - pieces.start
    free_ns = np.bincount(place, length, len(cost_ns))
    part = np.minimum(cost_ns / np.maximum(free_ns, 1), 1)
    return Added(union(pieces.start, pieces.start + np.floor(length * part[place]).astype(np.int64)), NO_INTERVALS)


def added_by_recording(of: Attribution, waits: Int64) -> Added:
    """What recording added beside a device; `waits` are the events in which a thread waits for it.

    If the header tells of plain steps, the median step is no longer than the median plain one without what was added
    while no device worked. Else that is the known cost of what was recorded meanwhile.
    """
    known_at, known_ns = _known_costs(of)
    steps, plain = of.training.steps.spans, of.trace.header.plain_steps
    has_plain = plain is not None and len(steps.start) > 0 and plain.wall.quartiles_ns[1] > 0
    if not (len(known_at) or has_plain):
        return Added(NO_INTERVALS, NO_INTERVALS)
    idle, stretches = _stretches(of)
    is_idle = idle.locate(stretches.start) >= 0
    length = (stretches.end - stretches.start).astype(np.float64)
    taken = _carried_on(stretches, _sums(stretches, known_at, known_ns))
    if plain is not None and has_plain:
        drawn_out = np.minimum(_recorded(of, waits).overlap_ns(stretches.start, stretches.end), length - taken)
        beyond = _beyond(steps.end - steps.start, plain.wall.quartiles_ns)
        step = np.where(is_idle, of.training.steps.of(stretches.start), -1)
        known, more = (_by_step(step, one, len(beyond)) for one in (taken, drawn_out))
        # Of what was added while a device worked the steps' length tells nothing.
        taken = np.where(is_idle, taken * min(_median_ratio(beyond, known), 1.0), taken)
        taken += drawn_out * min(_median_ratio(np.maximum(beyond - known, 0), more), 1.0)
    added = _evenly(stretches, taken / np.maximum(length, 1), of)
    return Added(added.intersection(idle), idle.complement(added))


def _beyond(wall_ns: Int64, quartiles_ns: tuple[int, int, int]) -> Floats:
    """What each step takes beyond the median plain one, if most take longer than three of four plain ones."""
    _, pace, high = quartiles_ns
    return np.maximum(wall_ns - pace, 0).astype(np.float64) * (np.median(wall_ns) > high)


def _by_step(step: Int64, values: Floats, steps: int) -> Floats:
    return np.bincount(step[step >= 0], values[step >= 0], steps).astype(np.float64)


def _median_ratio(over: Floats, under: Floats) -> float:
    known = under > 0
    return float(np.median(over[known] / under[known])) if known.any() else 0.0


def _known_costs(of: Attribution) -> tuple[Int64, Int64]:
    """Where recording cost a known time, and how long."""
    trace, runs = of.trace, of.runs
    entries = np.concatenate((runs.nodes, runs.library))
    marks, marked_ns = marked_costs(trace)
    rows = np.concatenate((entries, marks, of.operators.nodes))
    cost_ns = np.concatenate(
        (
            np.full(len(entries), cost_of_entry_ns(trace, of.scopes)),
            marked_ns,
            np.full(len(of.operators.nodes), operator_cost_ns(trace)),
        )
    )
    chosen = (cost_ns > 0) & _trains(of, rows)
    return trace.events.start_ns[rows[chosen]], cost_ns[chosen]


def _recorded(of: Attribution, waits: Int64) -> Intervals:
    """When operators and calls of the runtime were under way that waited for nothing."""
    rows = np.flatnonzero(of_kind(of.trace, Kind.OPERATOR, Kind.RUNTIME))
    return _spans(of, waits).complement(_spans(of, rows))


def _spans(of: Attribution, rows: Int64) -> Intervals:
    rows = rows[_trains(of, rows)]
    return union(of.trace.events.start_ns[rows], of.trace.events.end_ns[rows])


def _trains(of: Attribution, rows: Int64) -> Mask:
    """Which events ran on the training thread, or below autograd's engine."""
    return np.asarray((of.trace.events.thread[rows] == of.training.thread) | of.calls.backward[rows])


def _stretches(of: Attribution) -> tuple[Intervals, Intervals]:
    """The window's time without any device's work, and all of it, cut there, at steps, and where the training thread's
    line changes."""
    idle, steps = of.work.working.complement(of.training.window), of.training.steps.spans
    lines = timeline(of.trace.events, of.runs, of.training.thread, of.training.window)
    cuts = np.concatenate((idle.start, idle.end, steps.start, steps.end, lines.start, lines.end))
    return idle, of.training.window.cut(cuts)


def _sums(stretches: Intervals, at: Int64, weight: Int64) -> Int64:
    """The weights of what lies in each stretch; shape (k,)."""
    place = stretches.locate(at)
    return np.bincount(place[place >= 0], weight[place >= 0], len(stretches.start)).astype(np.int64)


def _carried_on(stretches: Intervals, cost_ns: Int64) -> Floats:
    """Of costs that are longer than their stretch, the rest lies in those that touch it behind; shape (k,).

    A part of what the entry of a line costs is outside of the line.
    """
    length = stretches.end - stretches.start
    surplus = np.cumsum(cost_ns - length)
    begins = np.append(True, stretches.start[1:] != stretches.end[:-1])[: len(length)]
    before = np.append(0, surplus[:-1])[: len(length)][begins][np.cumsum(begins) - 1]
    # The lowest sum since the stretches began to touch: each run of them lies far below the one before.
    depth = np.cumsum(begins) * (2 * int(np.abs(surplus).max(initial=0)) + 1)
    lowest = np.minimum(np.minimum.accumulate(surplus - before - depth), -depth) + depth
    left = surplus - before - lowest
    waiting = np.where(begins, 0, np.append(0, left[:-1])[: len(length)])
    return np.asarray(cost_ns + waiting - left, np.float64)


def _evenly(stretches: Intervals, part: Floats, of: Attribution) -> Intervals:
    """The same part of all that lies between two events in a stretch: its causes keep their proportions."""
    pieces = stretches.cut(of.trace.events.start_ns)
    of_piece = part[stretches.locate(pieces.start)]
    return union(pieces.start, pieces.start + np.floor((pieces.end - pieces.start) * of_piece).astype(np.int64))

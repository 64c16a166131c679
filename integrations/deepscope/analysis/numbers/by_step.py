"""Time beside device work by line and step: idle time, or Python's own where the CPU is the device."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from deepscope.analysis.array_ops.intervals import Intervals
from deepscope.analysis.numbers.idle import Timeline, idle
from deepscope.analysis.ownership.owned_work import OwnedWork
from deepscope.analysis.ownership.owners import LineRuns
from deepscope.analysis.ownership.training import Steps
from deepscope.trace.arrays import distinct_values, pick
from deepscope.trace.model import Events, Int64


class Shares(NamedTuple):
    """Times, each of a line in a step; arrays of one shape. Lines and steps may come again."""

    location: Int64
    """Index of the line, -1 for none."""
    step: Int64
    duration_ns: Int64


def idle_by_step(work: OwnedWork, line: Timeline, steps: Steps, within: Intervals) -> Shares:
    """Idle time of all devices by the line and the step that it fell into; `line` is the timeline of `within`."""
    cuts = np.concatenate((line.start, line.end, steps.spans.start, steps.spans.end))
    cuts = distinct_values(cuts)
    begin, after = cuts[:-1], cuts[1:]
    step = steps.of(begin)
    place = np.searchsorted(line.start, begin, side="right") - 1
    inside = (step >= 0) & (place >= 0)
    begin, after, step, place = begin[inside], after[inside], step[inside], place[inside]
    duration = np.zeros(len(begin), np.int64)
    for gap in idle(work, within):
        duration += gap.overlap_ns(begin, after)
    return Shares(line.location[place], step, duration)


def python_by_step(events: Events, runs: LineRuns, python_ns: Int64, steps: Steps) -> Shares:
    """Python's time by the line and the step of each run.

    That of a run that is not within one step is divided by its time in each of them that it spent in no other line.

    Args:
        events: of the trace.
        runs: of lines, k of them.
        python_ns: of each run; shape (k,).
        steps: of the trace.
    """
    start, end = events.start_ns[runs.nodes], events.end_ns[runs.nodes]
    step = steps.of(start)
    is_within = (step >= 0) & (end <= pick(steps.spans.end, step))
    divided = np.flatnonzero(~is_within & (python_ns > 0) & (steps.spans.overlap_ns(start, end) > 0))
    whole = np.flatnonzero(is_within)
    shares = Shares(runs.location[whole], step[whole], python_ns[whole])
    if not len(divided):
        return shares
    position = np.full(len(runs.nodes), -1, np.int64)
    position[divided] = np.arange(len(divided))
    own = _overlaps(start[divided], end[divided], steps.spans)
    called_by = pick(position, runs.caller)
    inner = np.flatnonzero((called_by >= 0) & is_within)
    np.subtract.at(own, (called_by[inner], step[inner]), end[inner] - start[inner])
    outer = np.flatnonzero((called_by >= 0) & ~is_within)
    np.subtract.at(own, called_by[outer], _overlaps(start[outer], end[outer], steps.spans))
    own = np.maximum(own, 0)
    lasted = np.maximum(end[divided] - start[divided], 1)
    of_others = np.bincount(called_by[called_by >= 0], (end - start)[called_by >= 0], len(divided)).astype(np.int64)
    free = np.maximum(np.maximum(lasted - of_others, own.sum(axis=1)), 1)
    part = (python_ns[divided, None] * (own / free[:, None])).astype(np.int64)
    row, column = np.nonzero(part)
    return Shares(
        np.concatenate((shares.location, runs.location[divided][row])),
        np.concatenate((shares.step, column)),
        np.concatenate((shares.duration_ns, part[row, column])),
    )


def _overlaps(start: Int64, end: Int64, spans: Intervals) -> Int64:
    """How much of each interval lies in each span; shape (intervals, spans)."""
    first, last = np.maximum(start[:, None], spans.start), np.minimum(end[:, None], spans.end)
    overlap: Int64 = np.maximum(last - first, 0)
    return overlap

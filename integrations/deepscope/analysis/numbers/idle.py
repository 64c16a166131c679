"""Idle time of the devices, each idle instant given to the line that the training thread was on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deepscope.analysis.array_ops.intervals import Intervals
from deepscope.analysis.array_ops.selection import by_line
from deepscope.analysis.ownership.attribution import OwnedWork
from deepscope.analysis.ownership.owners import LineRuns
from deepscope.trace.arrays import pick
from deepscope.trace.joins.nesting import innermost
from deepscope.trace.model import Events, Int64


@dataclass(frozen=True, slots=True)
class HostTimeline:
    """What the training thread was on, in touching stretches of time; arrays of shape (k,)."""

    start: Int64
    end: Int64
    location: Int64
    """Index of the line, -1 for none."""


def timeline(events: Events, runs: LineRuns, training_thread: int, within: Intervals) -> HostTimeline:
    """The line of the training thread at each instant of a window."""
    here = events.thread[runs.nodes] == training_thread
    nodes = runs.nodes[here]
    start, end = events.start_ns[nodes], events.end_ns[nodes]
    pieces = within.cut(np.concatenate((start, end)))
    group = np.zeros(len(nodes), np.int64)
    found = innermost(pieces.start, np.zeros(len(pieces.start), np.int64), start, end, group)
    return HostTimeline(pieces.start, pieces.end, pick(runs.location[here], found))


def idle(work: OwnedWork, within: Intervals) -> list[Intervals]:
    """When each device that works at all has no work, within a window; nothing where the CPU is the device."""
    return [busy.complement(within) for busy in work.busy.values()] if work.metric == "device" else []


def idle_by_line(work: OwnedWork, lines: int, line: HostTimeline | None, within: Intervals) -> Int64:
    """Idle nanoseconds by line, all devices together; shape (lines + 1,), the last place for idle time on no line.

    `line` is the timeline of the same window, None without a device.
    """
    result = np.zeros(lines + 1, np.int64)
    if line is not None:
        for gap in idle(work, within):
            result += by_line(line.location, lines, gap.overlap_ns(line.start, line.end))
    return result

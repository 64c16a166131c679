"""Work by line: time on the device, launches, copies and collectives; where the CPU waited for it; idle time."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from deepscope.analysis.array_ops.intervals import Extent, GroupedUnion, Intervals, covered_by, grouped_union
from deepscope.analysis.array_ops.selection import Columns, Mask, by_line, named, of_kind
from deepscope.analysis.ownership.attribution import OwnedWork
from deepscope.analysis.ownership.owners import LineRuns, Work
from deepscope.trace.arrays import distinct_values, pick
from deepscope.trace.joins.nesting import innermost
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Events, Int64, Trace
from deepscope.trace.names import is_sync, is_sync_operator

_DIRECTIONS = (
    ("h2d", re.compile(r"htod|h2d|hosttodevice|m2d|h2m", re.IGNORECASE)),
    ("d2h", re.compile(r"dtoh|d2h|devicetohost|d2m|m2h", re.IGNORECASE)),
    ("d2d", re.compile(r"dtod|d2d|devicetodevice|ptop|p2p|dtoa|atod", re.IGNORECASE)),
)


def copy_direction(name: str) -> str | None:
    """`h2d`, `d2h` or `d2d` by the name of a copy (`Memcpy HtoD (Pinned -> Device)`, `CopyDeviceToHost`), else None."""
    return next((direction for direction, pattern in _DIRECTIONS if pattern.search(name)), None)


def is_copy_in(trace: Trace, work: OwnedWork, *directions: str) -> Mask:
    """Which pieces of work are copies of these directions (`h2d`, `d2h`, `d2d`); shape (w,)."""
    return named(trace, of_kind(trace, Kind.MEMCPY), lambda name: copy_direction(name) in directions)[work.event]


def work_columns(trace: Trace, work: OwnedWork, lines: int, extent: Extent) -> Columns:
    """The work that each line owns itself; columns of shape (lines + 1,), the last place for what no line owns."""
    counted = extent.launched(work.launch_ns)

    def column(rows: Mask, values: Int64 | None = None) -> Int64:
        rows = rows & counted
        return by_line(work.location[rows], lines, None if values is None else values[rows])

    columns = {
        "self_device_ns": column(counted, work.duration_ns),
        "backward_device_ns": column(work.backward, work.duration_ns),
        "outside_ns": column(work.outside, work.duration_ns),
        "shared_ns": column(work.shared, work.duration_ns),
        "launches": column(work.counts & (work.kind == Kind.KERNEL)),
        "collective_ns": column(work.collective, work.duration_ns),
        "collective_exposed_ns": column(work.collective, exposed_ns(work)),
    }
    size_bytes = np.maximum(trace.events.size_bytes[work.event], 0)
    for direction, _ in _DIRECTIONS:
        rows = is_copy_in(trace, work, direction)
        columns[f"{direction}_ns"] = column(rows, work.duration_ns)
        columns[f"{direction}_bytes"] = column(rows, size_bytes)
    return columns


def exposed_ns(work: Work, which: Mask | None = None) -> Int64:
    """The part of each collective that no kernel but a collective overlaps on its device; shape (w,).

    `which` are the pieces of work asked for, the collectives if it is None; other work has 0.
    """
    asked = work.collective if which is None else which
    result = np.zeros(len(work), np.int64)
    for device in distinct_values(work.device[asked]).tolist():
        here = work.device == device
        ours = here & asked
        other = here & ~work.collective & (work.kind == Kind.KERNEL)
        compute = covered_by(work, other)
        start, end = work.start_ns[ours], work.end_ns[ours]
        result[ours] = end - start - compute.overlap_ns(start, end)
    return result


_INTO_PAGEABLE = re.compile(r"Memcpy DtoH \(Device -> Pageable\)")
"""Such a copy is there when its call returns, asynchronous by name or not (CUDA's "API synchronization behavior")."""


def find_waits(trace: Trace, work: Work) -> Int64:
    """The events (ascending indexes, shape (k,)) in which a CPU thread waits for the device.

    In a trace without device work an operator such as `.item()` waits for nothing.
    """
    found = named(trace, of_kind(trace, Kind.RUNTIME), is_sync)
    if work.metric == "device":
        found |= named(trace, of_kind(trace, Kind.OPERATOR), is_sync_operator)
        copies = named(trace, of_kind(trace, Kind.MEMCPY), _INTO_PAGEABLE.fullmatch)
        calls = work.node[copies[work.event]]
        calls = calls[calls >= 0]
        found[calls[trace.events.kind[calls] == Kind.RUNTIME]] = True
    return np.flatnonzero(found)


def wait_by_line(events: Events, waits: Int64, location: Int64, lines: int, extent: Extent) -> Int64:
    """Nanoseconds waited by line; shape (lines + 1,), the last place for waits on no line.

    `waits` come from `find_waits`; `location` is the line that owns each event, -1 for none, shape (n,).
    """
    found = waits_by_line(events, waits[extent.chooses(waits)], location, lines)
    line = found.groups % (lines + 1) - 1
    return by_line(line[found.place], lines, extent.clipped_ns(found.start, found.end))


def waits_by_line(events: Events, waits: Int64, location: Int64, lines: int) -> GroupedUnion:
    """When each thread waits on each line. The groups are `thread * (lines + 1) + line + 1`, with line -1 for none."""
    group = events.thread[waits].astype(np.int64) * (lines + 1) + location[waits] + 1
    return grouped_union(events.start_ns[waits], events.end_ns[waits], group)


class Queueing(NamedTuple):
    """Of each piece of work, 0 where its launch is not known; arrays of shape (w,)."""

    launched: Mask
    delay_ns: Int64
    """From the start of the launching call to its own start; clocks that disagree give 0."""
    queued: Int64
    """Work of its device that was launched before its launch and not finished by then."""


def queueing(work: OwnedWork) -> Queueing:
    """The delays and queues of all work of a trace."""
    launched = (work.node >= 0) & (work.metric == "device")
    delay = np.where(launched, np.maximum(work.start_ns - work.launch_ns, 0), 0)
    queued = np.zeros(len(work), np.int64)
    for device in distinct_values(work.device[launched]).tolist():
        rows = np.flatnonzero(launched & (work.device == device))
        at = work.launch_ns[rows]
        whole = work.counts[rows]
        before = np.searchsorted(np.sort(at[whole]), at, side="left")
        # Clocks of CPU and device may disagree by a little: nothing ends before it is launched.
        ends = np.sort(np.maximum(work.end_ns[rows], at)[whole])
        queued[rows] = np.maximum(before - np.searchsorted(ends, at, side="right"), 0)
    return Queueing(launched, delay, queued)


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

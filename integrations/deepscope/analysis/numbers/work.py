"""Work by line: time on the device, launches, copies by direction, collectives."""

from __future__ import annotations

import re

import numpy as np

from deepscope.analysis.array_ops.extent import Extent
from deepscope.analysis.array_ops.intervals import union
from deepscope.analysis.array_ops.selection import Columns, Mask, by_line
from deepscope.analysis.ownership.attribution import OwnedWork
from deepscope.analysis.ownership.work import Work
from deepscope.trace.arrays import distinct_values
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64, Trace

_DIRECTIONS = (
    ("h2d", re.compile(r"htod|h2d|hosttodevice|m2d|h2m", re.IGNORECASE)),
    ("d2h", re.compile(r"dtoh|d2h|devicetohost|d2m|m2h", re.IGNORECASE)),
    ("d2d", re.compile(r"dtod|d2d|devicetodevice|ptop|p2p|dtoa|atod", re.IGNORECASE)),
)


def copy_direction(name: str) -> str | None:
    """`h2d`, `d2h` or `d2d` by the name of a copy (`Memcpy HtoD (Pinned -> Device)`, `CopyDeviceToHost`), else None."""
    return next((direction for direction, pattern in _DIRECTIONS if pattern.search(name)), None)


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
    names = trace.events.name[work.event]
    size_bytes = np.maximum(trace.events.size_bytes[work.event], 0)
    copies = work.kind == Kind.MEMCPY
    directions = {name: copy_direction(trace.strings[name]) for name in distinct_values(names[copies]).tolist()}
    for direction, _ in _DIRECTIONS:
        rows = copies & np.isin(names, [name for name, found in directions.items() if found == direction])
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
        compute = union(work.start_ns[other], work.end_ns[other])
        start, end = work.start_ns[ours], work.end_ns[ours]
        result[ours] = end - start - compute.overlap_ns(start, end)
    return result

"""Memory by line: bytes allocated and freed on it, and its share of what was live at each device's peak."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deepscope.analysis.algebra.ancestry import pick
from deepscope.analysis.algebra.selection import by_line
from deepscope.analysis.extent import WHOLE, Extent
from deepscope.analysis.ownership.attribution import Attribution
from deepscope.analysis.ownership.calls import open_at
from deepscope.trace.arrays import distinct_values
from deepscope.trace.model import Int64

__all__ = ["MemoryByLine", "memory_by_line"]

_CPU = 0  # torch's DeviceType


@dataclass(frozen=True, slots=True)
class MemoryByLine:
    """Bytes by line; arrays of shape (lines + 1,), the last place for what reached no line."""

    allocated: Int64
    freed: Int64
    peak: Int64
    """What was live at the peak, by the line that allocated it; the sum over all places is the peak itself."""


def memory_by_line(attribution: Attribution, extent: Extent = WHOLE) -> MemoryByLine:
    """Memory of the devices; in a CPU-only trace that of the CPU. The devices' peaks are summed."""
    memory = attribution.trace.memory
    on_cpu = memory.device_type == _CPU
    wanted = on_cpu if attribution.work.metric == "cpu_self" else ~on_cpu
    rows = np.flatnonzero(wanted)
    rows = rows[np.argsort(memory.ts_ns[rows], kind="stable")]
    lines = len(attribution.scopes.locations)
    location = _location_of(attribution, rows)
    size = memory.size_bytes[rows]
    counted = extent.holds(memory.ts_ns[rows])
    gain, loss = counted & (size > 0), counted & (size < 0)
    peak = np.zeros(lines + 1, np.int64)
    device = memory.device_type[rows].astype(np.int64) << 32 | memory.device_id[rows]
    for one in distinct_values(device[counted]).tolist():
        chosen = device == one
        peak += _live_at_peak(attribution, rows[chosen], location[chosen], counted[chosen])
    return MemoryByLine(by_line(location[gain], lines, size[gain]), by_line(location[loss], lines, -size[loss]), peak)


def _location_of(attribution: Attribution, rows: Int64) -> Int64:
    """The line that owns what was open on the thread of each instant; shape of `rows`."""
    memory = attribution.trace.memory
    opened = open_at(attribution.trace, attribution.nested, memory.ts_ns[rows], memory.thread[rows])
    return pick(attribution.location, opened)


def _live_at_peak(
    attribution: Attribution, rows: Int64, location: Int64, counted: np.ndarray[tuple[int], np.dtype[np.bool_]]
) -> Int64:
    """Live bytes by line at one device's peak; `rows` in order of time, the peak sought among those `counted`."""
    memory = attribution.trace.memory
    size = memory.size_bytes[rows]
    live = memory.total_allocated_bytes[rows]
    if (live < 0).any():
        live = np.cumsum(size)
        live = live - min(
            int(live.min()), 0
        )  # what was freed without having been allocated in the window was there before
    instants = np.flatnonzero(counted)
    at = int(instants[np.argmax(live[instants])])
    # A block is live at the peak when the last thing that happened to its address until then was its allocation.
    before = np.arange(at + 1)
    order = np.lexsort((before, memory.address[rows[: at + 1]]))
    address = memory.address[rows[order]]
    last = np.append(address[1:] != address[:-1], True)
    held = order[last & (size[order] > 0)]
    lines = len(attribution.scopes.locations)
    result = by_line(location[held], lines, size[held])
    # A file that says less than its own blocks sum up to is not believed.
    result[lines] += max(int(live[at]) - int(size[held].sum()), 0)
    return result

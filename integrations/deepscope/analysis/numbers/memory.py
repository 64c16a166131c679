"""Memory by line: bytes allocated and freed on it, and its share of what was live at each device's peak."""

from __future__ import annotations

import numpy as np

from deepscope.analysis.algebra.extent import Extent
from deepscope.analysis.algebra.selection import Columns, Mask, by_line
from deepscope.analysis.ownership.calls import Nested, open_at
from deepscope.trace.arrays import distinct_values, pick
from deepscope.trace.model import Int64, MemoryEvents, Trace

__all__ = ["memory_columns"]

_CPU = 0  # torch's DeviceType


def memory_columns(
    trace: Trace, nested: Nested, location: Int64, lines: int, extent: Extent, *, on_cpu: bool
) -> Columns:
    """Bytes by line on the devices; columns of shape (lines + 1,), the last place for what reached no line.

    A block that is live at a device's peak counts at the line that allocated it; the devices' peaks are summed.
    `location` is the line that owns each event, -1 for none, shape (n,). With `on_cpu` the CPU is the only device.
    """
    memory = trace.memory
    rows = np.flatnonzero((memory.device_type == _CPU) == on_cpu)
    rows = rows[np.argsort(memory.ts_ns[rows], kind="stable")]
    # The line that owns what was open on the thread of each instant.
    line = pick(location, open_at(trace, nested, memory.ts_ns[rows], memory.thread[rows]))
    size = memory.size_bytes[rows]
    counted = extent.holds(memory.ts_ns[rows])
    gain, loss = counted & (size > 0), counted & (size < 0)
    peak = np.zeros(lines + 1, np.int64)
    device = memory.device_type[rows].astype(np.int64) << 32 | memory.device_id[rows]
    for one in distinct_values(device[counted]).tolist():
        chosen = device == one
        peak += _live_at_peak(memory, rows[chosen], line[chosen], lines, counted[chosen])
    return {
        "bytes_allocated": by_line(line[gain], lines, size[gain]),
        "bytes_freed": by_line(line[loss], lines, -size[loss]),
        "peak_bytes": peak,
    }


def _live_at_peak(memory: MemoryEvents, rows: Int64, location: Int64, lines: int, counted: Mask) -> Int64:
    """Live bytes by line at one device's peak; `rows` in order of time, the peak is sought among those `counted`."""
    size = memory.size_bytes[rows]
    live = memory.total_allocated_bytes[rows]
    if (live < 0).any():
        live = np.cumsum(size)
        # Bytes that are freed but not allocated in the window were there before.
        live = live - min(int(live.min()), 0)
    instants = np.flatnonzero(counted)
    at = int(instants[np.argmax(live[instants])])
    # A block is live at the peak when the last thing that happened to its address until then was its allocation.
    before = np.arange(at + 1)
    order = np.lexsort((before, memory.address[rows[: at + 1]]))
    address = memory.address[rows[order]]
    last = np.append(address[1:] != address[:-1], True)
    held = order[last & (size[order] > 0)]
    result = by_line(location[held], lines, size[held])
    # The file's total counts unless its own blocks sum up to more.
    result[lines] += max(int(live[at]) - int(size[held].sum()), 0)
    return result

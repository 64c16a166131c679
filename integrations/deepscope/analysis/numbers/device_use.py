"""How well devices are used: utilisation, multiprocessors, occupancy, tensor cores, as torch-tb-profiler defines them.

torch_tb_profiler/profiler/gpu_metrics_parser.py and kernel_parser.py of version 0.4.3.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from deepscope.analysis.algebra.intervals import Intervals, union
from deepscope.analysis.algebra.selection import Mask, of_kind
from deepscope.analysis.numbers.tensor_cores import kernels_with_tensor_cores
from deepscope.analysis.ownership.owned_work import OwnedWork
from deepscope.trace.arrays import distinct_values
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Events, Int64, Trace

MEASURES = ("utilisation", "SM efficiency", "occupancy", "tensor cores")


class DeviceUse(NamedTuple):
    """One measure of one device, as a part of a time."""

    device: int
    name: str
    time_ns: int
    whole_ns: int


def device_use(trace: Trace, work: OwnedWork, window: Intervals, counted: Mask) -> list[DeviceUse]:
    """The measures of every device that ran kernels; what the trace does not tell is left out.

    Utilisation, SM efficiency and occupancy are of the window, from the first step to the last; tensor cores of the
    work that is `counted`, shape (w,).
    """
    events = trace.events
    kernels = np.flatnonzero((work.kind == Kind.KERNEL) & work.counts) if work.metric == "device" else np.zeros(0, int)
    if not len(kernels) or not len(window.start):
        return []
    begin, end = int(window.start[0]), int(window.end[-1])
    with_cores = kernels_with_tensor_cores(trace, of_kind(trace, Kind.KERNEL))
    found: list[DeviceUse] = []
    for device in distinct_values(work.device[kernels]).tolist():
        here = kernels[work.device[kernels] == device]
        event = work.event[here]
        start, stop = np.maximum(work.start_ns[here], begin), np.minimum(work.end_ns[here], end)
        busy = union(start, stop).total_ns
        found.append(DeviceUse(device, "utilisation", busy, end - begin))
        blocks = events.blocks_per_sm[event].astype(np.float64)
        if (blocks > 0).any():
            efficient = sm_efficiency_ns(start, stop, np.where(stop > start, np.maximum(blocks, 0), 0))
            found.append(DeviceUse(device, "SM efficiency", efficient, end - begin))
        occupied, known = _occupied(events, event, np.maximum(stop - start, 0))
        if known:
            found.append(DeviceUse(device, "occupancy", occupied, known))
        ours = here[counted[here]]
        duration = work.end_ns[ours] - work.start_ns[ours]
        if duration.sum():
            tensor = int(duration[with_cores[work.event[ours]]].sum())
            found.append(DeviceUse(device, "tensor cores", tensor, int(duration.sum())))
    return found


def sm_efficiency_ns(start: Int64, end: Int64, blocks: np.ndarray[tuple[int], np.dtype[np.floating]]) -> int:
    """Time weighted by how many of the multiprocessors have a block: the sum over running kernels, at most 1."""
    ts = np.concatenate((start, end))
    step = np.concatenate((blocks, -blocks)).astype(np.float64)
    order = np.argsort(ts, kind="stable")
    ts = ts[order]
    running = np.clip(np.cumsum(step[order]), 0, 1)
    return round(float((running[:-1] * np.diff(ts)).sum()))


def _occupied(events: Events, event: Int64, duration: Int64) -> tuple[int, int]:
    """Time weighted by the occupancy that Kineto estimates, and the time of the kernels of which it is known."""
    occupancy = np.minimum(events.occupancy[event].astype(np.int64), 100)
    known = occupancy >= 0
    return round(float((occupancy / 100 * duration)[known].sum())), int(duration[known].sum())

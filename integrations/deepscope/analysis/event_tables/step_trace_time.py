"""Each step on each device: computing, communication, copies, and nothing."""

from __future__ import annotations

import numpy as np

from deepscope.analysis.analysis import Analysis
from deepscope.analysis.array_ops.intervals import covered_by
from deepscope.analysis.event_tables.columns import devices, integers, optional
from deepscope.records.columns import RecordColumn
from deepscope.trace.arrays import pick
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64


def step_trace_time(analysis: Analysis) -> list[RecordColumn]:
    """A row a step and device; without steps the window is one, without a number.

    `computing_ns`, `communication_not_overlapped_ns`, `copies_not_overlapped_ns` and `free_ns` sum to `duration_ns`.
    """
    attribution = analysis.attribution
    work, steps = attribution.work, attribution.training.steps
    start, end, number = _spans(analysis)
    shares = [_shares(analysis, device, start, end) for device in work.busy]
    count = len(shares)
    device = np.repeat(np.array(list(work.busy), np.int64), len(start))
    return [
        devices(analysis, device),
        optional("step", np.tile(pick(steps.number, number), count)),
        integers("start_ns", np.tile(start, count)),
        integers("duration_ns", np.tile(end - start, count)),
        *(integers(name, np.concatenate([start[:0], *(one[name] for one in shares)])) for name in _PARTS),
    ]


def _spans(analysis: Analysis) -> tuple[Int64, Int64, Int64]:
    """Start and end of each step in the extent, and which it is; without steps those of the window."""
    steps = analysis.attribution.training.steps
    if not len(steps):
        window = analysis.window
        return window.start, window.end, np.full(len(window.start), -1, np.int64)
    chosen = np.flatnonzero(analysis.extent.holds(steps.spans.start))
    return steps.spans.start[chosen], steps.spans.end[chosen], chosen


_PARTS = (
    "computing_ns",
    "communication_ns",
    "communication_not_overlapped_ns",
    "overlapped_ns",
    "copies_not_overlapped_ns",
    "free_ns",
)


def _shares(analysis: Analysis, device: int, start: Int64, end: Int64) -> dict[str, Int64]:
    """What a device does in each span; where the CPU is the device, operators compute."""
    work = analysis.attribution.work
    here = work.device == device
    compute = here & ~work.collective
    if work.metric == "device":
        compute &= work.kind == Kind.KERNEL
    computing, communicating = covered_by(work, compute), covered_by(work, here & work.collective)
    computing_ns, communication_ns = (one.overlap_ns(start, end) for one in (computing, communicating))
    overlapped_ns = computing.intersection(communicating).overlap_ns(start, end)
    exposed_ns = communication_ns - overlapped_ns
    busy_ns = work.busy[device].overlap_ns(start, end)
    return {
        "computing_ns": computing_ns,
        "communication_ns": communication_ns,
        "communication_not_overlapped_ns": exposed_ns,
        "overlapped_ns": overlapped_ns,
        "copies_not_overlapped_ns": busy_ns - computing_ns - exposed_ns,
        "free_ns": end - start - busy_ns,
    }

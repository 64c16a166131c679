"""Each step on each device: computing, communication, copies, and nothing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deepscope.analysis.analysis import Analysis
from deepscope.analysis.array_ops.intervals import Intervals, covered_by
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
    names = ["computing", "communication", "communication_not_overlapped", "overlapped", "copies_not_overlapped"]
    shares = {device: _Shares.of(analysis, device) for device in work.busy}
    columns: dict[str, list[Int64]] = {name: [] for name in names}
    for one in shares.values():
        found = one.within(start, end)
        for name in names:
            columns[name].append(found[name])
    count = len(shares)
    sums = {name: _flat(found) for name, found in columns.items()}
    duration = np.tile(end - start, count)
    used = sums["computing"] + sums["communication_not_overlapped"] + sums["copies_not_overlapped"]
    device = np.repeat(np.array(list(shares), np.int64), len(start))
    return [
        devices(analysis, device),
        optional("step", np.tile(pick(steps.number, number), count)),
        integers("start_ns", np.tile(start, count)),
        integers("duration_ns", duration),
        *(integers(f"{name}_ns", sums[name]) for name in names),
        integers("free_ns", duration - used),
    ]


def _spans(analysis: Analysis) -> tuple[Int64, Int64, Int64]:
    """Start and end of each step in the extent, and which it is; without steps those of the window."""
    steps = analysis.attribution.training.steps
    if not len(steps):
        window = analysis.window
        return window.start, window.end, np.full(len(window.start), -1, np.int64)
    chosen = np.flatnonzero(analysis.extent.holds(steps.spans.start))
    return steps.spans.start[chosen], steps.spans.end[chosen], chosen


@dataclass(frozen=True, slots=True)
class _Shares:
    """When a device does what."""

    computing: Intervals
    communication: Intervals
    busy: Intervals

    @classmethod
    def of(cls, analysis: Analysis, device: int) -> _Shares:
        """Of one device; where the CPU is the device, operators compute."""
        work = analysis.attribution.work
        here = work.device == device
        compute = here & ~work.collective
        if work.metric == "device":
            compute &= work.kind == Kind.KERNEL
        shared = here & work.collective
        return cls(
            covered_by(work, compute),
            covered_by(work, shared),
            work.busy[device],
        )

    def within(self, start: Int64, end: Int64) -> dict[str, Int64]:
        """The parts of each span."""
        computing = self.computing.overlap_ns(start, end)
        communication = self.communication.overlap_ns(start, end)
        overlapped = self.computing.intersection(self.communication).overlap_ns(start, end)
        exposed = communication - overlapped
        return {
            "computing": computing,
            "communication": communication,
            "communication_not_overlapped": exposed,
            "overlapped": overlapped,
            "copies_not_overlapped": self.busy.overlap_ns(start, end) - computing - exposed,
        }


def _flat(found: list[Int64]) -> Int64:
    return np.concatenate(found) if found else np.zeros(0, np.int64)

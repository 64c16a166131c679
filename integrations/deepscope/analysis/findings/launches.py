"""A device that waits for launches: idle beside a line, or between tiny kernels (DS004, DS005)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from deepscope.analysis.array_ops.selection import by_line
from deepscope.analysis.findings import data_loader
from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.library_options import is_fused
from deepscope.analysis.findings.line_remedies import line_remedy
from deepscope.analysis.findings.rule import Rule
from deepscope.analysis.numbers.idle_causes import occupied
from deepscope.records import PHASES, Finding
from deepscope.trace.kinds import Kind

IDLE_DEVICE_WORTH = 0.03
"""A line is named if the device is idle because of it for at least this share of the wall time."""

_REMEDY = "Take this work out of the loop, or off the thread that launches."


def _find_idle_device(facts: Facts) -> Iterator[Finding]:
    if not facts.has_device or not facts.lines:
        return
    window = facts.analysis.window
    rest = [gap.intersection(data_loader.restarts(facts).complement(window)) for gap in facts.gaps.rest]
    if sum(gap.total_ns for gap in rest) < IDLE_DEVICE_WORTH * facts.wall_ns * facts.devices:
        return
    otherwise = occupied(facts.attribution, facts.analysis.phases, facts.analysis.waits)
    rest = [gap.intersection(otherwise.complement(window)) for gap in rest]
    if sum(gap.total_ns for gap in rest) < IDLE_DEVICE_WORTH * facts.wall_ns * facts.devices:
        return
    idle = sum((facts.by_line_of_cpu(gap) for gap in rest), np.zeros(facts.lines + 1, np.int64))
    # What the framework does between the lines cannot be taken out of them.
    idle = np.maximum(idle - facts.analysis.columns["framework_ns"], 0)
    saving = idle // facts.devices
    for line in np.flatnonzero(saving[:-1] >= max(IDLE_DEVICE_WORTH * facts.wall_ns, 1)).tolist():
        yield IDLE_DEVICE.finding(
            facts,
            location=line,
            message="the device has nothing to do while the CPU does something else than launch on this line",
            evidence={"device_idle_ns": int(idle[line])},
            saving_ns=int(saving[line]),
            remedy=line_remedy(facts.trace, facts.locations[line]) or _REMEDY,
        )


IDLE_DEVICE = Rule("DS005", "Idle device", _find_idle_device, measured_on=("device",))


TINY_KERNELS_WORTH = 0.01
"""A line is named if the gaps before its kernels take at least this share of the wall time."""
MANY = 10
"""A line launches many if it launches so many in a step (without steps: in all)."""
TINY_NS = 20_000
"""A longer kernel, on average, leaves the CPU time to launch the next one."""


def _find_tiny_kernels(facts: Facts) -> Iterator[Finding]:
    if not facts.has_device:
        return
    work = facts.work
    kernels = facts.analysis.counted & (work.kind == Kind.KERNEL) & ~work.collective
    location = work.location[kernels]
    count = by_line(work.location[kernels & work.counts], facts.lines)
    duration = by_line(location, facts.lines, work.duration_ns[kernels])
    many = (count >= MANY * max(facts.steps, 1)) & (duration <= TINY_NS * count)
    if not many.any():
        return
    gaps = facts.gaps.launch
    steps = kernels & work.counts & (facts.analysis.phases.at(work.launch_ns) == PHASES.index("optimizer"))
    stepping = by_line(work.location[steps], facts.lines)
    saving = gaps // facts.devices
    for line in np.flatnonzero(many & (saving >= max(TINY_KERNELS_WORTH * facts.wall_ns, 1))).tolist():
        yield TINY_KERNELS.finding(
            facts,
            location=line if line < facts.lines else -1,
            message="the device runs these kernels faster than the CPU launches them, and is idle before each",
            evidence={
                "kernels": int(count[line]),
                "kernels_per_step": facts.per_step(int(count[line])),
                "kernel_mean_us": round(float(duration[line] / count[line]) / 1000, 2),
                "idle_before_ns": int(gaps[line]),
            },
            saving_ns=int(saving[line]),
            remedy=f"Launch fewer: {', '.join(_ways(facts, line, in_optimizer=2 * stepping[line] > count[line]))}.",
        )


def _ways(facts: Facts, line: int, *, in_optimizer: bool) -> Iterator[str]:
    """What would launch fewer kernels of a line, and is not done already."""
    if in_optimizer and not is_fused(facts.trace):
        yield "`fused=True` in the optimizer"
    work = facts.work
    if not np.isin(work.called_at[work.location == line], facts.analysis.compiled).any():
        yield "`torch.compile`"
    yield "CUDA graphs"
    if not in_optimizer:
        yield "larger batches"


TINY_KERNELS = Rule("DS004", "Many tiny kernels", _find_tiny_kernels, measured_on=("device",))

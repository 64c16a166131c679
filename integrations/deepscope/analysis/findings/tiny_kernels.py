"""DS004: kernels so short that the CPU cannot launch them as fast as the device runs them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from deepscope.analysis.array_ops.selection import by_line
from deepscope.analysis.findings.already_set import is_fused
from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.rule import Rule
from deepscope.records import PHASES, Finding
from deepscope.trace.kinds import Kind

WORTH = 0.01
"""A line is named if the gaps before its kernels take at least this share of the wall time."""
MANY = 10
"""A line launches many if it launches so many in a step (without steps: in all)."""
TINY_NS = 20_000
"""A longer kernel, on average, leaves the CPU time to launch the next one."""


def _find(facts: Facts) -> Iterator[Finding]:
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
    for line in np.flatnonzero(many & (saving >= max(WORTH * facts.wall_ns, 1))).tolist():
        yield RULE.finding(
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


RULE = Rule("DS004", "Many tiny kernels", _find, measured_on=("device",))

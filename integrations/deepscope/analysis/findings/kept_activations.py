"""DS030: memory is short, and most of it is what autograd keeps for the backward pass."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.library_options import in_modules
from deepscope.analysis.findings.memory_pressure import is_short, memory_severity
from deepscope.analysis.findings.rule import Rule
from deepscope.analysis.numbers.memory_blocks import KINDS
from deepscope.records import Finding
from deepscope.trace.arrays import pick
from deepscope.trace.model import Int64

MOST = 0.4
"""Activations dominate if they are this part of the peak."""
WORTH = 0.1
"""A line is named if the peak could be lower by this part of it."""
_ACTIVATIONS = KINDS.index("activations")


def _find(facts: Facts) -> Iterator[Finding]:
    use = facts.analysis.memory
    for curve in use.devices:
        kept = curve.held_bytes[:, _ACTIVATIONS]
        if int(kept.sum()) < MOST * curve.peak_bytes or not is_short(facts, curve):
            continue
        is_kept = (use.blocks.kind == _ACTIVATIONS) & (use.blocks.device == curve.code)
        line_of_block = pick(use.line, use.blocks.begin)
        for line in np.flatnonzero(kept[:-1] >= max(WORTH * curve.peak_bytes, 1)).tolist():
            saving = use.saving_without(curve, use.live_bytes(is_kept & (line_of_block == line)))
            if saving < WORTH * curve.peak_bytes:
                continue
            module, option = in_modules(facts, RULE.code, _operators_of(facts, line))
            yield RULE.finding(
                facts,
                location=line,
                message="memory is short, and most of it is kept for the backward pass" + module,
                evidence={
                    "activations_of_peak_bytes": int(kept[line]),
                    "peak_bytes": curve.peak_bytes,
                    "saving_of_peak_bytes": saving,
                },
                saving_ns=0,
                remedy="Compute it anew in the backward pass: `torch.utils.checkpoint.checkpoint(block, x, "
                "use_reentrant=False)` around each block that this line runs. It costs its forward pass once more."
                + option,
                severity=memory_severity(facts, curve, saving),
            )


def _operators_of(facts: Facts, line: int) -> Int64:
    """The forward operators (events) of a line, in the whole trace."""
    attribution = facts.attribution
    nodes = attribution.operators.nodes
    own = (attribution.owners.location[nodes] == line) & ~attribution.calls.backward[nodes]
    return np.asarray(nodes[own])


RULE = Rule("DS030", "Activations fill the memory", _find)

"""What the training framework costs on its own account."""

from __future__ import annotations

from deepscope.analysis.analysis import Analysis
from deepscope.analysis.ownership.framework import LIGHTNING
from deepscope.records import FrameworkPart


def framework_table(analysis: Analysis) -> list[FrameworkPart]:
    """The parts with any cost, the largest first."""
    found, spans = analysis.framework, analysis.attribution.framework
    locations = analysis.attribution.scopes.locations
    rows = [
        FrameworkPart(
            framework=LIGHTNING, part=part, file=locations[line].file, line=locations[line].line, cost_ns=cost_ns
        )
        for line, costs in zip(found.line.tolist(), found.ns.tolist(), strict=True)
        for part, cost_ns in zip(spans.parts, costs, strict=True)
        if cost_ns
    ]
    return sorted(rows, key=lambda row: (-row.cost_ns, row.part))

"""The modules of the model."""

from __future__ import annotations

from deepscope.analysis.analysis import Analysis
from deepscope.analysis.numbers.modules import module_columns
from deepscope.analysis.tables.numbered import largest_first, rows
from deepscope.records import Module

__all__ = ["module_table"]


def module_table(analysis: Analysis) -> list[Module]:
    """The modules with their device and CPU time; a total holds the modules called from it, and backward work."""
    trace, work = analysis.attribution.trace, analysis.attribution.work
    columns = module_columns(trace.events, work, analysis.modules, analysis.extent)
    order = largest_first(columns, len(analysis.modules.names))
    return [
        Module(**row, path=analysis.modules.names[i][0], class_name=analysis.modules.names[i][1])
        for i, row in zip(order.tolist(), rows(columns, order), strict=True)
    ]

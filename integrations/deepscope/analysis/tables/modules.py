"""The modules of the model."""

from __future__ import annotations

from deepscope.analysis.analysis import Analysis
from deepscope.analysis.numbers.modules import module_columns, module_parents
from deepscope.analysis.tables.numbered import largest_first, rows
from deepscope.records import Module


def module_table(analysis: Analysis) -> list[Module]:
    """The modules with their device and CPU time; a total holds the modules called from it, and backward work."""
    of, modules = analysis.attribution, analysis.modules
    columns = module_columns(
        of.trace.events, of.work, modules, analysis.extent, operators=of.operators, flops=analysis.flops.counted
    )
    order = largest_first(columns, len(modules.instances))
    parents = module_parents(modules)
    return [
        Module(
            **row,
            path=modules.instances[i].path,
            class_name=modules.instances[i].class_name,
            parent=modules.instances[parents[i]].path if parents[i] >= 0 else "",
            own_parameters=modules.instances[i].own_parameters,
            parameters=modules.instances[i].parameters,
        )
        for i, row in zip(order.tolist(), rows(columns, order), strict=True)
    ]

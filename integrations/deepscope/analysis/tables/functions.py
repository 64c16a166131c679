"""The functions of user code, all their lines together."""

from __future__ import annotations

import numpy as np

from deepscope.analysis.analysis import Analysis
from deepscope.analysis.numbers.call_paths import path_columns
from deepscope.analysis.ownership.framework import LIGHTNING
from deepscope.analysis.tables.numbered import largest_first, rows
from deepscope.records import FrameworkPart, Function
from deepscope.trace.model import Int64


def function_table(analysis: Analysis) -> list[Function]:
    """The functions, all their lines together, by first line or else by the line that the trace knows them by."""
    locations = analysis.attribution.scopes.locations
    index: dict[tuple[str, int, str], int] = {}
    keys = [(one.file, one.first_line or one.line, one.function) for one in locations]
    group = np.array([index.setdefault(key, len(index)) for key in keys], np.int64)
    columns = {name: _summed(values, group, len(index)) for name, values in analysis.columns.items()}
    columns |= path_columns(analysis.attribution.paths, analysis.by_path, group, len(index))
    exact = np.zeros(len(index), np.bool_)
    exact[group] = [one.exact or one.fused for one in locations]
    names = list(index)
    order = largest_first(columns, len(index))
    return [
        Function(**row, file=names[i][0], line=names[i][1], function=names[i][2], exact=bool(exact[i]))
        for i, row in zip(order.tolist(), rows(columns, order), strict=True)
    ]


def _summed(values: Int64, group: Int64, groups: int) -> Int64:
    result = np.zeros(groups + 1, np.int64)
    np.add.at(result, np.append(group, groups), values)
    return result


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

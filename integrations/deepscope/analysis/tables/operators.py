"""Operators by name: calls, device and CPU time, FLOPs."""

from __future__ import annotations

import numpy as np

from deepscope.analysis.algebra.ancestry import pick
from deepscope.analysis.algebra.selection import by_line
from deepscope.analysis.extent import WHOLE, Extent
from deepscope.analysis.ownership.attribution import Attribution
from deepscope.analysis.ownership.paths import PathTable
from deepscope.analysis.tables.numbered import rows
from deepscope.records import Operator
from deepscope.trace.arrays import distinct_places

__all__ = ["operator_table"]


def operator_table(attribution: Attribution, extent: Extent = WHOLE) -> list[Operator]:
    """All operators of a trace by name, the largest device time first.

    A total holds the operators called from it; an operator that calls itself counts once.
    """
    events, operators, work = attribution.trace.events, attribution.operators, attribution.work
    name, group = distinct_places(events.name[operators.nodes])
    names = len(name)
    counted = extent.holds(events.start_ns[operators.nodes])
    own = np.where(counted, operators.self_ns, 0)
    launched_by = pick(operators.around, work.node)
    launched = extent.holds(work.launch_ns) & (launched_by >= 0)
    launched_by, duration = launched_by[launched], work.duration_ns[launched]

    paths = PathTable()
    path = paths.intern_forest(operators.caller, group)
    values = np.zeros((len(paths), 2), np.int64)
    np.add.at(values[:, 0], path[launched_by], duration)
    np.add.at(values[:, 1], path, own)
    totals = paths.totals(values, np.arange(names), names)
    columns = {
        "calls": by_line(group[counted], names)[:names],
        "self_device_ns": by_line(group[launched_by], names, duration)[:names],
        "total_device_ns": totals[:, 0],
        "self_cpu_ns": by_line(group, names, own)[:names],
        "total_cpu_ns": totals[:, 1],
        "flops": by_line(group, names, np.where(counted, attribution.flops, 0))[:names],
    }
    order = np.lexsort((-columns["total_cpu_ns"], -columns["self_device_ns"]))
    called = order[columns["calls"][order] > 0]
    strings = attribution.trace.strings
    return [
        Operator(name=strings[one], **row)
        for one, row in zip(name[called].tolist(), rows(columns, called), strict=True)
    ]

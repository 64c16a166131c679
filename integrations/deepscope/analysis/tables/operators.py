"""Operators by name: calls, device and CPU time, FLOPs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from deepscope.analysis.algebra.extent import Extent
from deepscope.analysis.algebra.selection import by_line
from deepscope.analysis.ownership.operators import Operators
from deepscope.analysis.ownership.paths import paths_of_forest
from deepscope.analysis.ownership.work import Work
from deepscope.analysis.tables.numbered import rows
from deepscope.records import Operator, Why
from deepscope.trace.arrays import distinct_places, pick
from deepscope.trace.model import Int64, Trace

__all__ = ["operator_table"]


def operator_table(
    trace: Trace, operators: Operators, work: Work, *, flops: Int64, extent: Extent, whys: Mapping[str, Why]
) -> list[Operator]:
    """All operators of a trace by name, the largest device time first.

    A total holds the operators called from it; an operator that calls itself counts once. `flops` are those of each
    operator, `whys` what holds them back, by name.
    """
    events = trace.events
    name, group = distinct_places(events.name[operators.nodes])
    names = len(name)
    counted = extent.holds(events.start_ns[operators.nodes])
    own = np.where(counted, operators.self_ns, 0)
    launched_by = pick(operators.around, work.node)
    launched = extent.holds(work.launch_ns) & (launched_by >= 0)
    launched_by, duration = launched_by[launched], work.duration_ns[launched]

    paths, path = paths_of_forest(operators.caller, group)
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
        "flops": by_line(group, names, np.where(counted, flops, 0))[:names],
    }
    order = np.lexsort((-columns["total_cpu_ns"], -columns["self_device_ns"]))
    called = order[columns["calls"][order] > 0]
    return [
        Operator(name=trace.strings[one], **row, why=whys.get(trace.strings[one]) or Why())
        for one, row in zip(name[called].tolist(), rows(columns, called), strict=True)
    ]

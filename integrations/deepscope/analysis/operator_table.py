"""Operators by name: calls, device and CPU time, FLOPs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deepscope.analysis.ancestry import pick
from deepscope.analysis.attribution import Attribution
from deepscope.analysis.extent import WHOLE, Extent
from deepscope.analysis.paths import PathTable
from deepscope.analysis.selection import by_line
from deepscope.trace.model import Int64

__all__ = ["OperatorTable", "operator_table"]


@dataclass(frozen=True, slots=True)
class OperatorTable:
    """Numbers by operator name; arrays of shape (names,)."""

    name: Int64
    """Index into `Trace.strings`."""
    calls: Int64
    self_device_ns: Int64
    total_device_ns: Int64
    """With the operators called from it; an operator that calls itself counts once."""
    self_cpu_ns: Int64
    total_cpu_ns: Int64
    flops: Int64


def operator_table(attribution: Attribution, extent: Extent = WHOLE) -> OperatorTable:
    """All operators of a trace by name."""
    events, operators, work = attribution.trace.events, attribution.operators, attribution.work
    name, group = np.unique(events.name[operators.nodes], return_inverse=True)
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
    return OperatorTable(
        name=name.astype(np.int64),
        calls=by_line(group[counted], names)[:names],
        self_device_ns=by_line(group[launched_by], names, duration)[:names],
        total_device_ns=totals[:, 0],
        self_cpu_ns=by_line(group, names, own)[:names],
        total_cpu_ns=totals[:, 1],
        flops=by_line(group, names, np.where(counted, attribution.flops, 0))[:names],
    )

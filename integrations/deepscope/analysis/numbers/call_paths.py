"""Time by call path, and the totals of lines that it makes."""

from __future__ import annotations

import numpy as np

from deepscope.analysis.array_ops.extent import Extent
from deepscope.analysis.array_ops.selection import Columns
from deepscope.analysis.ownership.owned_work import OwnedWork
from deepscope.analysis.ownership.paths import PathTable
from deepscope.trace.model import Int64


def path_values(work: OwnedWork, self_cpu_ns: Int64, extent: Extent) -> Int64:
    """Self values by call path, shape (paths, 4).

    The columns are device time, the backward part of it, CPU time, and the part of the device time outside the steps.
    `self_cpu_ns` is `CpuTime.self_by_path`.
    """
    counted = extent.launched(work.launch_ns)
    result = np.zeros((len(self_cpu_ns), 4), np.int64)
    for column, rows in ((0, counted), (1, counted & work.backward), (3, counted & work.outside)):
        np.add.at(result[:, column], work.path[rows], work.duration_ns[rows])
    result[:, 2] = self_cpu_ns
    return result


def path_columns(paths: PathTable, values: Int64, group: Int64, groups: int) -> Columns:
    """Totals of device and CPU time, and the CPU's self time, by group of lines (each line its own, or its function).

    Args:
        paths: of the trace.
        values: from `path_values`.
        group: group of each line; shape (lines,).
        groups: how many there are; the columns have one place more, for no line.
    """
    totals = np.concatenate((paths.totals(values, group, groups), values[:1]))
    self_cpu = np.zeros(groups + 1, np.int64)
    np.add.at(self_cpu, np.append(group, groups)[paths.location], values[:, 2])
    return {
        "total_device_ns": totals[:, 0],
        "total_outside_ns": totals[:, 3],
        "self_cpu_ns": self_cpu,
        "total_cpu_ns": totals[:, 2],
    }

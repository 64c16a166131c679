"""Columns of numbers as rows: what the tables of lines, functions and modules have in common."""

from __future__ import annotations

from typing import Any

import numpy as np

from deepscope.analysis.array_ops.selection import Columns
from deepscope.trace.model import Int64


def rows(columns: Columns, order: Int64) -> list[dict[str, Any]]:
    """Each group's numbers as keyword arguments of `Numbers`."""
    names = list(columns)
    table = np.stack([columns[name][order] for name in names], axis=1).tolist() if names else []
    return [dict(zip(names, row, strict=True)) for row in table]


def largest_first(columns: Columns, count: int) -> Int64:
    """Groups (indexes) in which any number is not zero, by self device time, then total, then CPU time."""
    some = np.zeros(count, np.bool_)
    for values in columns.values():
        some |= values[:count] != 0
    present = np.flatnonzero(some)
    keys = [-columns[name][present] for name in ("self_cpu_ns", "total_device_ns", "self_device_ns")]
    return present[np.lexsort(keys)]

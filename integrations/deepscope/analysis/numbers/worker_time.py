"""Data-loader workers by line: their time, and the part of it on the CPU."""

from __future__ import annotations

import numpy as np

from deepscope.analysis.algebra.extent import Extent
from deepscope.analysis.algebra.selection import Columns
from deepscope.analysis.ownership.locations import Location
from deepscope.analysis.ownership.workers import worker_lines
from deepscope.trace.model import Trace

__all__ = ["worker_columns"]


def worker_columns(trace: Trace, locations: list[Location], extent: Extent) -> Columns:
    """Time in data-loader workers; columns of shape (lines + 1,).

    They do not say in which step, so that a single step has none.
    """
    columns = {name: np.zeros(len(locations) + 1, np.int64) for name in ("worker_ns", "worker_cpu_ns")}
    if extent.spans is None:
        index = {(one.file, one.line): i for i, one in enumerate(locations)}
        for worked in worker_lines(trace):
            line = index[worked.file, worked.line]
            columns["worker_ns"][line] += worked.self_ns
            columns["worker_cpu_ns"][line] += worked.cpu_ns
    return columns

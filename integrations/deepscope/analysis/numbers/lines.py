"""The numbers of every line: each column from the module that knows it."""

from __future__ import annotations

import numpy as np

from deepscope.analysis.algebra.extent import Extent
from deepscope.analysis.algebra.intervals import Intervals
from deepscope.analysis.algebra.selection import Columns
from deepscope.analysis.numbers.call_paths import path_columns
from deepscope.analysis.numbers.cpu_time import CpuTime
from deepscope.analysis.numbers.idle import Timeline, idle_by_line
from deepscope.analysis.numbers.memory import memory_columns
from deepscope.analysis.numbers.operators import operator_columns
from deepscope.analysis.numbers.waits import wait_by_line
from deepscope.analysis.numbers.work import work_columns
from deepscope.analysis.numbers.worker_time import worker_columns
from deepscope.analysis.ownership.attribution import Attribution
from deepscope.trace.model import Int64

__all__ = ["line_columns"]


def line_columns(
    of: Attribution,
    *,
    cpu: CpuTime,
    by_path: Int64,
    waits: Int64,
    flops: Int64,
    timeline: Timeline | None,
    window: Intervals,
    extent: Extent,
) -> Columns:
    """All fields of `records.Numbers`; columns of shape (lines + 1,), the last place for what reached no line."""
    trace, work, location = of.trace, of.work, of.owners.location
    lines = len(of.scopes.locations)
    columns = {
        **path_columns(of.paths, by_path, np.arange(lines), lines),
        **work_columns(trace, work, lines, extent),
        **cpu.columns,
        "wait_ns": wait_by_line(trace.events, waits, location, lines, extent),
        "idle_ns": idle_by_line(work, lines, timeline, window),
        **operator_columns(
            trace.events,
            of.operators,
            calls=of.calls,
            scopes=of.scopes,
            owners=of.owners,
            flops=flops,
            extent=extent,
        ),
        **memory_columns(trace, of.calls.nested, location, lines, extent, on_cpu=work.metric == "cpu_self"),
        **worker_columns(trace, of.scopes.locations, extent),
    }
    beside_work = columns["idle_ns" if work.metric == "device" else "python_ns"]
    return columns | {"cost_ns": columns["self_device_ns"] + beside_work}

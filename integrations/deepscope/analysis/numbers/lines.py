"""The numbers of every line: each column from the module that knows it."""

from __future__ import annotations

import numpy as np

from deepscope.analysis.array_ops.intervals import Extent, Intervals
from deepscope.analysis.array_ops.selection import Columns, Mask, by_line
from deepscope.analysis.numbers.cpu_time import CpuTime
from deepscope.analysis.numbers.idle_causes import FrameworkTime
from deepscope.analysis.numbers.memory import MemoryUse
from deepscope.analysis.numbers.parts import path_columns
from deepscope.analysis.numbers.phases import python_by_step
from deepscope.analysis.numbers.work import HostTimeline, idle_by_line, wait_by_line, work_columns
from deepscope.analysis.ownership.attribution import Attribution
from deepscope.analysis.ownership.locations import Location
from deepscope.analysis.ownership.training import worker_lines
from deepscope.trace.model import Int64, Trace


def line_columns(
    of: Attribution,
    cpu: CpuTime,
    framework: FrameworkTime,
    extent: Extent,
    *,
    by_path: Int64,
    waits: Int64,
    flops: Int64,
    memory: MemoryUse,
    idle_in: Intervals,
    timeline: HostTimeline | None,
) -> Columns:
    """All fields of `records.Numbers`; columns of shape (lines + 1,), the last place for what reached no line.

    `idle_in` is the window in which idle time counts. The other arrays are those of `Analysis`.
    """
    trace, work, location = of.trace, of.work, of.owners.location
    lines = len(of.scopes.locations)
    columns = {
        **path_columns(of.paths, by_path, np.arange(lines), lines),
        **work_columns(trace, work, lines, extent),
        **cpu.columns,
        "wait_ns": wait_by_line(trace.events, waits, location, lines, extent),
        "idle_ns": idle_by_line(work, lines, timeline, idle_in),
        **_operator_columns(of, flops, extent),
        **memory.columns(),
        **_worker_columns(trace, of.scopes.locations, extent),
    }
    beside_work = columns["idle_ns" if work.metric == "device" else "python_ns"]
    cost = columns["self_device_ns"] + beside_work
    return columns | {
        "cost_ns": cost,
        "framework_ns": framework.by_line(lines),
        "python_outside_ns": _python_outside(of, cpu, columns["python_ns"], extent),
    }


def _python_outside(of: Attribution, cpu: CpuTime, python_ns: Int64, extent: Extent) -> Int64:
    """Python's time outside the steps, where it is a part of a line's cost."""
    steps = of.training.steps
    chosen = extent.holds(steps.spans.start)
    if of.work.metric == "device" or not len(cpu.python_by_run) or not chosen.any():
        return np.zeros_like(python_ns)
    inside = python_by_step(of.trace.events, of.runs, cpu.python_by_run, steps)
    counted = chosen[inside.step]
    within_ns = by_line(inside.location[counted], len(python_ns) - 1, inside.duration_ns[counted])
    outside: Int64 = np.maximum(python_ns - within_ns, 0)
    return outside


def _operator_columns(of: Attribution, flops: Int64, extent: Extent) -> Columns:
    """FLOPs, and the operators that a line starts itself: not from another one, and not autograd's own spans."""
    operators = of.operators
    counted = extent.begins(of.trace.events, operators.nodes)
    location, lines = of.owners.location[operators.nodes], len(of.scopes.locations)
    return {
        "operators": by_line(location[counted & started_by_lines(of)], lines),
        "flops": by_line(location[counted], lines, flops[counted]),
    }


def started_by_lines(of: Attribution) -> Mask:
    """Which operators no other one started; autograd's own spans excepted."""
    operators, open_scope = of.operators, of.owners.open_scope
    outermost = operators.caller < 0
    if of.scopes.source != "call_stack":
        outermost |= open_scope[operators.nodes] != open_scope[operators.nodes[operators.caller]]
    return np.asarray(outermost & (of.calls.root[operators.nodes] != operators.nodes))


def _worker_columns(trace: Trace, locations: list[Location], extent: Extent) -> Columns:
    """Time in data-loader workers. The trace does not say when, so that a part of it has none."""
    columns = {name: np.zeros(len(locations) + 1, np.int64) for name in ("worker_ns", "worker_cpu_ns")}
    if extent.is_whole:
        index = {(one.file, one.line): i for i, one in enumerate(locations)}
        for worked in worker_lines(trace):
            line = index[worked.file, worked.line]
            columns["worker_ns"][line] += worked.self_ns
            columns["worker_cpu_ns"][line] += worked.cpu_ns
    return columns

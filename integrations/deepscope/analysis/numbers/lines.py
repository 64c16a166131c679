"""The numbers of every line, column by column; the last place of each column is the work that reached no line."""

from __future__ import annotations

import re

import numpy as np

from deepscope.analysis.algebra.intervals import Intervals
from deepscope.analysis.algebra.selection import Mask, by_line
from deepscope.analysis.extent import Extent
from deepscope.analysis.numbers.collectives import exposed_ns
from deepscope.analysis.numbers.cpu_time import CpuTime
from deepscope.analysis.numbers.idle import Timeline, idle_by_line
from deepscope.analysis.numbers.memory import memory_by_line
from deepscope.analysis.numbers.waits import wait_by_line
from deepscope.analysis.numbers.workers import worker_lines
from deepscope.analysis.ownership.attribution import Attribution
from deepscope.trace.arrays import distinct_values
from deepscope.trace.model import Int64, Kind

__all__ = ["Columns", "copy_direction", "line_columns", "path_columns", "path_values"]

Columns = dict[str, Int64]
"""Field of `records.Numbers` → values of shape (lines + 1,)."""

_DIRECTIONS = (
    ("h2d", re.compile(r"htod|h2d|hosttodevice|m2d|h2m", re.IGNORECASE)),
    ("d2h", re.compile(r"dtoh|d2h|devicetohost|d2m|m2h", re.IGNORECASE)),
    ("d2d", re.compile(r"dtod|d2d|devicetodevice|ptop|p2p|dtoa|atod", re.IGNORECASE)),
)


def copy_direction(name: str) -> str | None:
    """`h2d`, `d2h` or `d2d` by the name of a copy (`Memcpy HtoD (Pinned -> Device)`, `CopyDeviceToHost`), else None."""
    return next((direction for direction, pattern in _DIRECTIONS if pattern.search(name)), None)


def line_columns(
    attribution: Attribution, cpu: CpuTime, extent: Extent, window: Intervals, line: Timeline | None
) -> Columns:
    """All numbers by line but those that need call paths (`path_columns`).

    Idle time is sought in `window`, whose timeline is `line` (None without a device).
    """
    lines = len(attribution.scopes.locations)
    memory = memory_by_line(attribution, extent)
    columns = _work_columns(attribution, extent)
    columns["calls"] = cpu.calls
    columns["recording_ns"] = cpu.recording
    columns["python_ns"] = cpu.python
    columns["python_cpu_ns"] = cpu.python - cpu.loader_wait - cpu.blocked
    columns["loader_wait_ns"] = cpu.loader_wait
    columns["blocked_ns"] = cpu.blocked
    columns["wait_ns"] = wait_by_line(attribution, extent)
    columns["idle_ns"] = idle_by_line(attribution, window, line)
    columns["bytes_allocated"] = memory.allocated
    columns["bytes_freed"] = memory.freed
    columns["peak_bytes"] = memory.peak
    nodes = attribution.operators.nodes
    counted = extent.holds(attribution.trace.events.start_ns[nodes])
    location = attribution.location[nodes]
    columns["operators"] = by_line(location[counted & _outermost_operators(attribution)], lines)
    columns["worker_ns"], columns["worker_cpu_ns"] = _worker_columns(attribution, extent)
    columns["flops"] = by_line(location[counted], lines, attribution.flops[counted])
    return columns


def _outermost_operators(attribution: Attribution) -> Mask:
    """Operators that a line itself starts: no other stands between; autograd's own spans are left out; shape (k,)."""
    operators, scope = attribution.operators, attribution.open_scope
    outermost = operators.caller < 0
    if attribution.scopes.source != "call_stack":
        outermost |= scope[operators.nodes] != scope[operators.nodes[operators.caller]]
    engine = attribution.calls.root[operators.nodes] == operators.nodes
    return np.asarray(outermost & ~engine)


def _worker_columns(attribution: Attribution, extent: Extent) -> Int64:
    """Time in data-loader workers, and the part of it on the CPU; shape (2, lines + 1).

    They do not say in which step, so that a single step has none.
    """
    locations = attribution.scopes.locations
    result = np.zeros((2, len(locations) + 1), np.int64)
    if extent.spans is None:
        index = {(one.file, one.line): i for i, one in enumerate(locations)}
        for worked in worker_lines(attribution.trace):
            result[:, index[worked.file, worked.line]] += worked.self_ns, worked.cpu_ns
    return result


def _work_columns(attribution: Attribution, extent: Extent) -> Columns:
    work = attribution.work
    lines = len(attribution.scopes.locations)
    counted = extent.holds(work.launch_ns)
    location = np.where(counted, attribution.work_location, -1)
    bytes_ = attribution.trace.events.size_bytes[work.event]

    def column(rows: Mask, values: Int64 | None = None) -> Int64:
        rows = rows & counted
        return by_line(location[rows], lines, None if values is None else values[rows])

    duration = work.duration_ns
    columns = {
        "self_device_ns": column(counted, duration),
        "backward_device_ns": column(attribution.work_backward, duration),
        "launches": column(work.kind == Kind.KERNEL),
        "collective_ns": column(work.collective, duration),
        "collective_exposed_ns": column(work.collective, exposed_ns(work)),
    }
    strings = attribution.trace.strings
    names = attribution.trace.events.name[work.event]
    copies = work.kind == Kind.MEMCPY
    directions = {name: copy_direction(strings[name]) for name in distinct_values(names[copies]).tolist()}
    for direction in ("h2d", "d2h", "d2d"):
        rows = copies & np.isin(names, [name for name, found in directions.items() if found == direction])
        columns[f"{direction}_ns"] = column(rows, duration)
        columns[f"{direction}_bytes"] = column(rows, np.maximum(bytes_, 0))
    return columns


def path_values(attribution: Attribution, cpu: CpuTime, extent: Extent) -> Int64:
    """Self values by call path, shape (paths, 3): device time, the backward part of it, CPU time."""
    work = attribution.work
    counted = extent.holds(work.launch_ns)
    backward = counted & attribution.work_backward
    result = np.zeros((len(attribution.paths), 3), np.int64)
    np.add.at(result[:, 0], attribution.work_path[counted], work.duration_ns[counted])
    np.add.at(result[:, 1], attribution.work_path[backward], work.duration_ns[backward])
    result[: len(cpu.self_by_path), 2] = cpu.self_by_path
    result[0, 2] = cpu.no_line_ns
    return result


def path_columns(attribution: Attribution, values: Int64, group: Int64, groups: int) -> Columns:
    """Totals of device and CPU time, and the CPU's self time, by group of lines (each line its own, or its function).

    Args:
        attribution: of the trace.
        values: from `path_values`.
        group: group of each line; shape (lines,).
        groups: how many there are; the columns have one place more, for no line.
    """
    totals = np.concatenate((attribution.paths.totals(values, group, groups), values[:1]))
    last = np.array(attribution.paths.location, np.int64)
    own = np.append(group, groups)[last]
    self_cpu = np.zeros(groups + 1, np.int64)
    np.add.at(self_cpu, own, values[:, 2])
    return {"total_device_ns": totals[:, 0], "self_cpu_ns": self_cpu, "total_cpu_ns": totals[:, 2]}

"""The numbers of every line, each column from the module that knows it; and of the parts below lines."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deepscope.analysis.array_ops.intervals import Extent, Intervals
from deepscope.analysis.array_ops.selection import Columns, Mask, by_line, mask_of, sums
from deepscope.analysis.numbers.cpu_time import CpuTime
from deepscope.analysis.numbers.idle_causes import FrameworkTime
from deepscope.analysis.numbers.memory import MemoryUse
from deepscope.analysis.numbers.phases import python_by_step
from deepscope.analysis.numbers.work import HostTimeline, idle_by_line, wait_by_line, work_columns
from deepscope.analysis.ownership.attribution import Attribution, OwnedWork
from deepscope.analysis.ownership.below import Below
from deepscope.analysis.ownership.locations import Location
from deepscope.analysis.ownership.paths import PathTable, paths_of_forest
from deepscope.analysis.ownership.training import worker_lines
from deepscope.trace.arrays import depth, distinct_places, distinct_values, pick, position_in, sums_with_callees
from deepscope.trace.model import Int64, Trace

OTHER = -1
"""The place of what is folded."""

_LEAST_SHARE = 1000
"""Parts below a thousandth of their line's time are folded."""
_DEEPEST = 64
"""Parts further below their line are folded."""
_MOST = 12_000
"""So many parts of a whole trace are kept, the largest."""


@dataclass(frozen=True, slots=True)
class Parts:
    """Nodes of trees below call paths, parents first; arrays of shape (p,)."""

    path: Int64
    """The call path whose work it is a part of."""
    parent: Int64
    """Position of the part around it, -1 where it stands directly below its call path."""
    node: Int64
    """The same number for the same place within the same places, whatever the call path, and for places that are alike;
    `OTHER` for what is folded."""
    place: Int64
    """A number of `Places`, or `OTHER`."""
    self_ns: Int64
    """Work in no part below it."""
    backward_ns: Int64
    """The backward part of `self_ns`."""
    calls: Int64
    """Calls in which work was done, each in the first of its call paths; of a kernel its launches. A forward operator's
    backward work has another call path, in which the operator is not counted again."""

    def __len__(self) -> int:
        return len(self.path)


def find_parts(work: OwnedWork, counted: Mask, below: Below, leaf: Int64 | None, alike: Int64) -> Parts:
    """The parts of all counted work.

    Args:
        work: of the trace.
        counted: which pieces are asked for; shape (w,).
        below: the calls around them.
        leaf: the place of each piece of work itself; shape (w,). None where it is the innermost call.
        alike: of each place a place that stands for all that are alike; shape (places,).
    """
    path, duration = work.path[counted], work.duration_ns[counted]
    backward = np.where(work.backward[counted], duration, 0)
    inner = below.of_work[counted]
    table, chain = paths_of_forest(below.caller, below.place)
    _, folded_chain = paths_of_forest(below.caller, alike[below.place])
    alike_of = np.zeros(len(table), np.int64)
    alike_of[chain] = folded_chain
    width = len(table)
    runs = _runs(below, path, inner)
    nodes = max(len(below.nodes), 1)
    keys, place_of_run = distinct_places(runs // nodes * width + chain[runs % nodes])
    count = len(keys)
    calls = _count(place_of_run, _first_of(runs % nodes), count)
    chain_of, path_of = keys % width, keys // width
    above = table.parent[chain_of]
    parent = np.where(above > 0, np.searchsorted(keys, path_of * width + above), -1)
    key = path * width + np.where(inner < 0, 0, pick(chain, inner))
    at = np.where(inner < 0, -1, np.searchsorted(keys, key))
    node, place = alike_of[chain_of], table.location[chain_of]
    if leaf is not None:
        places = int(leaf.max(initial=0)) + 1
        leaves, own = distinct_places(key * places + leaf[counted])
        first = np.zeros(len(leaves), np.int64)
        first[own] = np.arange(len(own))
        path_of, parent = np.append(path_of, path[first]), np.append(parent, at[first])
        node = np.append(node, width + alike_of[leaves // places % width] * places + leaves % places)
        place = np.append(place, leaves % places)
        calls = np.append(calls, _count(own, _first_of(work.event[counted]), len(leaves)))
        at = count + own
    self_ns, backward_ns = np.zeros(len(path_of), np.int64), np.zeros(len(path_of), np.int64)
    np.add.at(self_ns, at, duration)
    np.add.at(backward_ns, at, backward)
    return Parts(path_of, parent, node, place, self_ns, backward_ns, calls)


def _first_of(events: Int64) -> Mask:
    """Which rows are the first of their event: an event counts once, whatever it is a part of; shape (k,)."""
    row = np.arange(len(events))
    first = np.zeros(int(events.max(initial=-1)) + 1, np.int64)
    first[events[::-1]] = row[::-1]
    return np.asarray(first[events] == row)


def _count(group: Int64, chosen: Mask, groups: int) -> Int64:
    """How many chosen rows each group has; shape (groups,)."""
    return np.bincount(group[chosen], minlength=groups).astype(np.int64)


def _runs(below: Below, path: Int64, inner: Int64) -> Int64:
    """The calls that did work for each call path, each once, as `path * len(nodes) + position`, by path.

    `path` and `inner` are of each piece of work, its call path and its innermost call.
    """
    nodes = len(below.nodes)
    level = depth(below.caller)
    known = inner >= 0
    start = distinct_values(path[known] * nodes + inner[known])
    level_of_start = level[start % nodes] if nodes else start
    found = []
    current = np.zeros(0, np.int64)
    for deepest in range(int(level.max(initial=-1)), -1, -1):
        current = distinct_values(np.append(current, start[level_of_start == deepest]))
        found.append(current)
        above = below.caller[current % nodes]
        current = (current - current % nodes + above)[above >= 0]
    return np.sort(np.concatenate(found)) if found else current


def folded(parts: Parts, location: Int64) -> Parts:
    """The parts of any size, with all others of one parent folded into one.

    Parts are judged by their sums over all call paths of a line, and over layers that are alike, so that all of these
    are folded or none.

    Args:
        parts: all of a trace.
        location: the line of each call path, -1 for none; shape (paths,).
    """
    if not len(parts):
        return parts
    total, backward = sums_with_callees(np.stack((parts.self_ns, parts.backward_ns), axis=1), parts.parent).T
    kept = _kept(parts, total, location)
    group = np.where(parts.parent < 0, ~parts.path, parts.parent)  # parts of one parent
    small = np.flatnonzero(~kept & (total > 0) & ((parts.parent < 0) | kept[parts.parent]))
    groups, place = distinct_places(group[small])

    def of_groups(values: Int64) -> Int64:
        return sums(place, len(groups), values[small])

    nodes = np.flatnonzero(kept)
    around = np.where(groups < 0, -1, groups)
    return Parts(
        path=np.append(parts.path[nodes], np.where(groups < 0, ~groups, parts.path[around])),
        parent=np.append(position_in(nodes, parts.parent[nodes], len(parts)), position_in(nodes, around, len(parts))),
        node=np.append(parts.node[nodes], np.full(len(groups), OTHER)),
        place=np.append(parts.place[nodes], np.full(len(groups), OTHER)),
        self_ns=np.append(parts.self_ns[nodes], of_groups(total)),
        backward_ns=np.append(parts.backward_ns[nodes], of_groups(backward)),
        calls=np.append(parts.calls[nodes], of_groups(parts.calls)),
    )


def _kept(parts: Parts, total: Int64, location: Int64) -> Mask:
    """Which parts stand for themselves; shape (p,). What is around a kept part is kept, too."""
    line = location[parts.path] + 1
    level = depth(parts.parent)
    names, of_line = distinct_places(line * (int(parts.node.max()) + 1) + parts.node)
    count = len(names)
    of_line_total, whole = np.zeros(count, np.int64), np.zeros(int(line.max()) + 1, np.int64)
    np.add.at(of_line_total, of_line, total)
    np.add.at(whole, line[level == 0], total[level == 0])
    parent, deep, least = np.full(count, -1, np.int64), np.zeros(count, np.int64), np.zeros(count, np.int64)
    parent[of_line] = np.where(parts.parent < 0, ~line, of_line[parts.parent])
    deep[of_line], least[of_line] = level, whole[line]
    kept = (of_line_total > 0) & (of_line_total * _LEAST_SHARE >= least) & (deep < _DEEPEST)
    if kept[of_line].sum() > _MOST:
        sizes = of_line_total[of_line][kept[of_line]]
        kept &= of_line_total > np.partition(sizes, -_MOST - 1)[-_MOST - 1]
    small = np.flatnonzero(~kept & (of_line_total > 0) & ((parent < 0) | kept[np.maximum(parent, 0)]))
    _, place = distinct_places(parent[small])
    alone = small[np.bincount(place)[place] == 1] if len(small) else small
    has_parts = mask_of(parent[parent >= 0], count)
    kept[alone[~has_parts[alone] & (deep[alone] < _DEEPEST)]] = True
    return np.asarray(kept[of_line] & (total > 0))


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
    self_cpu = sums(np.append(group, groups)[paths.location], groups + 1, values[:, 2])
    return {
        "total_device_ns": totals[:, 0],
        "total_outside_ns": totals[:, 3],
        "self_cpu_ns": self_cpu,
        "total_cpu_ns": totals[:, 2],
    }


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

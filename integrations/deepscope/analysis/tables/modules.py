"""The modules of the model."""

from __future__ import annotations

import numpy as np

from deepscope.analysis.analysis import Analysis
from deepscope.analysis.array_ops.selection import Columns, by_line, largest, largest_first, rows
from deepscope.analysis.ownership.modules import ModuleScopes
from deepscope.analysis.ownership.paths import paths_of_forest
from deepscope.records import Module
from deepscope.trace.arrays import pick, self_values
from deepscope.trace.kinds import Kind


def module_table(analysis: Analysis) -> list[Module]:
    """The modules with their device and CPU time; a total holds the modules called from it, and backward work."""
    modules = analysis.modules
    columns = _columns(analysis)
    order = largest_first(columns, len(modules.instances))
    parents = module_parents(modules)
    return [
        Module(
            **row,
            path=modules.instances[i].path,
            class_name=modules.instances[i].class_name,
            parent=modules.instances[parents[i]].path if parents[i] >= 0 else "",
            own_parameters=modules.instances[i].own_parameters,
            parameters=modules.instances[i].parameters,
        )
        for i, row in zip(order.tolist(), rows(columns, order), strict=True)
    ]


def _columns(analysis: Analysis) -> Columns:
    """Numbers by single module; columns of shape (modules + 1,), the last place for what ran in none.

    A module's CPU time is that of its calls, without the backward pass.
    """
    of, modules, extent, counted = analysis.attribution, analysis.modules, analysis.extent, analysis.counted
    events, work, operators = of.trace.events, of.work, of.operators
    count = len(modules.instances)
    paths, path = paths_of_forest(modules.callers, modules.instance)
    path = np.append(path, 0)
    at = modules.of_work(work)
    duration = np.where(counted, work.duration_ns, 0)
    start = events.start_ns[modules.nodes]
    # The regions of a CUDA graph are known from the device's work alone.
    on_cpu = (events.kind[modules.nodes] < Kind.KERNEL) | (events.kind[modules.nodes] > Kind.DEVICE_SPAN)
    end = np.where(on_cpu, events.end_ns[modules.nodes], start)
    own = self_values(extent.clipped_ns_of(modules.nodes, start, end), modules.callers_on_thread)
    backward, outside = counted & work.backward, counted & work.outside
    computed = np.where(extent.begins(events, operators.nodes), analysis.flops.counted, 0)
    computed_at = modules.of_event[operators.nodes]
    values = np.zeros((len(paths), 5), np.int64)
    np.add.at(values[:, 0], path[at], duration)
    np.add.at(values[:, 1], path[:-1], own)
    np.add.at(values[:, 2], path[at[backward]], duration[backward])
    np.add.at(values[:, 3], path[computed_at], computed)
    np.add.at(values[:, 4], path[at[outside]], duration[outside])
    totals = np.concatenate((paths.totals(values, np.arange(count), count), values[:1]))
    module = np.append(modules.instance, -1)
    return {
        "self_device_ns": by_line(module[at], count, duration),
        "total_device_ns": totals[:, 0],
        "outside_ns": by_line(module[at[outside]], count, duration[outside]),
        "total_outside_ns": totals[:, 4],
        "backward_device_ns": by_line(module[at[backward]], count, duration[backward]),
        "total_backward_device_ns": totals[:, 2],
        "self_cpu_ns": by_line(modules.instance, count, own),
        "total_cpu_ns": totals[:, 1],
        "launches": by_line(module[at[counted & work.counts & (work.kind == Kind.KERNEL)]], count),
        "calls": by_line(modules.instance[extent.begins(events, modules.nodes)], count),
        "flops": by_line(module[computed_at], count, computed),
        "total_flops": totals[:, 3],
    }


def module_parents(modules: ModuleScopes) -> list[int]:
    """The module that each one stands below in the tree, -1 for none.

    With recorded paths it is the one with the longest path that the module's begins with. Else, and where there is
    none, it is the one that calls it most often.
    """
    callers = pick(modules.instance, modules.callers)
    called = callers != modules.instance
    ones = np.ones(int(called.sum()), np.int64)
    # 0 stands for "no module": a module that is mostly called from none is a root.
    most = {share.group: share.member - 1 for share in largest(modules.instance[called], callers[called] + 1, ones, 1)}
    place = {one.path: i for i, one in enumerate(modules.instances)}
    parents = [_by_path(one.path, place, most.get(i, -1)) for i, one in enumerate(modules.instances)]
    for i in range(len(parents)):
        _cut_cycle(parents, i)
    return parents


def _by_path(path: str, place: dict[str, int], otherwise: int) -> int:
    prefix, dot, _ = path.rpartition(".")
    while dot:
        if prefix in place:
            return place[prefix]
        prefix, dot, _ = prefix.rpartition(".")
    return otherwise


def _cut_cycle(parents: list[int], start: int) -> None:
    """Makes a root of a module that the way up from `start` comes to twice."""
    seen, at = {start}, start
    while parents[at] >= 0:
        if parents[at] in seen:
            parents[at] = -1
            return
        at = parents[at]
        seen.add(at)

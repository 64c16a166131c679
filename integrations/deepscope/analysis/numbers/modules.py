"""The numbers of modules: device time with the backward pass, and the CPU time of their calls."""

from __future__ import annotations

import numpy as np

from deepscope.analysis.algebra.ancestry import self_values
from deepscope.analysis.algebra.extent import Extent
from deepscope.analysis.algebra.selection import Columns, by_line
from deepscope.analysis.ownership.modules import ModuleScopes
from deepscope.analysis.ownership.owned_work import OwnedWork
from deepscope.analysis.ownership.paths import paths_of_forest
from deepscope.trace.arrays import pick
from deepscope.trace.model import Events, Kind

__all__ = ["module_columns"]


def module_columns(events: Events, work: OwnedWork, modules: ModuleScopes, extent: Extent) -> Columns:
    """Numbers by module; columns of shape (modules + 1,), the last place for what ran in none.

    A module's CPU time is that of its calls, without the backward pass.
    """
    count = len(modules.names)
    paths, path = paths_of_forest(modules.callers, modules.module)
    path = np.append(path, 0)
    counted = extent.launched(work.launch_ns)
    at = pick(modules.of_event, work.node)
    duration = np.where(counted, work.duration_ns, 0)
    start = events.start_ns[modules.nodes]
    own = self_values(extent.clipped_ns_of(modules.nodes, start, events.end_ns[modules.nodes]), modules.callers_on_thread)
    values = np.zeros((len(paths), 2), np.int64)
    np.add.at(values[:, 0], path[at], duration)
    np.add.at(values[:, 1], path[:-1], own)
    totals = np.concatenate((paths.totals(values, np.arange(count), count), values[:1]))
    module = np.append(modules.module, -1)
    backward = counted & work.backward
    return {
        "self_device_ns": by_line(module[at], count, duration),
        "total_device_ns": totals[:, 0],
        "backward_device_ns": by_line(module[at[backward]], count, duration[backward]),
        "self_cpu_ns": by_line(modules.module, count, own),
        "total_cpu_ns": totals[:, 1],
        "launches": by_line(module[at[counted & work.counts & (work.kind == Kind.KERNEL)]], count),
        "calls": by_line(modules.module[extent.begins(events, modules.nodes)], count),
    }

"""Each run of an operator: its own time and that of what it called, on the CPU and on the device."""

from __future__ import annotations

import numpy as np

from deepscope.analysis.analysis import Analysis
from deepscope.analysis.array_ops.ancestry import depth
from deepscope.analysis.event_tables.columns import integers, modules, places, steps, texts, threads
from deepscope.records.columns import Column
from deepscope.trace.arrays import pick, stable_order
from deepscope.trace.model import Int64


def operator_details(analysis: Analysis) -> list[Column]:
    """A row an operator that began in the extent, in the order of the file."""
    attribution = analysis.attribution
    trace, operators, work = attribution.trace, attribution.operators, attribution.work
    events = trace.events
    counted = np.flatnonzero(analysis.extent.holds(events.start_ns[operators.nodes]))
    event = operators.nodes[counted]
    own = np.zeros(len(operators.nodes), np.int64)
    launches = np.zeros(len(operators.nodes), np.int64)
    by = pick(operators.around, work.node)
    launched = analysis.counted & (by >= 0)
    np.add.at(own, by[launched], work.duration_ns[launched])
    whole = launched & work.counts & (work.metric == "device")
    np.add.at(launches, by[whole], 1)
    total = sums_of_callers(own, operators.caller)
    strings = trace.strings
    return [
        texts("name", events.name[event], strings),
        steps(analysis, attribution.training.steps.of(events.start_ns[event])),
        threads(analysis, event),
        integers("start_ns", events.start_ns[event]),
        integers("host_self_ns", operators.self_ns[counted]),
        integers("host_total_ns", events.duration_ns[event]),
        integers("device_self_ns", own[counted]),
        integers("device_total_ns", total[counted]),
        integers("launches", launches[counted]),
        integers("flops", analysis.flops.counted[counted]),
        texts("input_shapes", events.shapes[event], strings),
        texts("input_types", events.dtypes[event], strings),
        Column("backward", "flag", attribution.calls.backward[event]),
        modules(analysis, event),
        *places(analysis, attribution.owners.location[event]),
        texts("call_stack", events.call_stack[event], strings),
    ]


def sums_of_callers(values: Int64, caller: Int64) -> Int64:
    """Each node's value with those of all that it called, directly or not; both of shape (k,)."""
    sums: Int64 = values.copy()
    level = depth(caller)
    order = stable_order(level)
    ends = np.cumsum(np.bincount(level)) if len(level) else np.zeros(0, np.int64)
    for deep in range(len(ends) - 1, 0, -1):
        nodes = order[ends[deep - 1] : ends[deep]]
        np.add.at(sums, caller[nodes], sums[nodes])
    return sums

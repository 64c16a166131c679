"""The tables with a row an operator: what it ran, and what it allocated."""

from __future__ import annotations

import numpy as np

from deepscope.analysis.analysis import Analysis
from deepscope.analysis.array_ops.ancestry import depth
from deepscope.analysis.event_tables.columns import integers, modules, optional, places, steps, texts, threads
from deepscope.analysis.numbers.memory_blocks import KINDS, device_of
from deepscope.analysis.ownership.calls import open_at
from deepscope.analysis.tables.memory import device_name
from deepscope.records.columns import RecordColumn
from deepscope.trace.arrays import distinct_places, pick, stable_order
from deepscope.trace.model import Int64


def operator_details(analysis: Analysis) -> list[RecordColumn]:
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
        RecordColumn("backward", "flag", attribution.calls.backward[event]),
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


def memory_record(analysis: Analysis) -> list[RecordColumn]:
    """A row an allocation or release in the extent, in order of time on each device (on the CPU where it is one)."""
    use = analysis.memory
    memory = analysis.attribution.trace.memory
    curves = use.devices
    place = _joined([one.place for one in curves])
    device = np.repeat(np.array([one.code for one in curves], np.int64), [len(one.place) for one in curves])
    codes, words = device_words(device)
    return [
        texts("device", codes, words),
        integers("at_ns", _joined([one.ts_ns for one in curves])),
        integers("change_bytes", memory.size_bytes[use.rows[place]]),
        integers("allocated_bytes", _joined([one.allocated_bytes for one in curves])),
        optional("reserved_bytes", _joined([one.reserved_bytes for one in curves])),
        *places(analysis, use.line[place]),
    ]


def device_words(codes: Int64) -> tuple[Int64, list[str]]:
    """Devices (as `device_codes` has them) as words: their indexes, and the words."""
    found, place = distinct_places(codes)
    return place, [device_name(*device_of(code)) for code in found.tolist()]


def _joined(arrays: list[Int64]) -> Int64:
    return np.concatenate(arrays) if arrays else np.zeros(0, np.int64)


def operator_memory(analysis: Analysis) -> list[RecordColumn]:
    """A row a block that was live in the extent, in order of its beginning; those from before the window first."""
    attribution, use = analysis.attribution, analysis.memory
    trace, blocks = attribution.trace, use.blocks
    events, memory = trace.events, trace.memory
    count = len(use.rows)
    ended = blocks.end < count
    end = np.where(ended, blocks.end, -1)
    chosen = np.flatnonzero(_is_live(analysis, blocks.begin, end))
    chosen = chosen[np.argsort(blocks.begin[chosen], kind="stable")]
    begin, end = blocks.begin[chosen], end[chosen]
    row_at, row_gone = pick(use.rows, begin), pick(use.rows, end)
    opened = open_at(trace, attribution.calls.nested, memory.ts_ns[use.rows], memory.thread[use.rows])
    operator = pick(attribution.operators.nodes, pick(attribution.operators.around, pick(opened, begin)))
    allocated = pick(memory.ts_ns, row_at)
    released = pick(memory.ts_ns, row_gone)
    level = np.full(count, -1, np.int64)
    for code in np.unique(use.device):
        where, values = use.level_of(int(code))
        level[where] = values
    device, words = device_words(blocks.device[chosen])
    return [
        texts("name", pick(events.name.astype(np.int64), operator), trace.strings),
        texts("device", device, words),
        integers("size_bytes", blocks.size_bytes[chosen]),
        texts("held_as", blocks.kind[chosen], KINDS),
        optional("allocated_at_ns", np.where(begin >= 0, allocated, _NEVER), _NEVER),
        optional("released_at_ns", np.where(end >= 0, released, _NEVER), _NEVER),
        optional("duration_ns", np.where((begin >= 0) & (end >= 0), released - allocated, -1)),
        optional("allocated_then_bytes", pick(level, begin)),
        optional("allocated_after_release_bytes", pick(level, end)),
        *places(analysis, pick(use.line, begin)),
    ]


_NEVER = np.iinfo(np.int64).min


def _is_live(analysis: Analysis, begin: Int64, end: Int64) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which blocks were live at any event of the extent."""
    use = analysis.memory
    inside = np.flatnonzero(use.counted)
    if not len(inside):
        return np.zeros(len(begin), np.bool_)
    return np.asarray((begin <= inside[-1]) & ((end < 0) | (end >= inside[0])))

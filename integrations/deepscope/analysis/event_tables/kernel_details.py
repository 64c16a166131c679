"""The table with a row a kernel, and the one with a row a collective's kernel."""

from __future__ import annotations

import numpy as np

from deepscope.analysis.analysis import Analysis
from deepscope.analysis.event_tables.columns import devices, integers, modules, optional, places, steps, texts
from deepscope.analysis.numbers.collective_calls import collective_calls
from deepscope.analysis.numbers.work import queueing
from deepscope.records.columns import RecordColumn
from deepscope.trace.arrays import distinct_places, pick
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64

KINDS = ("kernel", "memcpy", "memset", "collective", "operator")
"""What device work is; operators where the CPU is the device."""
_CODES = {int(Kind.KERNEL): 0, int(Kind.MEMCPY): 1, int(Kind.MEMSET): 2}


def kernel_details(analysis: Analysis) -> list[RecordColumn]:
    """A row a piece of device work that was launched in the extent; none where the CPU is the device.

    A fused kernel is its largest part's line's.
    """
    attribution = analysis.attribution
    trace, work = attribution.trace, attribution.work
    chosen = analysis.counted & work.counts & (work.metric == "device")
    rows = np.flatnonzero(chosen)
    event = work.event[rows]
    queue = queueing(work)
    launcher = analysis.operator[rows]
    launched = queue.launched[rows]
    events, strings = trace.events, trace.strings
    return [
        texts("name", events.name[event], strings),
        texts("kind", kind_codes(analysis)[rows], KINDS),
        steps(analysis, work.step[rows]),
        devices(analysis, work.device[rows]),
        optional("stream", events.stream[event]),
        integers("start_ns", work.start_ns[rows]),
        integers("duration_ns", work.end_ns[rows] - work.start_ns[rows]),
        optional("launch_delay_ns", np.where(launched, queue.delay_ns[rows], -1)),
        optional("queued", np.where(launched, queue.queued[rows], -1)),
        optional("occupancy_percent", events.occupancy[event].astype(np.int64)),
        optional("size_bytes", events.size_bytes[event]),
        optional("correlation", events.correlation[event]),
        texts("operator", pick(events.name.astype(np.int64), launcher), strings),
        texts("input_shapes", pick(events.shapes.astype(np.int64), launcher), strings),
        RecordColumn("backward", "flag", work.backward[rows]),
        modules(analysis, analysis.modules.events_of(work)[rows]),
        *places(analysis, work.location[rows]),
    ]


def kind_codes(analysis: Analysis) -> Int64:
    """What each piece of work is, an index into `KINDS`; shape (w,)."""
    work = analysis.attribution.work
    if work.metric != "device":
        return np.full(len(work), KINDS.index("operator"), np.int64)
    table = np.zeros(256, np.int64)
    for kind, code in _CODES.items():
        table[kind] = code
    return np.where(work.collective, KINDS.index("collective"), table[work.kind])


def op_statistic(analysis: Analysis) -> list[RecordColumn]:
    """A row a kind of device work by name, the largest first; where the CPU is the device, of operators' own time."""
    attribution = analysis.attribution
    trace, work = attribution.trace, attribution.work
    rows = np.flatnonzero(analysis.counted & work.counts)
    # An operator's own time may be shared out among the lines it was fused from.
    own = _summed(work.event[analysis.counted], work.duration_ns[analysis.counted], len(trace.events))
    length = (work.end_ns - work.start_ns if work.metric == "device" else own[work.event])[rows]
    name, kind, device = (
        trace.events.name[work.event[rows]].astype(np.int64),
        kind_codes(analysis)[rows],
        work.device[rows],
    )
    device_of, device_place = distinct_places(device)
    key, group = distinct_places((device_place * len(trace.strings) + name) * len(KINDS) + kind)
    count = np.bincount(group, minlength=len(key)).astype(np.int64)
    total = _summed(group, length, len(key))
    shortest = np.full(len(key), np.iinfo(np.int64).max)
    np.minimum.at(shortest, group, length)
    longest = np.zeros(len(key), np.int64)
    np.maximum.at(longest, group, length)
    place = key // len(KINDS) // max(len(trace.strings), 1)
    whole = _summed(device_place, length, len(device_of))[place]
    order = np.argsort(-total, kind="stable")
    return [
        devices(analysis, device_of[place][order]),
        texts("name", (key // len(KINDS) % max(len(trace.strings), 1))[order], trace.strings),
        texts("kind", (key % len(KINDS))[order], KINDS),
        integers("count", count[order]),
        integers("total_ns", total[order]),
        integers("min_ns", shortest[order]),
        integers("mean_ns", (total // np.maximum(count, 1))[order]),
        integers("max_ns", longest[order]),
        RecordColumn("ratio", "number", (total / np.maximum(whole, 1))[order]),
    ]


def _summed(group: Int64, values: Int64, groups: int) -> Int64:
    result = np.zeros(groups, np.int64)
    np.add.at(result, group, values)
    return result


def communication(analysis: Analysis) -> list[RecordColumn]:
    """A row a collective that was launched in the extent, in order of time; of backends on the CPU a row a span."""
    attribution = analysis.attribution
    trace, work = attribution.trace, attribution.work
    calls = collective_calls(attribution, analysis.extent)
    events, strings = trace.events, trace.strings
    start = events.start_ns[calls.event]
    order = np.argsort(start, kind="stable")
    event, piece, call = calls.event[order], calls.work[order], calls.of[order]
    time_ns, exposed_ns = calls.time_ns[order], calls.exposed_ns[order]
    on_cpu = piece < 0
    step = np.where(on_cpu, attribution.training.steps.of(start[order]), pick(work.step, piece))
    location = np.where(on_cpu, attribution.owners.location[event], pick(work.location, piece))
    launcher = pick(analysis.operator, piece)
    facts = calls.facts
    size = np.array([one.size_bytes or -1 for one in facts], np.int64)
    group_size = np.array([one.group.size or -1 for one in facts], np.int64)
    return [
        texts("name", events.name[event], strings),
        steps(analysis, step),
        devices(analysis, pick(work.device.astype(np.int64), piece)),
        optional("stream", np.where(on_cpu, -1, events.stream[event])),
        integers("start_ns", start[order]),
        integers("duration_ns", time_ns),
        integers("overlapped_ns", time_ns - exposed_ns),
        integers("not_overlapped_ns", exposed_ns),
        texts("collective", call, [one.kind for one in facts]),
        texts("library", call, [one.library for one in facts]),
        texts("group", call, [one.group.name for one in facts]),
        optional("group_size", pick(group_size, call)),
        texts("dtype", call, [one.dtype for one in facts]),
        optional("size_bytes", pick(size, call)),
        texts("operator", pick(events.name.astype(np.int64), launcher), strings),
        texts("input_shapes", pick(events.shapes.astype(np.int64), launcher), strings),
        *places(analysis, location),
    ]

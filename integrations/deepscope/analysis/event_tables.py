"""Tables with a row an event, a step or a block of memory: too long for a Profile, so they are made when asked for.

They bear the names of the files that torch_npu's profiler writes (`operator_details`, `kernel_details`, …); their
columns are DeepScope's, with its units (docs/export.md).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from deepscope.analysis.analysis import Analysis
from deepscope.analysis.array_ops.intervals import covered_by
from deepscope.analysis.array_ops.selection import Mask, sums
from deepscope.analysis.event_columns import devices, integers, modules, optional, places, steps, texts, threads
from deepscope.analysis.numbers.memory_blocks import KINDS, device_of
from deepscope.analysis.numbers.work import queueing
from deepscope.analysis.ownership.calls import open_at
from deepscope.analysis.tables.collectives import collective_calls
from deepscope.analysis.tables.memory import device_name
from deepscope.records.columns import ColumnTable, RecordColumn
from deepscope.trace.arrays import distinct_places, distinct_values, pick, sums_with_callees
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64

_WORK_KINDS = ("kernel", "memcpy", "memset", "collective", "operator")
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
        texts("kind", _kind_codes(analysis)[rows], _WORK_KINDS),
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


def _kind_codes(analysis: Analysis) -> Int64:
    """What each piece of work is, an index into `_WORK_KINDS`; shape (w,)."""
    work = analysis.attribution.work
    if work.metric != "device":
        return np.full(len(work), _WORK_KINDS.index("operator"), np.int64)
    table = np.zeros(256, np.int64)
    for kind, code in _CODES.items():
        table[kind] = code
    return np.where(work.collective, _WORK_KINDS.index("collective"), table[work.kind])


def op_statistic(analysis: Analysis) -> list[RecordColumn]:
    """A row a kind of device work by name, the largest first; where the CPU is the device, of operators' own time."""
    attribution = analysis.attribution
    trace, work = attribution.trace, attribution.work
    rows = np.flatnonzero(analysis.counted & work.counts)
    # An operator's own time may be shared out among the lines it was fused from.
    own = sums(work.event[analysis.counted], len(trace.events), work.duration_ns[analysis.counted])
    length = (work.end_ns - work.start_ns if work.metric == "device" else own[work.event])[rows]
    name, kind, device = (
        trace.events.name[work.event[rows]].astype(np.int64),
        _kind_codes(analysis)[rows],
        work.device[rows],
    )
    device_of, device_place = distinct_places(device)
    key, group = distinct_places((device_place * len(trace.strings) + name) * len(_WORK_KINDS) + kind)
    count = np.bincount(group, minlength=len(key)).astype(np.int64)
    total = sums(group, len(key), length)
    shortest = np.full(len(key), np.iinfo(np.int64).max)
    np.minimum.at(shortest, group, length)
    longest = np.zeros(len(key), np.int64)
    np.maximum.at(longest, group, length)
    place = key // len(_WORK_KINDS) // max(len(trace.strings), 1)
    whole = sums(device_place, len(device_of), length)[place]
    order = np.argsort(-total, kind="stable")
    return [
        devices(analysis, device_of[place][order]),
        texts("name", (key // len(_WORK_KINDS) % max(len(trace.strings), 1))[order], trace.strings),
        texts("kind", (key % len(_WORK_KINDS))[order], _WORK_KINDS),
        integers("count", count[order]),
        integers("total_ns", total[order]),
        integers("min_ns", shortest[order]),
        integers("mean_ns", (total // np.maximum(count, 1))[order]),
        integers("max_ns", longest[order]),
        RecordColumn("ratio", "number", (total / np.maximum(whole, 1))[order]),
    ]


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
    messages = calls.messages
    size = np.array([one.size_bytes or -1 for one in messages], np.int64)
    group_size = np.array([one.group.size or -1 for one in messages], np.int64)
    return [
        texts("name", events.name[event], strings),
        steps(analysis, step),
        devices(analysis, pick(work.device.astype(np.int64), piece)),
        optional("stream", np.where(on_cpu, -1, events.stream[event])),
        integers("start_ns", start[order]),
        integers("duration_ns", time_ns),
        integers("overlapped_ns", time_ns - exposed_ns),
        integers("not_overlapped_ns", exposed_ns),
        texts("collective", call, [one.kind for one in messages]),
        texts("library", call, [one.library for one in messages]),
        texts("group", call, [one.group.name for one in messages]),
        optional("group_size", pick(group_size, call)),
        texts("dtype", call, [one.dtype for one in messages]),
        optional("size_bytes", pick(size, call)),
        texts("operator", pick(events.name.astype(np.int64), launcher), strings),
        texts("input_shapes", pick(events.shapes.astype(np.int64), launcher), strings),
        *places(analysis, location),
    ]


def operator_details(analysis: Analysis) -> list[RecordColumn]:
    """A row an operator that began in the extent, in the order of the file."""
    attribution = analysis.attribution
    trace, operators, work = attribution.trace, attribution.operators, attribution.work
    events = trace.events
    counted = np.flatnonzero(analysis.extent.holds(events.start_ns[operators.nodes]))
    event = operators.nodes[counted]
    by = pick(operators.around, work.node)
    launched = analysis.counted & (by >= 0)
    own = sums(by[launched], len(operators.nodes), work.duration_ns[launched])
    launches = sums(by[launched & work.counts & (work.metric == "device")], len(operators.nodes))
    total = sums_with_callees(own, operators.caller)
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


def memory_record(analysis: Analysis) -> list[RecordColumn]:
    """A row an allocation or release in the extent, in order of time on each device (on the CPU where it is one)."""
    use = analysis.memory
    memory = analysis.attribution.trace.memory
    curves = use.devices
    place = _joined([one.place for one in curves])
    device = np.repeat(np.array([one.code for one in curves], np.int64), [len(one.place) for one in curves])
    codes, words = _device_words(device)
    return [
        texts("device", codes, words),
        integers("at_ns", _joined([one.ts_ns for one in curves])),
        integers("change_bytes", memory.size_bytes[use.rows[place]]),
        integers("allocated_bytes", _joined([one.allocated_bytes for one in curves])),
        optional("reserved_bytes", _joined([one.reserved_bytes for one in curves])),
        *places(analysis, use.line[place]),
    ]


def _device_words(codes: Int64) -> tuple[Int64, list[str]]:
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
    for code in distinct_values(use.device).tolist():
        where, values = use.level_of(code)
        level[where] = values
    device, words = _device_words(blocks.device[chosen])
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


def _is_live(analysis: Analysis, begin: Int64, end: Int64) -> Mask:
    """Which blocks were live at any event of the extent."""
    use = analysis.memory
    inside = np.flatnonzero(use.counted)
    if not len(inside):
        return np.zeros(len(begin), np.bool_)
    return np.asarray((begin <= inside[-1]) & ((end < 0) | (end >= inside[0])))


def step_trace_time(analysis: Analysis) -> list[RecordColumn]:
    """A row a step and device; without steps the window is one, without a number.

    `computing_ns`, `communication_not_overlapped_ns`, `copies_not_overlapped_ns` and `free_ns` sum to `duration_ns`.
    """
    attribution = analysis.attribution
    work, steps = attribution.work, attribution.training.steps
    spans, place = analysis.step_spans
    start, end = spans.start, spans.end
    shares = [_shares(analysis, device, start, end) for device in work.busy]
    count = len(shares)
    device = np.repeat(np.array(list(work.busy), np.int64), len(start))
    return [
        devices(analysis, device),
        optional("step", np.tile(pick(steps.number, place), count)),
        integers("start_ns", np.tile(start, count)),
        integers("duration_ns", np.tile(end - start, count)),
        *(integers(name, np.concatenate([start[:0], *(one[name] for one in shares)])) for name in _PARTS),
    ]


_PARTS = (
    "computing_ns",
    "communication_ns",
    "communication_not_overlapped_ns",
    "overlapped_ns",
    "copies_not_overlapped_ns",
    "free_ns",
)


def _shares(analysis: Analysis, device: int, start: Int64, end: Int64) -> dict[str, Int64]:
    """What a device does in each span; where the CPU is the device, operators compute."""
    work = analysis.attribution.work
    here = work.device == device
    compute = here & ~work.collective
    if work.metric == "device":
        compute &= work.kind == Kind.KERNEL
    computing, communicating = covered_by(work, compute), covered_by(work, here & work.collective)
    computing_ns, communication_ns = (one.overlap_ns(start, end) for one in (computing, communicating))
    overlapped_ns = computing.intersection(communicating).overlap_ns(start, end)
    exposed_ns = communication_ns - overlapped_ns
    busy_ns = work.busy[device].overlap_ns(start, end)
    return {
        "computing_ns": computing_ns,
        "communication_ns": communication_ns,
        "communication_not_overlapped_ns": exposed_ns,
        "overlapped_ns": overlapped_ns,
        "copies_not_overlapped_ns": busy_ns - computing_ns - exposed_ns,
        "free_ns": end - start - busy_ns,
    }


EVENT_TABLES: dict[str, Callable[[Analysis], list[RecordColumn]]] = {
    "operator_details": operator_details,
    "kernel_details": kernel_details,
    "step_trace_time": step_trace_time,
    "op_statistic": op_statistic,
    "memory_record": memory_record,
    "operator_memory": operator_memory,
    "communication": communication,
}


def event_table(analysis: Analysis, name: str, *, rank: int = -1) -> ColumnTable:
    """One of `EVENT_TABLES`, with the rank in front; -1 where that is not known."""
    columns = EVENT_TABLES[name](analysis)
    rows = len(columns[0].values)
    return ColumnTable(name, (RecordColumn("rank", "integer", [rank] * rows, is_optional=True, absent=-1), *columns))

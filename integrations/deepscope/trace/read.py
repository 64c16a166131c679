"""Any Kineto trace, from torch 1.8 on and from any device, into columns."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import fields, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from deepscope.errors import NotATraceError, TruncatedTraceError
from deepscope.processes import Progress
from deepscope.trace.arrays import LARGEST_SUM, distinct_places, distinct_values, summable
from deepscope.trace.format.header import read_header
from deepscope.trace.joins.backward import arrow_ends
from deepscope.trace.joins.nesting import innermost
from deepscope.trace.joins.recorded_scopes import resolve_scopes
from deepscope.trace.kinds import Kind
from deepscope.trace.kineto.arguments import as_int
from deepscope.trace.kineto.event_columns import EventColumns
from deepscope.trace.kineto.parallel import Decoders, decode_together, workers_for
from deepscope.trace.kineto.pieces import Pieces
from deepscope.trace.kineto.source import TraceSource
from deepscope.trace.model import QUEUE_OFFSET, Events, Flows, Int32, Int64, MemoryEvents, Messages, Thread, Trace
from deepscope.trace.names import kind_of

_MOST_BYTES = 2**50
"""A pebibyte, of one allocation or copy."""
_YEAR_NS = 365 * 86_400 * 10**9
CANN = "CANN"


def corrected(trace: Trace, arrows: Flows) -> Trace:
    """The trace with CANN's calls on the threads that made them, and with work joined to them by `arrows`."""
    events = trace.events
    home = _home_threads(trace)
    events = replace(events, thread=home[events.thread])
    arrows = replace(arrows, thread=home[arrows.thread])
    return replace(trace, events=replace(events, correlation=_joined(events, arrows)))


def _home_threads(trace: Trace) -> Int32:
    """The thread that each thread's events go to: CANN's go to the thread of the same number, if it has events."""
    events = trace.events
    used = np.bincount(events.thread[events.kind <= Kind.RUNTIME], minlength=len(trace.threads)) > 0
    home = np.arange(len(trace.threads), dtype=np.int32)
    own = {one.tid: i for i, one in enumerate(trace.threads) if used[i] and one.process_name != CANN}
    for i, one in enumerate(trace.threads):
        if one.process_name == CANN:
            home[i] = own.get(one.tid, i)
    return home


def _joined(events: Events, arrows: Flows) -> Int64:
    """Correlations: work at the head of a `HostToDevice` arrow has that of the call around its tail."""
    tails, heads = arrow_ends(arrows)
    calls = np.flatnonzero((events.kind == Kind.RUNTIME) & (events.correlation >= 0))
    work = np.flatnonzero((events.kind >= Kind.KERNEL) & (events.kind <= Kind.DEVICE_SPAN))
    call, target = _around(events, calls, arrows, tails), _around(events, work, arrows, heads)
    hit = (call >= 0) & (target >= 0)
    correlation: Int64 = events.correlation.copy()
    correlation[work[target[hit]]] = correlation[calls[call[hit]]]
    return correlation


def _around(events: Events, chosen: Int64, arrows: Flows, ends: Int64) -> Int64:
    """Which of the chosen events stands around each end of an arrow (indexes into `chosen`), -1 for none."""
    start, end = events.start_ns[chosen], events.end_ns[chosen]
    return innermost(arrows.ts_ns[ends], arrows.thread[ends], start, end, events.thread[chosen])


ColumnsT = TypeVar("ColumnsT", Events, MemoryEvents)


def read_trace(
    path: str | os.PathLike[str],
    *,
    partial: bool = False,
    progress: Progress | None = None,
    workers: int | None = None,
    decoders: Decoders | None = None,
) -> Trace:
    """Read a trace from a local path or any URL that fsspec knows; gzip is told by its content.

    `workers` processes beside this one decode parts of it (0: none; None: as many as are worth it). They are started
    here, unless `decoders` are running already.
    With `partial`, a file that ends early or is damaged yields the events before that place, and `truncated` is set.
    Raises `NoTraceError`, `NotATraceError`, `TruncatedTraceError`, or `MissingExtraError` for a URL's reader.
    """
    name = os.fspath(path)
    source = TraceSource(name, progress)
    columns = EventColumns()
    try:
        with no_collection(), closing(iter(source)) as chunks:
            pieces = Pieces(chunks, name)
            _decode_large(
                pieces, columns, decoders, workers_for(name, source.size_bytes) if workers is None else workers
            )
            for piece in pieces:
                columns.add(piece.events, piece.text)
    except NotATraceError:
        if not source.damage:
            raise
        raise TruncatedTraceError(_describe(name, source.damage, "is no trace as far as it goes", 0), 0) from None
    damage = source.damage or pieces.damage
    if damage and not partial:
        problem = _describe(name, source.damage, pieces.damage, pieces.read_events)
        raise TruncatedTraceError(problem, pieces.read_events)
    return _trace(name, columns, pieces.metadata, truncated=bool(damage))


def _decode_large(pieces: Pieces, columns: EventColumns, decoders: Decoders | None, workers: int) -> None:
    """Decodes a large trace by processes side by side, as far as they can; the rest is left in `pieces`."""
    if decoders is not None:
        decode_together(pieces, columns, decoders)
    elif workers:
        with Decoders(workers) as started:
            decode_together(pieces, columns, started)


@contextmanager
def no_collection() -> Iterator[None]:
    """No garbage collection within: what is made of a trace forms next to no cycles, and where torch is loaded each
    full collection takes a fifth of a second."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _describe(path: str, source_damage: str, damage: str, count: int) -> str:
    cause = source_damage or "disk full while recording?"
    where = damage or f"ends behind event {count:,}, the last"
    return f"{path}: {where} ({cause})"


def _trace(path: str, columns: EventColumns, metadata: dict[str, Any], *, truncated: bool) -> Trace:
    header = read_header(metadata.pop("deepscope", None))
    threads = list(columns.threads)
    process_names = [columns.process_names.get(pid, "") for pid, _ in threads]
    strings = columns.strings
    category = columns.column("category", np.int32)
    name = columns.column("name", np.int32)
    thread = columns.column("thread", np.int32)
    kind = _kinds(category, name, thread, list(strings), process_names)
    is_device = (kind >= Kind.KERNEL) & (kind <= Kind.DEVICE_SPAN)
    correlation = columns.argument("correlation")
    queue = columns.argument("correlation_id")
    np.copyto(correlation, queue + QUEUE_OFFSET, where=(queue >= 0) & (correlation < 0))
    texts = list(strings)
    scopes, scope = resolve_scopes(header, kind, columns.argument("scope"), name, texts)
    device, stream = _devices(columns, thread, threads, is_device)
    start, duration = columns.column("start_ns"), columns.column("duration_ns")
    size_bytes = columns.argument("size_bytes")
    shared_memory = columns.argument("shared_memory")
    events = Events(
        start_ns=start,
        duration_ns=duration,
        kind=kind,
        name=name,
        category=category,
        thread=thread,
        correlation=correlation,
        external_id=columns.argument("external_id"),
        sequence=columns.argument("sequence"),
        fwd_thread=columns.argument("fwd_thread"),
        device=device,
        stream=stream,
        call_stack=columns.argument("call_stack", np.int32),
        size_bytes=np.where(summable(size_bytes, _MOST_BYTES), size_bytes, -1),
        shapes=columns.argument("shapes", np.int32),
        dtypes=columns.argument("dtypes", np.int32),
        strides=columns.argument("strides", np.int32),
        occupancy=columns.argument("occupancy", np.int16),
        grid=columns.argument("grid", np.int32),
        block=columns.argument("block", np.int32),
        registers=columns.argument("registers", np.int32),
        shared_memory=np.where(summable(shared_memory, _MOST_BYTES), shared_memory, -1),
        blocks_per_sm=columns.argument("blocks_per_sm", np.float32),
        concrete=columns.argument("concrete", np.int32),
        wait_stream=columns.argument("wait_stream"),
        wait_record=columns.argument("wait_record"),
        graph_node=columns.argument("graph_node"),
        region=columns.argument("region", np.int32),
        region_pass=columns.argument("region_pass", np.int32),
        scope=scope,
    )
    threads_found = _threads(columns, process_names, thread, is_device)
    memory = columns.moments.memory()
    possible = possible_times(start, duration, device)
    sound = summable(memory.size_bytes, _MOST_BYTES)
    for whole in (memory.total_allocated_bytes, memory.total_reserved_bytes):
        sound &= np.abs(whole) <= _MOST_BYTES
    trace = Trace(
        path=path,
        strings=texts,
        threads=threads_found,
        events=_chosen(events, possible),
        flows=columns.moments.flows(),
        memory=_chosen(memory, sound),
        counters=columns.moments.counters(),
        scopes=scopes,
        messages=_messages(columns, possible),
        metadata=metadata,
        header=header,
        base_ns=_base_ns(metadata),
        truncated=truncated,
        left_out=columns.left_out + int((~possible).sum()) + int((~sound).sum()),
    )
    return corrected(trace, columns.moments.launch_arrows()) if CANN in process_names else trace


def _chosen(columns: ColumnsT, rows: npt.NDArray[np.bool_]) -> ColumnsT:
    if rows.all():
        return columns
    return type(columns)(**{one.name: getattr(columns, one.name)[rows] for one in fields(columns)})


def _messages(columns: EventColumns, kept: npt.NDArray[np.bool_]) -> Messages:
    """What events tell of collectives; events that are not `kept` tell nothing."""
    event, collectives = columns.of_collectives()
    rows = kept[event]
    return Messages(
        event=(np.cumsum(kept) - 1)[event[rows]] if len(event) else event,
        **{name: column[rows] for name, column in collectives.items()},
    )


def _base_ns(metadata: dict[str, Any]) -> int:
    value = metadata.get("baseTimeNanoseconds")
    return value if isinstance(value, int) else 0


def _kinds(
    category: Int32, name: Int32, thread: Int32, strings: list[str], process_names: list[str]
) -> npt.NDArray[np.uint8]:
    """Kinds by category; where the category does not settle it, once for each distinct category, name and process."""
    table = np.zeros(len(strings) + 1, np.uint8)
    unsettled = []
    for code in np.flatnonzero(np.bincount(category)).tolist():
        word = strings[code]
        table[code] = kind_of(word, "")
        if table[code] == Kind.OPERATOR or word in ("", "mtia_ccp_events"):
            unsettled.append(code)
    kind = table[category]
    count = len(process_names)
    for code in unsettled:
        rows = np.flatnonzero(category == code)
        keys, place = distinct_places(name[rows].astype(np.int64) * count + thread[rows])
        found = [kind_of(strings[code], strings[key // count], process_names[key % count]) for key in keys.tolist()]
        kind[rows] = np.array(found, np.uint8)[place]
    return kind


def _devices(
    columns: EventColumns, thread: Int32, threads: list[tuple[Any, Any]], is_device: npt.NDArray[np.bool_]
) -> tuple[Int32, Int64]:
    """Device and stream of device events, by their arguments, else by the process and thread that they stand on."""
    device = columns.argument("device")
    stream = columns.argument("stream")
    if threads:
        pids = np.array([as_int(pid) for pid, _ in threads], np.int64)
        tids = np.array([as_int(tid) for _, tid in threads], np.int64)
        device = np.where(is_device, np.where(device >= 0, device, pids[thread]), -1)
        stream = np.where(is_device, np.where(stream >= 0, stream, tids[thread]), -1)
    return device.astype(np.int32), stream


def _threads(
    columns: EventColumns, process_names: list[str], thread: Int32, is_device: npt.NDArray[np.bool_]
) -> list[Thread]:
    count = len(columns.threads)
    on_device = np.bincount(thread[is_device], minlength=count) > 0
    on_cpu = np.bincount(thread[~is_device], minlength=count) > 0
    device = (on_device & ~on_cpu).tolist()
    return [
        Thread(_word(pid), _word(tid), process_names[i], columns.thread_names.get((pid, tid), ""), device[i])
        for i, (pid, tid) in enumerate(columns.threads)
    ]


def _word(value: Any) -> int | str:
    return value if isinstance(value, (int, str)) else "" if value is None else str(value)


def possible_times(start_ns: Int64, duration_ns: Int64, device: npt.NDArray[np.signedinteger]) -> npt.NDArray[np.bool_]:
    """Which events of a trace can have been where they say: within a year of the others, and no longer than a year.

    What remains can be summed up over all events, and over all of the time for each device, in 64 bits. Starts lie in
    (-2**62, 2**62), durations in [0, 2**62); all arrays have shape (n,).
    """
    every = np.ones(len(start_ns), np.bool_)
    if not len(start_ns) or _span_ns(start_ns, duration_ns) * len(start_ns) < LARGEST_SUM:
        return every
    middle = np.partition(start_ns, len(start_ns) // 2)[len(start_ns) // 2]
    distance = np.abs(start_ns // 2 - middle // 2)  # halves: the whole might not fit
    for limit in (_YEAR_NS, LARGEST_SUM // (4 * len(start_ns))):
        found = (distance <= limit // 2) & (duration_ns <= limit)
        devices = len(distinct_values(device[found]))
        total_ns = duration_ns[found].sum(dtype=np.float64)
        if total_ns < LARGEST_SUM and (
            not devices or _span_ns(start_ns[found], duration_ns[found]) * devices < LARGEST_SUM
        ):
            break
    return np.asarray(found)


def _span_ns(start_ns: Int64, duration_ns: Int64) -> int:
    return int((start_ns + duration_ns).max()) - int(start_ns.min())

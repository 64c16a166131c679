"""What waited for what: calls on the CPU for the device, streams for each other, and threads for threads."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np

from deepscope.analysis.array_ops.selection import Mask, distinct, expanded, mask_of, named, of_kind
from deepscope.analysis.critical.streams import (
    CLOCK_ERROR_NS,
    DevicePieces,
    last_pieces,
    process_of_streams,
    processes,
    recorded_at,
    stream_of,
    sync_spans,
)
from deepscope.analysis.ownership.calls import CPU_KINDS, CallForest
from deepscope.trace.arrays import distinct_places, distinct_values, first_with, pick
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64, Trace
from deepscope.trace.names import is_sync

_ALL_STREAMS = re.compile(r"Device|Ctx|Context|Thread|Free")
_FREES = re.compile(r"(?:cuda|hip|musa)Free(?:Host)?")
"""Memory is freed when the device is done with it: https://docs.nvidia.com/cuda/cuda-runtime-api/api-sync-behavior.html"""
_MOST_STREAMS = 32
"""A call that waits for a whole device is held against so many streams, those with most work."""


@dataclass(frozen=True, slots=True)
class DeviceWaits:
    """Calls that return when pieces of work have ended: pairs of a call and a piece, by call; arrays of shape (k,)."""

    call: Int64
    """The event."""
    piece: Int64


def find_device_waits(trace: Trace, pieces: DevicePieces, kind_of_work: Int64, node: Int64) -> DeviceWaits:
    """Which call on the CPU waits for which pieces: of each stream that it waits for, the last one.

    Synchronisation of a device, or freeing memory, waits for all streams of its process, that of a stream or an event
    for one. Which stream that is, and what of it came before the event, Kineto's `cuda_sync` spans tell. Without them
    it is the stream that the thread launched to last, or, where that does not explain the wait, the one whose work
    ended as the call returned. Copies wait for themselves: blocking ones, and those that had ended when their call
    returned.

    Args:
        trace: any trace.
        pieces: of its work.
        kind_of_work: `Kind` of each piece; shape (p,).
        node: the event that launched each piece, -1 for none; shape (p,).
    """
    events = trace.events
    runtime = of_kind(trace, Kind.RUNTIME)
    sync = named(trace, runtime, is_sync)
    copies = np.flatnonzero((kind_of_work == Kind.MEMCPY) & (node >= 0))
    copies = copies[runtime[node[copies]]]
    returned = pieces.end[copies] <= events.end_ns[node[copies]] + CLOCK_ERROR_NS * sync[node[copies]]
    copies = copies[returned]
    found = [(node[copies], copies)]
    own = mask_of(node[copies], len(events))
    calls = np.flatnonzero((sync | named(trace, runtime, _FREES.fullmatch)) & ~own)
    if len(calls) and len(pieces):
        found.append(_of_streams(trace, pieces, calls))
    call, piece = (np.concatenate(column) for column in zip(*found, strict=True))
    valid = (pieces.start[piece] < events.end_ns[call]) & (events.duration_ns[call] > 0)
    order = np.lexsort((piece[valid], call[valid]))
    return DeviceWaits(call[valid][order], piece[valid][order])


def clipped(pieces: DevicePieces, waits: DeviceWaits, return_ns: Int64) -> DevicePieces:
    """The pieces, none of which ends after the return of a call that waited for it."""
    end = pieces.end.copy()
    np.minimum.at(end, waits.piece, np.maximum(return_ns[waits.call], pieces.start[waits.piece]))
    return replace(pieces, end=end)


def _of_streams(trace: Trace, pieces: DevicePieces, calls: Int64) -> tuple[Int64, Int64]:
    """Pairs of a call and the last piece of a stream that it waits for."""
    events = trace.events
    until = events.start_ns[calls].copy()
    whole = named(trace, mask_of(calls, len(events)), lambda name: _ALL_STREAMS.search(name) is not None)[calls]
    stream = _launched_to_last(pieces, events.thread[calls].astype(np.int64), until)
    spans = sync_spans(trace)
    at = first_with(events.correlation[calls], events.correlation[spans])
    for name in distinct(events.name[spans[at >= 0]], len(trace.strings)):
        rows = np.flatnonzero((at >= 0) & (events.name[spans] == name))
        spans_of_calls, hit = spans[rows], at[rows]
        if trace.strings[name] == "Stream Sync":
            stream[hit] = stream_of(trace, pieces, events.device[spans_of_calls], events.stream[spans_of_calls])
        elif trace.strings[name] == "Event Sync":
            stream[hit] = stream_of(trace, pieces, events.device[spans_of_calls], events.wait_stream[spans_of_calls])
            until[hit] = recorded_at(trace, spans_of_calls, until[hit])
    count = np.bincount(pieces.stream)
    process = processes(trace)
    streams = np.argsort(-count, kind="stable")[:_MOST_STREAMS]
    of_stream = process_of_streams(pieces, process, len(count))[streams][:, None]
    same = (of_stream < 0) | (process[events.thread[calls]] == of_stream)
    has_span = mask_of(at[at >= 0], len(calls))
    others = np.flatnonzero(~whole & ~has_span)
    ended = events.end_ns[calls] + CLOCK_ERROR_NS
    choice = streams.tolist()
    stream[others] = _explained(
        pieces, stream[others], choice, since=until[others], ended=ended[others], same=same[:, others]
    )
    one = np.flatnonzero(~whole & (stream >= 0))
    pairs_call, pairs_stream = [one], [stream[one]]
    for number, own in zip(choice, same, strict=True):
        rows = np.flatnonzero(whole & own)
        pairs_call.append(rows)
        pairs_stream.append(np.full(len(rows), number, np.int64))
    row, number = np.concatenate(pairs_call), np.concatenate(pairs_stream)
    piece = last_pieces(pieces, number, until[row], events.end_ns[calls[row]] + CLOCK_ERROR_NS)
    return calls[row[piece >= 0]], piece[piece >= 0]


def _launched_to_last(pieces: DevicePieces, thread: Int64, at: Int64) -> Int64:
    """The stream of the last piece that each thread launched before an instant, -1 for none."""
    order = np.lexsort((pieces.start, pieces.launch, pieces.thread))
    launch, threads = pieces.launch[order], pieces.thread[order]
    found = np.full(len(at), -1, np.int64)
    for number in distinct_values(thread).tolist():
        rows = np.flatnonzero(thread == number)
        low, high = np.searchsorted(threads, [number, number + 1]).tolist()
        place = low + np.searchsorted(launch[low:high], at[rows], side="left") - 1
        inside = place >= low
        found[rows[inside]] = order[place[inside]]
    return pick(pieces.stream, found)


def _explained(
    pieces: DevicePieces, stream: Int64, streams: list[int], *, since: Int64, ended: Int64, same: Mask
) -> Int64:
    """The stream that each call waited for: the guessed one, if its last piece ended during the call, or if no other
    piece ended just before the call returned.

    Args:
        pieces: of work.
        stream: the guess, -1 for none; shape (c,).
        streams: those that may have been waited for.
        since: when each call began; what it waits for was launched before.
        ended: when it returned.
        same: whether each stream is of the call's process; shape (streams, c).
    """
    guess = last_pieces(pieces, stream, since, ended)
    behind = np.where(guess >= 0, pieces.end[guess], 0)
    latest: Int64 = np.maximum(behind, since)
    found: Int64 = stream.copy()
    for number, own in zip(streams, same, strict=True):
        piece = last_pieces(pieces, np.full(len(stream), number), since, ended)
        end = np.where(own & (piece >= 0), pieces.end[piece], 0)
        better = (end > latest) & ((behind <= since) | (ended - behind > pieces.usual_delay_ns))
        better &= ended - end <= pieces.usual_delay_ns
        latest, found = np.where(better, end, latest), np.where(better, number, found)
    return found


class JoinKind(IntEnum):
    """What a thread goes on behind. At one instant lower kinds come first."""

    DEVICE = 0
    """A call returned that waited for the device."""
    RETURN = 1
    """The training thread had handed over to a thread of autograd's engine, which is done."""
    START = 2
    """A thread of autograd's engine begins with what the training thread handed over."""


@dataclass(frozen=True, slots=True)
class Joins:
    """Instants from which a thread goes on behind something else, by thread and time; arrays of shape (j,)."""

    kind: Int64
    thread: Int64
    at: Int64
    """When the thread goes on."""
    since: Int64
    """From when on it waited: its own time between the two is none of its work. `at` for a START."""
    event: Int64
    """The call of a DEVICE join, -1 for others."""
    other: Int64
    """The thread handed over to, or that handed over; -1 for a DEVICE join."""
    begin: Int64
    """The pieces waited for are `piece[begin[i] : begin[i + 1]]`; shape (j + 1,)."""
    piece: Int64
    last: Int64
    """Of these the last to end, -1 for none."""
    waited: Mask
    """Whether it went on behind the other: whether the last of these pieces ended after `since`."""

    def __len__(self) -> int:
        return len(self.at)

    def at_or_before(self, thread: Int64, ts: Int64) -> Int64:
        """The last join of each thread at or before an instant, -1 for none."""
        found = np.full(len(ts), -1, np.int64)
        numbers, place = distinct_places(thread)
        for index, number in enumerate(numbers.tolist()):
            rows = np.flatnonzero(place == index)
            low, high = np.searchsorted(self.thread, [number, number + 1]).tolist()
            position = low + np.searchsorted(self.at[low:high], ts[rows], side="right") - 1
            found[rows] = np.where(position >= low, position, -1)
        return found


def find_joins(
    trace: Trace, calls: CallForest, training_thread: int, pieces: DevicePieces, waits: DeviceWaits
) -> Joins:
    """All joins of a trace. Of calls of one thread that overlap the first counts."""
    events = trace.events
    call, begin = _first_of_each(waits.call)
    call, begin = call[kept := _apart(trace, call)], begin[kept]
    handed = _handed_over(trace, calls, training_thread)
    count = len(call)
    kind = np.concatenate((np.full(count, JoinKind.DEVICE), handed.kind)).astype(np.int64)
    thread = np.concatenate((events.thread[call], handed.thread)).astype(np.int64)
    at = np.concatenate((events.end_ns[call], handed.at))
    since = np.concatenate((events.start_ns[call], handed.since))
    event = np.concatenate((call, np.full(len(handed.at), -1, np.int64)))
    other = np.concatenate((np.full(count, -1, np.int64), handed.other))
    sizes = np.concatenate((begin[:, 1] - begin[:, 0], np.zeros(len(handed.at), np.int64)))
    first = np.concatenate((begin[:, 0], np.zeros(len(handed.at), np.int64)))
    order = np.lexsort((event, kind, at, thread))
    sizes, first = sizes[order], first[order]
    owner, pairs = expanded(first, sizes)
    piece = waits.piece[pairs]
    last = np.full(len(order), -1, np.int64)
    by_end = np.lexsort((-piece, pieces.end[piece], owner))
    last[owner[by_end]] = piece[by_end]
    kind, since = kind[order], since[order]
    ended = np.where(last >= 0, pieces.end[last] if len(pieces) else 0, np.iinfo(np.int64).min)
    return Joins(
        kind=kind,
        thread=thread[order],
        at=at[order],
        since=since,
        event=event[order],
        other=other[order],
        begin=np.concatenate(([0], np.cumsum(sizes))),
        piece=piece,
        last=last,
        waited=(kind != JoinKind.DEVICE) | (ended > since),
    )


def _first_of_each(call: Int64) -> tuple[Int64, Int64]:
    """The calls that occur, and where each one's pairs begin and end; shapes (c,) and (c, 2)."""
    if not len(call):
        return call, np.zeros((0, 2), np.int64)
    begin = np.flatnonzero(np.append(True, call[1:] != call[:-1]))
    return call[begin], np.stack((begin, np.append(begin[1:], len(call))), axis=1)


def _apart(trace: Trace, call: Int64) -> Int64:
    """Calls (positions) that no earlier one of their thread overlaps."""
    events = trace.events
    order = np.lexsort((-events.duration_ns[call], events.start_ns[call], events.thread[call]))
    kept = []
    thread, free_ns = -1, 0
    rows = zip(
        order.tolist(),
        events.thread[call[order]].tolist(),
        events.start_ns[call[order]].tolist(),
        events.end_ns[call[order]].tolist(),
        strict=True,
    )
    for place, own, start, end in rows:
        if own != thread or start >= free_ns:
            kept.append(place)
            thread, free_ns = own, end
    return np.array(kept, np.int64)


@dataclass(frozen=True, slots=True)
class _Handed:
    kind: Int64
    thread: Int64
    at: Int64
    since: Int64
    other: Int64


def _handed_over(trace: Trace, calls: CallForest, training_thread: int) -> _Handed:
    """Where the training thread hands over to threads of autograd's engine, and where it goes on.

    What the engine runs on another thread while nothing begins or ends on the training thread is one pass: the thread
    starts with what it was handed, and the training thread returns as the last span of it ends.
    """
    events = trace.events
    roots = np.flatnonzero(calls.root == np.arange(len(events)))
    roots = roots[(events.thread[roots] != training_thread) & (events.duration_ns[roots] > 0)]
    if not len(roots) or training_thread < 0:
        return _Handed(*[np.zeros(0, np.int64)] * 5)
    own = np.flatnonzero(
        (events.thread == training_thread)
        & of_kind(trace, *(kind for kind in CPU_KINDS if kind != Kind.ANNOTATION))
        & ~trace.library_lines
    )
    # The starts are nearly sorted, and so are the ends: a stable sort merges them.
    cuts = np.sort(np.concatenate((events.start_ns[own], events.end_ns[own])), kind="stable")
    gap = np.searchsorted(cuts, events.start_ns[roots], side="right")
    threads = len(trace.threads)
    _, group = distinct_places(gap * threads + events.thread[roots])
    count = int(group.max()) + 1
    begin = np.full(count, np.iinfo(np.int64).max)
    end = np.full(count, np.iinfo(np.int64).min)
    thread, until = np.zeros(count, np.int64), np.zeros(count, np.int64)
    np.minimum.at(begin, group, events.start_ns[roots])
    np.maximum.at(end, group, events.end_ns[roots])
    thread[group] = events.thread[roots]
    until[group] = np.append(cuts, np.iinfo(np.int64).max)[gap]
    returns = end <= until
    trains = np.full(count, training_thread, np.int64)
    return _Handed(
        kind=np.repeat(np.array([JoinKind.START, JoinKind.RETURN], np.int64), [count, int(returns.sum())]),
        thread=np.append(thread, trains[returns]),
        at=np.append(begin, end[returns]),
        since=np.append(begin, begin[returns]),
        other=np.append(trains, thread[returns]),
    )

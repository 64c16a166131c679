"""What waited for work of the device: calls on the CPU, and streams for each other."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np

from deepscope.analysis.algebra.selection import Mask, distinct, named, of_kind
from deepscope.analysis.critical.pieces import CLOCK_ERROR_NS, Pieces
from deepscope.trace.arrays import distinct_values, first_with, pick
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int32, Int64, Trace
from deepscope.trace.names import is_sync

__all__ = ["DeviceWaits", "clipped", "find_device_waits", "find_stream_waits"]

_ALL_STREAMS = re.compile(r"Device|Ctx|Context|Thread")
_STREAM_WAIT = re.compile(r"(?:cuda|hip|cu|musa)StreamWaitEvent\w*")
_MOST_STREAMS = 32
"""A call that waits for a whole device is held against so many streams, those with most work."""
_TRIES = 8
"""So many of the last pieces to end are looked at for one that a stream may have waited for."""


@dataclass(frozen=True, slots=True)
class DeviceWaits:
    """Calls that return when pieces of work have ended: pairs of a call and a piece, by call; arrays of shape (k,)."""

    call: Int64
    """The event."""
    piece: Int64


def find_device_waits(trace: Trace, pieces: Pieces, kind_of_work: Int64, node: Int64) -> DeviceWaits:
    """Which call on the CPU waits for which pieces: of each stream that it waits for, the last one.

    Synchronisation of a device waits for all streams of its process, that of a stream or an event for one. Which
    stream that is, and what of it came before the event, Kineto's `cuda_sync` spans tell. Without them it is the
    stream that the thread launched to last. Copies wait for themselves: blocking ones, and those that had ended when
    their call returned.

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
    own = np.zeros(len(events), np.bool_)
    own[node[copies]] = True
    calls = np.flatnonzero(sync & ~own)
    if len(calls) and len(pieces):
        found.append(_of_streams(trace, pieces, calls))
    call, piece = (np.concatenate(column) for column in zip(*found, strict=True))
    valid = (pieces.start[piece] < events.end_ns[call]) & (events.duration_ns[call] > 0)
    order = np.lexsort((piece[valid], call[valid]))
    return DeviceWaits(call[valid][order], piece[valid][order])


def clipped(pieces: Pieces, waits: DeviceWaits, return_ns: Int64) -> Pieces:
    """The pieces, none of which ends after the return of a call that waited for it."""
    end = pieces.end.copy()
    np.minimum.at(end, waits.piece, np.maximum(return_ns[waits.call], pieces.start[waits.piece]))
    return replace(pieces, end=end)


def _of_streams(trace: Trace, pieces: Pieces, calls: Int64) -> tuple[Int64, Int64]:
    """Pairs of a call and the last piece of a stream that it waits for."""
    events = trace.events
    until = events.start_ns[calls].copy()
    whole = named(trace, _only(calls, len(events)), lambda name: _ALL_STREAMS.search(name) is not None)[calls]
    stream = _launched_to_last(pieces, events.thread[calls].astype(np.int64), until)
    spans = _sync_spans(trace)
    at = first_with(events.correlation[calls], events.correlation[spans])
    for name in distinct(events.name[spans[at >= 0]], len(trace.strings)):
        rows = np.flatnonzero((at >= 0) & (events.name[spans] == name))
        told, hit = spans[rows], at[rows]
        if trace.strings[name] == "Stream Sync":
            stream[hit] = _stream_of(trace, pieces, events.device[told], events.stream[told])
        elif trace.strings[name] == "Event Sync":
            stream[hit] = _stream_of(trace, pieces, events.device[told], events.wait_stream[told])
            until[hit] = _recorded(trace, told, until[hit])
    one = np.flatnonzero(~whole & (stream >= 0))
    pairs_call, pairs_stream = [one], [stream[one]]
    count = np.bincount(pieces.stream)
    process = _processes(trace)
    stream_process = _process_of_streams(pieces, process, len(count))
    for number in np.argsort(-count, kind="stable")[:_MOST_STREAMS].tolist():
        rows = np.flatnonzero(whole)
        same = (stream_process[number] < 0) | (process[events.thread[calls[rows]]] == stream_process[number])
        pairs_call.append(rows[same])
        pairs_stream.append(np.full(int(same.sum()), number, np.int64))
    row, number = np.concatenate(pairs_call), np.concatenate(pairs_stream)
    piece = _last(pieces, number, until[row], events.end_ns[calls[row]] + CLOCK_ERROR_NS)
    return calls[row[piece >= 0]], piece[piece >= 0]


def _last(pieces: Pieces, stream: Int64, until: Int64, ended: Int64) -> Int64:
    """The last piece of each stream that was launched before an instant and ended by another one, -1 for none."""
    found = np.full(len(stream), -1, np.int64)
    for number in distinct_values(stream).tolist():
        rows = np.flatnonzero(stream == number)
        low, high = np.searchsorted(pieces.stream, [number, number + 1]).tolist()
        known = np.where(pieces.launched[low:high], pieces.launch[low:high], np.iinfo(np.int64).min)
        launched = np.searchsorted(np.maximum.accumulate(known), until[rows], side="left")
        done = np.searchsorted(np.maximum.accumulate(pieces.end[low:high]), ended[rows], side="right")
        place = np.minimum(launched, done) - 1
        found[rows] = np.where(place >= 0, low + place, -1)
    return found


def _launched_to_last(pieces: Pieces, thread: Int64, at: Int64) -> Int64:
    """The stream of the last piece that each thread launched before an instant, -1 for none."""
    found = _neighbour(pieces, thread, at, later=False)
    return pick(pieces.stream, found)


def _neighbour(pieces: Pieces, thread: Int64, at: Int64, *, later: bool) -> Int64:
    """The last piece that each thread launched before an instant, or the first from it on; -1 for none."""
    order = np.lexsort((pieces.start, pieces.launch, pieces.thread))
    launch, threads = pieces.launch[order], pieces.thread[order]
    found = np.full(len(at), -1, np.int64)
    for number in distinct_values(thread).tolist():
        rows = np.flatnonzero(thread == number)
        low, high = np.searchsorted(threads, [number, number + 1]).tolist()
        place = low + np.searchsorted(launch[low:high], at[rows], side="left") - (not later)
        inside = (place >= low) & (place < high)
        found[rows[inside]] = order[place[inside]]
    return found


def find_stream_waits(trace: Trace, pieces: Pieces) -> Int64:
    """Of each piece the piece of another stream that its own stream was told to wait for, -1 for none; shape (p,).

    `cuda_sync` spans tell both streams and the call that recorded the event. Without them the piece is the next that
    the thread launched after the call; if it started later than its launch and its stream explain, it waited for what
    ended last, by its start, of the work on other streams launched before the call.
    """
    events = trace.events
    result = np.full(len(pieces), -1, np.int64)
    calls = np.flatnonzero(named(trace, of_kind(trace, Kind.RUNTIME), _STREAM_WAIT.fullmatch))
    if not len(calls) or not len(pieces):
        return result
    spans = _sync_spans(trace)
    spans = spans[named(trace, _only(spans, len(events)), lambda name: name == "Stream Wait Event")[spans]]
    at = first_with(events.correlation[calls], events.correlation[spans])
    spans, at = spans[at >= 0], at[at >= 0]
    told, told_for = _told(trace, pieces, spans, calls[at])
    rest = np.ones(len(calls), np.bool_)
    rest[at] = False
    guessed, guessed_for = _guessed(trace, pieces, calls[rest])
    piece, other = np.append(told, guessed), np.append(told_for, guessed_for)
    valid = (pieces.end[other] <= pieces.start[piece]) & (pieces.start[other] < pieces.start[piece])
    piece, other = piece[valid], other[valid]
    order = np.lexsort((other, pieces.end[other]))  # of several the last to end
    result[piece[order]] = other[order]
    return result


def _told(trace: Trace, pieces: Pieces, spans: Int64, calls: Int64) -> tuple[Int64, Int64]:
    """Pieces that waited and what they waited for, as `Stream Wait Event` spans tell."""
    events = trace.events
    own = _stream_of(trace, pieces, events.device[spans], events.stream[spans])
    other = _stream_of(trace, pieces, events.device[spans], events.wait_stream[spans])
    asked = events.start_ns[calls]
    never = np.full(len(spans), np.iinfo(np.int64).max)
    source = _last(pieces, other, _recorded(trace, spans, asked), never)
    piece = _first_launched(pieces, own, asked)
    known = (piece >= 0) & (source >= 0) & (own != other)
    return piece[known], source[known]


def _first_launched(pieces: Pieces, stream: Int64, at: Int64) -> Int64:
    """The first piece of each stream that was launched at or after an instant, -1 for none."""
    found = np.full(len(stream), -1, np.int64)
    for number in distinct_values(stream).tolist():
        rows = np.flatnonzero(stream == number)
        low, high = np.searchsorted(pieces.stream, [number, number + 1]).tolist()
        place = low + np.searchsorted(np.maximum.accumulate(pieces.launch[low:high]), at[rows], side="left")
        found[rows] = np.where(place < high, place, -1)
    return found


def _guessed(trace: Trace, pieces: Pieces, calls: Int64) -> tuple[Int64, Int64]:
    """Pieces that started late after a call that makes their stream wait, and what ended last before they started."""
    events = trace.events
    asked = events.start_ns[calls]
    piece = _neighbour(pieces, events.thread[calls].astype(np.int64), asked, later=True)
    calls, asked, piece = calls[piece >= 0], asked[piece >= 0], piece[piece >= 0]
    ready = np.maximum(pieces.launch[piece], np.where(pieces.before[piece] >= 0, pieces.end[pieces.before[piece]], 0))
    process = _processes(trace)
    of_stream = _process_of_streams(pieces, process, int(pieces.stream.max()) + 1)[pieces.stream]
    order = np.lexsort((pieces.start, pieces.end))
    end = pieces.end[order]
    place = np.searchsorted(end, pieces.start[piece], side="right") - 1
    source = np.full(len(piece), -1, np.int64)
    open_ = np.flatnonzero(place >= 0)
    for _ in range(_TRIES):
        candidate = order[place[open_]]
        explains = pieces.end[candidate] > ready[open_]
        fits = (pieces.stream[candidate] != pieces.stream[piece[open_]]) & (pieces.launch[candidate] < asked[open_])
        fits &= explains & (of_stream[candidate] == of_stream[piece[open_]])
        source[open_[fits]] = candidate[fits]
        open_ = open_[explains & ~fits]
        place[open_] -= 1
        open_ = open_[place[open_] >= 0]
    return piece[source >= 0], source[source >= 0]


def _sync_spans(trace: Trace) -> Int64:
    """Kineto's `cuda_sync` spans, which repeat a call with what it waited for."""
    spans = of_kind(trace, Kind.DEVICE_SPAN)
    category = np.array([text == "cuda_sync" for text in trace.strings] + [False])
    return np.flatnonzero(spans & category[trace.events.category] & (trace.events.correlation >= 0))


def _recorded(trace: Trace, spans: Int64, otherwise: Int64) -> Int64:
    """When the event that each span waits for was recorded; `otherwise` where the file does not have that call."""
    events = trace.events
    calls = np.flatnonzero((events.kind == Kind.RUNTIME) & (events.correlation >= 0))
    at = first_with(events.correlation[calls], events.wait_record[spans])
    known = (at >= 0) & (events.wait_record[spans] >= 0)
    return np.where(known, events.start_ns[pick(calls, at)], otherwise) if len(calls) else otherwise


def _stream_of(trace: Trace, pieces: Pieces, device: Int32, stream: Int64) -> Int64:
    """The number of a device's stream, -1 where it has no work."""
    events = trace.events
    found = np.full(len(stream), -1, np.int64)
    first = np.append(True, pieces.stream[1:] != pieces.stream[:-1])
    known = {
        (int(events.device[event]), int(events.stream[event])): number
        for event, number in zip(pieces.event[first].tolist(), pieces.stream[first].tolist(), strict=True)
    }
    keys = zip(device.tolist(), stream.tolist(), strict=True)
    found[:] = [known.get(key, -1) for key in keys]
    return found


def _processes(trace: Trace) -> Int64:
    """A number for the process of each thread; shape (threads,)."""
    index: dict[object, int] = {}
    return np.array([index.setdefault(one.pid, len(index)) for one in trace.threads], np.int64)


def _process_of_streams(pieces: Pieces, process: Int64, streams: int) -> Int64:
    """The process that launches to each stream, -1 where that is not known."""
    found = np.full(streams, -1, np.int64)
    known = pieces.thread >= 0
    found[pieces.stream[known]] = process[pieces.thread[known]]
    return found


def _only(chosen: Int64, among: int) -> Mask:
    mask = np.zeros(among, np.bool_)
    mask[chosen] = True
    return mask

"""What waited for work of the device: calls on the CPU, and streams for each other."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np

from deepscope.analysis.array_ops.selection import Mask, distinct, named, of_kind
from deepscope.analysis.critical.pieces import CLOCK_ERROR_NS, DevicePieces
from deepscope.analysis.critical.streams import (
    last_pieces,
    only,
    process_of_streams,
    processes,
    recorded_at,
    stream_of,
    sync_spans,
)
from deepscope.trace.arrays import distinct_values, first_with, pick
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
    own = np.zeros(len(events), np.bool_)
    own[node[copies]] = True
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
    whole = named(trace, only(calls, len(events)), lambda name: _ALL_STREAMS.search(name) is not None)[calls]
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
    is_told = np.zeros(len(calls), np.bool_)
    is_told[at[at >= 0]] = True
    untold = np.flatnonzero(~whole & ~is_told)
    ended = events.end_ns[calls] + CLOCK_ERROR_NS
    choice = streams.tolist()
    stream[untold] = _explained(
        pieces, stream[untold], choice, since=until[untold], ended=ended[untold], same=same[:, untold]
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

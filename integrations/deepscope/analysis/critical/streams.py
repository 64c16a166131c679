"""Streams of work and their pieces, and which work waited for work of other streams: as told, else by delays."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from deepscope.analysis.array_ops.selection import Mask, mask_of, named, of_kind
from deepscope.analysis.ownership.attribution import OwnedWork
from deepscope.trace.arrays import distinct_places, distinct_values, first_with, pick
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Events, Int32, Int64, Trace

CLOCK_ERROR_NS = 4_000
"""Clocks may be wrong by so much: old recorders round to microseconds at both ends, and the device has its own."""
_LEAST = 10
"""Per cent of the launches to free streams that have the least delay."""
_TIMES = 10
"""Delays differ by so much on a busy machine."""
_SHORTEST_NS = 20_000
"""Shorter delays are always usual."""
_LONGEST_NS = 1_000_000
"""Longer delays never are: the device may be busy with what was launched before the trace begins."""


class WaitedFor(IntEnum):
    """What a piece started behind: the last of what it needed."""

    NOTHING = 0
    """Nothing that the trace knows."""
    STREAM = 1
    """The piece before it on its stream."""
    OTHER_STREAM = 2
    """Work of another stream that its own was told to wait for."""
    LAUNCH = 3
    """The call that launched it."""


@dataclass(frozen=True, slots=True)
class DevicePieces:
    """Pieces of device work, by stream and start; arrays of shape (p,). `Int64` but for the masks."""

    row: Int64
    """The row of `OwnedWork` that counts for the piece."""
    event: Int64
    first_row: Int64
    """Its first row; its others follow."""
    start: Int64
    end: Int64
    """Not after the start of the next on the stream, nor after the return of a call that waited for it, where clocks
    are wrong by a little."""
    stream: Int64
    """A number for the device's stream."""
    thread: Int64
    """The thread that launched it, -1 for none."""
    launch: Int64
    """When it was launched, not after its start."""
    before: Int64
    """The piece that its stream had to end first, -1 for none."""
    location: Int64
    """The line, an index into `Scopes.locations`; -1 for none. Of a kernel with several, the one that counts."""
    collective: Mask
    explained_ns: Int64
    """Until when a usual delay behind its launching call and the piece before explains that it had not started."""
    usual_delay_ns: int
    """At most so long is the delay before a start that waits for nothing but its launch and the piece before."""

    def __len__(self) -> int:
        return len(self.row)

    @property
    def launched(self) -> Mask:
        """Whether the launch is known."""
        return self.thread >= 0


def find_pieces(events: Events, work: OwnedWork) -> DevicePieces:
    """The pieces of all device work; none where the CPU is the device."""
    row = np.flatnonzero(work.counts) if work.metric == "device" else np.zeros(0, np.int64)
    stream = _streams(events, work.event[row])
    start, end = work.start_ns[row], work.end_ns[row]
    order = np.lexsort((work.event[row], end, start, stream))
    row, stream, start, end = row[order], stream[order], start[order], end[order]
    same = np.append(stream[1:] == stream[:-1], False)[: len(row)]
    following = np.append(start[1:], start[-1:])
    late = same & (end > following) & (end - following <= CLOCK_ERROR_NS)
    end = np.where(late, np.maximum(following, start), end)
    node = work.node[row]
    launch = np.minimum(work.launch_ns[row], start)
    before = _before(start, end, stream)
    never = np.iinfo(np.int64).min // 2
    known = node >= 0
    returned = np.where(known, np.maximum(events.end_ns[node], launch), never) if len(events) else launch
    ended = np.where(before >= 0, end[before], never) if len(row) else start
    explained = np.maximum(returned, ended)
    usual = _usual_delay(start[known] - launch[known], (ended <= launch)[known])
    return DevicePieces(
        row=row,
        event=work.event[row],
        first_row=np.searchsorted(work.piece, work.piece[row]),
        start=start,
        end=end,
        stream=stream,
        thread=np.where(node < 0, -1, events.thread[node]) if len(events) else node,
        launch=launch,
        before=before,
        location=work.location[row],
        collective=work.collective[row],
        explained_ns=np.where(explained == never, start, explained + usual),
        usual_delay_ns=usual,
    )


def _usual_delay(delay: Int64, is_free: Mask) -> int:
    """A multiple of the least delay of launches to streams that had nothing to do, clocks being wrong by a little."""
    least = int(np.percentile(delay[is_free], _LEAST, method="lower")) if is_free.any() else 0
    return min(max(_TIMES * least, _SHORTEST_NS), _LONGEST_NS) + CLOCK_ERROR_NS


def _streams(events: Events, event: Int64) -> Int64:
    """A number for the stream of each event, in the order of devices and their streams; shape (p,)."""
    found, place = distinct_places(events.thread[event])
    first = np.full(len(found), -1, np.int64)
    first[place[::-1]] = event[::-1]
    order = np.lexsort((found, events.stream[first], events.device[first]))
    number = np.zeros(len(found), np.int64)
    number[order] = np.arange(len(found))
    return number[place]


def _before(start: Int64, end: Int64, stream: Int64) -> Int64:
    """Of each piece the last to end on its stream by the time it starts, -1 for none. Sorted by stream and start.

    Pieces of one stream follow each other; those of a replayed graph may run side by side.
    """
    before = np.arange(-1, len(start) - 1)
    if not len(before):
        return before
    first = np.append(True, stream[1:] != stream[:-1])
    before[first] = -1
    side_by_side = stream[~first & (end[before] > start)]
    for number in distinct_values(side_by_side).tolist():
        low, high = np.searchsorted(stream, [number, number + 1]).tolist()
        by_end = low + np.argsort(end[low:high], kind="stable")
        place = np.searchsorted(end[by_end], start[low:high], side="right") - 1
        found = np.where(place >= 0, by_end[np.maximum(place, 0)], -1)
        before[low:high] = np.where(found < np.arange(low, high), found, -1)
    return before


def last_pieces(pieces: DevicePieces, stream: Int64, until: Int64, ended: Int64) -> Int64:
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


def sync_spans(trace: Trace) -> Int64:
    """Kineto's `cuda_sync` spans, which repeat a call with what it waited for."""
    spans = of_kind(trace, Kind.DEVICE_SPAN)
    category = np.array([text == "cuda_sync" for text in trace.strings] + [False])
    return np.flatnonzero(spans & category[trace.events.category] & (trace.events.correlation >= 0))


def recorded_at(trace: Trace, spans: Int64, otherwise: Int64) -> Int64:
    """When the event that each span waits for was recorded; `otherwise` where the file does not have that call."""
    events = trace.events
    calls = np.flatnonzero((events.kind == Kind.RUNTIME) & (events.correlation >= 0))
    at = first_with(events.correlation[calls], events.wait_record[spans])
    known = (at >= 0) & (events.wait_record[spans] >= 0)
    return np.where(known, events.start_ns[pick(calls, at)], otherwise) if len(calls) else otherwise


def stream_of(trace: Trace, pieces: DevicePieces, device: Int32, stream: Int64) -> Int64:
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


def processes(trace: Trace) -> Int64:
    """A number for the process of each thread; shape (threads,)."""
    index: dict[object, int] = {}
    return np.array([index.setdefault(one.pid, len(index)) for one in trace.threads], np.int64)


def process_of_streams(pieces: DevicePieces, process: Int64, streams: int) -> Int64:
    """The process that launches to each stream, -1 where that is not known."""
    found = np.full(streams, -1, np.int64)
    known = pieces.thread >= 0
    found[pieces.stream[known]] = process[pieces.thread[known]]
    return found


_STREAM_WAIT = re.compile(r"(?:cuda|hip|cu|musa)StreamWaitEvent\w*")
_TRIES = 8
"""So many of the last pieces to end are looked at for one that a stream may have waited for."""


def find_stream_waits(trace: Trace, pieces: DevicePieces) -> Int64:
    """Of each piece the piece of another stream that its own stream was told to wait for, -1 for none; shape (p,).

    `cuda_sync` spans tell both streams and the call that recorded the event. Without them a call makes the first piece
    wait that its thread launches after it on any stream: if that started later than its launch and its stream explain,
    it waited for what ended last, by its start, of the work on other streams launched before the call. Where the trace
    has no such spans at all, a piece that starts far later than its launch explains, just as work of another stream of
    its device ends, waited for that: graphs, other threads and full devices leave no call.
    """
    events = trace.events
    result = np.full(len(pieces), -1, np.int64)
    if not len(pieces):
        return result
    calls = np.flatnonzero(named(trace, of_kind(trace, Kind.RUNTIME), _STREAM_WAIT.fullmatch))
    all_spans = sync_spans(trace)
    spans = all_spans[
        named(trace, mask_of(all_spans, len(events)), lambda name: name == "Stream Wait Event")[all_spans]
    ]
    at = first_with(events.correlation[calls], events.correlation[spans])
    spans, at = spans[at >= 0], at[at >= 0]
    recorded, recorded_for = _recorded_waits(trace, pieces, spans, calls[at])
    rest = np.ones(len(calls), np.bool_)
    rest[at] = False
    guessed, guessed_for = _after_calls(trace, pieces, calls[rest])
    piece, other = np.append(recorded, guessed), np.append(recorded_for, guessed_for)
    valid = (pieces.end[other] <= pieces.start[piece]) & (pieces.start[other] < pieces.start[piece])
    piece, other = piece[valid], other[valid]
    order = np.lexsort((other, pieces.end[other]))  # of several the last to end
    result[piece[order]] = other[order]
    if not len(all_spans) and len(distinct_values(pieces.stream)) > 1:
        _add_unasked(trace, pieces, result)
    return result


def _add_unasked(trace: Trace, pieces: DevicePieces, result: Int64) -> None:
    """Put in what pieces waited for that started later than all that is known explains."""
    device = trace.events.device[pieces.event]
    known = np.where(result >= 0, pieces.end[result] + pieces.usual_delay_ns, np.iinfo(np.int64).min)
    explained = np.maximum(pieces.explained_ns, known)
    late = np.flatnonzero(pieces.start > explained)
    source = _sources(trace, pieces, late, before=pieces.launch[late], since=explained[late])
    late, source = late[source >= 0], source[source >= 0]
    near = (pieces.start[late] - pieces.end[source] <= pieces.usual_delay_ns) & (device[late] == device[source])
    result[late[near]] = source[near]


def _after_calls(trace: Trace, pieces: DevicePieces, calls: Int64) -> tuple[Int64, Int64]:
    """Pieces that started late after a call that makes streams wait, and what ended last before they started."""
    events = trace.events
    found, asked = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for thread in distinct_values(events.thread[calls]).tolist():
        times = np.sort(events.start_ns[calls[events.thread[calls] == thread]])
        own = np.flatnonzero(pieces.thread == thread)
        own = own[np.lexsort((pieces.launch[own], pieces.stream[own]))]
        launch = pieces.launch[own]
        place = np.searchsorted(times, launch, side="right") - 1
        same = np.append(False, pieces.stream[own][1:] == pieces.stream[own][:-1])[: len(own)]
        earlier = np.where(same, np.append(0, launch[:-1])[: len(own)], np.iinfo(np.int64).min)
        first = (place >= 0) & (times[np.maximum(place, 0)] >= earlier)
        found.append(own[first])
        asked.append(times[place[first]])
    piece, at = np.concatenate(found), np.concatenate(asked)
    ready = np.maximum(pieces.launch[piece], np.where(pieces.before[piece] >= 0, pieces.end[pieces.before[piece]], 0))
    source = _sources(trace, pieces, piece, before=at, since=ready)
    return piece[source >= 0], source[source >= 0]


def _sources(trace: Trace, pieces: DevicePieces, piece: Int64, *, before: Int64, since: Int64) -> Int64:
    """What ended last by the start of each piece on another stream of its process, -1 for none; shape of `piece`.

    Args:
        trace: any trace.
        pieces: of its work.
        piece: those that waited.
        before: it was launched before this instant.
        since: it ended after this instant.
    """
    process = processes(trace)
    of_stream = process_of_streams(pieces, process, int(pieces.stream.max()) + 1)[pieces.stream]
    order = np.lexsort((pieces.start, pieces.end))
    place = np.searchsorted(pieces.end[order], pieces.start[piece], side="right") - 1
    source = np.full(len(piece), -1, np.int64)
    open_ = np.flatnonzero(place >= 0)
    for _ in range(_TRIES):
        candidate = order[place[open_]]
        explains = pieces.end[candidate] > since[open_]
        fits = (pieces.stream[candidate] != pieces.stream[piece[open_]]) & (pieces.launch[candidate] < before[open_])
        fits &= explains & (of_stream[candidate] == of_stream[piece[open_]])
        source[open_[fits]] = candidate[fits]
        open_ = open_[explains & ~fits]
        place[open_] -= 1
        open_ = open_[place[open_] >= 0]
    return source


def _recorded_waits(trace: Trace, pieces: DevicePieces, spans: Int64, calls: Int64) -> tuple[Int64, Int64]:
    """Pieces that waited and what they waited for, as `Stream Wait Event` spans tell."""
    events = trace.events
    own = stream_of(trace, pieces, events.device[spans], events.stream[spans])
    other = stream_of(trace, pieces, events.device[spans], events.wait_stream[spans])
    asked = events.start_ns[calls]
    never = np.full(len(spans), np.iinfo(np.int64).max)
    source = last_pieces(pieces, other, recorded_at(trace, spans, asked), never)
    piece = _first_launched(pieces, own, asked)
    known = (piece >= 0) & (source >= 0) & (own != other)
    return piece[known], source[known]


def _first_launched(pieces: DevicePieces, stream: Int64, at: Int64) -> Int64:
    """The first piece of each stream that was launched at or after an instant, -1 for none."""
    found = np.full(len(stream), -1, np.int64)
    for number in distinct_values(stream).tolist():
        rows = np.flatnonzero(stream == number)
        low, high = np.searchsorted(pieces.stream, [number, number + 1]).tolist()
        place = low + np.searchsorted(np.maximum.accumulate(pieces.launch[low:high]), at[rows], side="left")
        found[rows] = np.where(place < high, place, -1)
    return found

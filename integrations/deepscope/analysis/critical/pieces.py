"""Pieces of device work in the order of their streams: after what each could start, and what came last of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from deepscope.analysis.array_ops.selection import Mask
from deepscope.analysis.ownership.attribution import OwnedWork
from deepscope.trace.arrays import distinct_places, distinct_values
from deepscope.trace.model import Events, Int64

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

"""Where a CPU thread goes on behind something else: device work that it waited for, or another thread."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from deepscope.analysis.array_ops.selection import Mask, of_kind
from deepscope.analysis.critical.pieces import DevicePieces
from deepscope.analysis.critical.waits import DeviceWaits
from deepscope.analysis.ownership.calls import CPU_KINDS, CallForest
from deepscope.trace.arrays import distinct_places
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64, Trace


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
    starts = np.concatenate(([0], np.cumsum(sizes)))
    inside = np.arange(starts[-1]) - np.repeat(starts[:-1], sizes)
    piece = waits.piece[np.repeat(first, sizes) + inside]
    owner = np.repeat(np.arange(len(order)), sizes)
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
        begin=starts,
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
    none = np.zeros(0, np.int64)
    if not len(roots) or training_thread < 0:
        return _Handed(none, none, none, none, none)
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

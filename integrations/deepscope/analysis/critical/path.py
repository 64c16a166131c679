"""The critical path: from the end of the last step back to the beginning, each time to what was waited for last."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from deepscope.analysis.critical.streams import DevicePieces, WaitedFor
from deepscope.analysis.critical.waits import JoinKind, Joins
from deepscope.trace.model import Int64


class PathKind(IntEnum):
    """What a stretch of the path is."""

    THREAD = 0
    """A CPU thread ran; `where` is the thread."""
    RETURN = 1
    """Work had ended that a call waited for, and the call had not yet returned; `where` is the join."""
    WORK = 2
    """A piece of work ran; `where` is the piece."""
    LAUNCH = 3
    """A piece was launched and had not yet started, and nothing else held it up; `where` is the piece."""
    GAP = 4
    """What a piece had to wait for had ended, and it had not yet started; `where` is the piece."""


@dataclass(frozen=True, slots=True)
class Dependencies:
    """Who waits for whom in a trace."""

    pieces: DevicePieces
    other: Int64
    """Of each piece the piece of another stream that it waits for, -1 for none; shape (p,)."""
    behind: Int64
    """`WaitedFor` of each piece; shape (p,)."""
    ready: Int64
    """When the last of what each piece needed was there, its start where nothing is known; shape (p,)."""
    launching: Int64
    """Until when a piece that waited for its launch alone was being launched: what is longer than a usual delay it
    waited for work that the trace does not tell; shape (p,)."""
    joins: Joins


def dependencies(pieces: DevicePieces, other: Int64, joins: Joins) -> Dependencies:
    """The dependencies with what came last for each piece. Of equals it is the own stream, then the other one."""
    least = np.iinfo(np.int64).min
    if not len(pieces):
        return Dependencies(pieces, other, other, other, other, joins)
    by_stream = np.where(pieces.before >= 0, pieces.end[pieces.before], least)
    by_other = np.where(other >= 0, pieces.end[other], least)
    by_launch = np.where(pieces.launched, pieces.launch, least)
    ready = np.maximum(np.maximum(by_stream, by_other), by_launch)
    behind = np.select(
        [ready == least, by_stream == ready, by_other == ready],
        [int(WaitedFor.NOTHING), int(WaitedFor.STREAM), int(WaitedFor.OTHER_STREAM)],
        int(WaitedFor.LAUNCH),
    ).astype(np.int64)
    ready = np.where(ready == least, pieces.start, ready)
    launching = np.minimum(pieces.start, np.maximum(ready, pieces.explained_ns))
    return Dependencies(pieces, other, behind, ready, launching, joins)


@dataclass(frozen=True, slots=True)
class Path:
    """Touching stretches of time from the beginning to the end; arrays of shape (k,)."""

    start: Int64
    end: Int64
    kind: Int64
    """`PathKind`."""
    where: Int64
    thread: int = -1
    """The thread that it ends on, -1 for a piece."""

    def __len__(self) -> int:
        return len(self.start)

    def within(self, start: int, end: int) -> Path:
        """The part of it in a stretch of time."""
        low = int(np.searchsorted(self.end, start, side="right"))
        high = int(np.searchsorted(self.start, end, side="left"))
        chosen = slice(low, max(low, high))
        return Path(
            np.maximum(self.start[chosen], start),
            np.minimum(self.end[chosen], end),
            self.kind[chosen],
            self.where[chosen],
        )

    def starts_at(self, ts: int) -> int:
        """The stretch that starts at an instant, -1 for none."""
        place = int(np.searchsorted(self.start, ts))
        return place if place < len(self.start) and self.start[place] == ts else -1


def critical_path(of: Dependencies, training_thread: int, begin: int, end: int, *, ran_until: int) -> Path:
    """The path of a trace from `begin` on.

    It is walked backwards: from the training thread at `end`, or from the last piece of work launched until then if
    that ended later, or at `end` when the thread had run until `ran_until` only.
    """
    piece = _last_piece(of.pieces, begin, end)
    ended = int(of.pieces.end[piece]) if piece >= 0 else begin
    on_thread = training_thread >= 0 and (ended < end or ended == end == ran_until or piece < 0)
    walk = _Walk(of, begin)
    found = walk.back_from(training_thread, -1, end) if on_thread else walk.back_from(-1, piece, end)
    columns = [np.array(column, np.int64) for column in zip(*found[::-1], strict=True)] or [np.zeros(0, np.int64)] * 4
    start, end_ns, kind, where = columns
    return Path(start, end_ns, kind, where, training_thread if on_thread else -1)


_THREAD, _RETURN, _WORK, _LAUNCH, _GAP = map(int, PathKind)
_NOTHING, _BY_STREAM, _BY_LAUNCH = int(WaitedFor.NOTHING), int(WaitedFor.STREAM), int(WaitedFor.LAUNCH)
_DEVICE = int(JoinKind.DEVICE)
# Comparing members of an enumeration would take half of the walk.


class _Walk:
    """Goes back in time; `found` are the stretches (start, end, kind, where), the last one first."""

    def __init__(self, of: Dependencies, begin: int) -> None:
        pieces = of.pieces
        self._begin, self._at = begin, begin
        self._start, self._end = pieces.start.tolist(), pieces.end.tolist()
        self._behind, self._ready, self._launching = of.behind.tolist(), of.ready.tolist(), of.launching.tolist()
        self._before, self._other, self._thread = pieces.before.tolist(), of.other.tolist(), pieces.thread.tolist()
        self._joins = _WaitedJoins(of.joins)
        self.found: list[tuple[int, int, int, int]] = []

    def back_from(self, thread: int, piece: int, end: int) -> list[tuple[int, int, int, int]]:
        """The stretches back from a thread at an instant, or from the end of a piece."""
        self._at = self._end[piece] if piece >= 0 else end
        while self._at > self._begin and (piece >= 0 or thread >= 0):
            thread, piece = self._from_piece(piece) if piece >= 0 else self._from_thread(thread)
        return self.found

    def _until(self, ts: int, kind: int, where: int) -> None:
        if ts < self._at and self._begin < self._at:
            self.found.append((max(ts, self._begin), self._at, kind, where))
        self._at = ts

    def _from_piece(self, piece: int) -> tuple[int, int]:
        """The thread or the piece that it started behind."""
        self._until(self._start[piece], _WORK, piece)
        behind = self._behind[piece]
        if self._at <= self._begin:
            return -1, -1
        if behind == _NOTHING:
            self._until(self._begin, _GAP, piece)
            return -1, -1
        if behind == _BY_LAUNCH:
            self._until(self._launching[piece], _GAP, piece)
            self._until(self._ready[piece], _LAUNCH, piece)
            return self._thread[piece], -1
        self._until(self._ready[piece], _GAP, piece)
        return -1, self._before[piece] if behind == _BY_STREAM else self._other[piece]

    def _from_thread(self, thread: int) -> tuple[int, int]:
        """The thread or the piece that it last waited for."""
        join = self._joins.before(thread, self._at)
        self._until(self._begin if join < 0 else self._joins.at[join], _THREAD, thread)
        if join < 0 or self._at <= self._begin:
            return -1, -1
        if self._joins.kind[join] == _DEVICE:
            piece = self._joins.last[join]
            self._until(self._end[piece], _RETURN, join)
            return -1, piece
        self._joins.used(join)
        return self._joins.other[join], -1


def _last_piece(pieces: DevicePieces, begin: int, end: int) -> int:
    """The last piece to end of those launched within the steps, -1 for none."""
    launched = np.flatnonzero((pieces.launch < end) & (pieces.end > begin))
    if not len(launched):
        return -1
    return int(launched[np.lexsort((launched, pieces.end[launched]))[-1]])


class _WaitedJoins:
    """The joins that waited, asked for by thread and time; each is gone through once, so that no walk is endless."""

    def __init__(self, joins: Joins) -> None:
        self.at, self.kind = joins.at.tolist(), joins.kind.tolist()
        self.other, self.last = joins.other.tolist(), joins.last.tolist()
        self._left: dict[int, list[int]] = {}
        for join in np.flatnonzero(joins.waited).tolist():
            self._left.setdefault(int(joins.thread[join]), []).append(join)

    def before(self, thread: int, ts: int) -> int:
        """The last join of a thread at or before an instant, -1 for none. Instants that are asked for only go back."""
        left = self._left.get(thread, [])
        while left and self.at[left[-1]] > ts:
            left.pop()
        return left[-1] if left else -1

    def used(self, join: int) -> None:
        """Takes out a join; from one thread to another no time passes."""
        for left in self._left.values():
            if left and left[-1] == join:
                left.pop()
                return

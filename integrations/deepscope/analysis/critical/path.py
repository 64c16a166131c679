"""The critical path: from the end of the last step back to the beginning, each time to what was waited for last."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from deepscope.analysis.critical.joins import JoinKind, Joins
from deepscope.analysis.critical.pieces import Behind, Pieces
from deepscope.trace.model import Int64

__all__ = ["Dependencies", "Path", "PathKind", "critical_path", "dependencies"]


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

    pieces: Pieces
    other: Int64
    """Of each piece the piece of another stream that it waits for, -1 for none; shape (p,)."""
    behind: Int64
    """`Behind` of each piece; shape (p,)."""
    ready: Int64
    """When the last of what each piece needed was there, its start where nothing is known; shape (p,)."""
    joins: Joins


def dependencies(pieces: Pieces, other: Int64, joins: Joins) -> Dependencies:
    """The dependencies with what came last for each piece. Of equals it is the own stream, then the other one."""
    least = np.iinfo(np.int64).min
    if not len(pieces):
        return Dependencies(pieces, other, other, other, joins)
    by_stream = np.where(pieces.before >= 0, pieces.end[pieces.before], least)
    by_other = np.where(other >= 0, pieces.end[other], least)
    by_launch = np.where(pieces.launched, pieces.launch, least)
    ready = np.maximum(np.maximum(by_stream, by_other), by_launch)
    behind = np.select(
        [ready == least, by_stream == ready, by_other == ready],
        [int(Behind.NOTHING), int(Behind.STREAM), int(Behind.OTHER_STREAM)],
        int(Behind.LAUNCH),
    ).astype(np.int64)
    return Dependencies(pieces, other, behind, np.where(ready == least, pieces.start, ready), joins)


@dataclass(frozen=True, slots=True)
class Path:
    """Touching stretches of time from the beginning to the end; arrays of shape (k,)."""

    start: Int64
    end: Int64
    kind: Int64
    """`PathKind`."""
    where: Int64

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


def critical_path(of: Dependencies, training_thread: int, begin: int, end: int) -> Path:
    """The path of a trace from `begin` on.

    It is walked backwards: from the training thread at `end`, or from the last piece of work launched until then if
    that ended later.
    """
    found = list(_walk(of, training_thread, begin, end))
    found.reverse()
    columns = np.array(found, np.int64).reshape(-1, 4)
    return Path(*(columns[:, i].copy() for i in range(4)))


def _walk(of: Dependencies, thread: int, begin: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """The stretches (start, end, kind, where), the last one first."""
    pieces, joins = of.pieces, of.joins
    starts, ready, behind = pieces.start.tolist(), of.ready.tolist(), of.behind.tolist()
    before, others, threads = pieces.before.tolist(), of.other.tolist(), pieces.thread.tolist()
    ends = pieces.end.tolist()
    piece = _last_piece(pieces, begin, end)
    if piece < 0 or (thread >= 0 and ends[piece] <= end):
        piece = -1
    at = end if piece < 0 else ends[piece]
    places = _WaitedJoins(joins)
    while at > begin:
        if piece >= 0:
            if starts[piece] < at:
                yield max(starts[piece], begin), at, PathKind.WORK, piece
            at = starts[piece]
            if at <= begin:
                return
            why, back_to = behind[piece], ready[piece]
            if why == Behind.NOTHING:
                back_to = begin
            if back_to < at:
                yield max(back_to, begin), at, PathKind.LAUNCH if why == Behind.LAUNCH else PathKind.GAP, piece
            at = back_to
            if why == Behind.NOTHING:
                return
            if why == Behind.LAUNCH:
                thread, piece = threads[piece], -1
            else:
                piece = before[piece] if why == Behind.STREAM else others[piece]
            continue
        if thread < 0:
            return
        join = places.before(thread, at)
        back_to = begin if join < 0 else places.at[join]
        if back_to < at:
            yield max(back_to, begin), at, PathKind.THREAD, thread
        at = back_to
        if join < 0 or at <= begin:
            return
        if places.kind[join] == JoinKind.DEVICE:
            piece = places.last[join]
            if ends[piece] < at:
                yield max(ends[piece], begin), at, PathKind.RETURN, join
            at = ends[piece]
        else:
            thread = places.other[join]
            places.used(join)


def _last_piece(pieces: Pieces, begin: int, end: int) -> int:
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

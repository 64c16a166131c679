"""By how much a step would be shorter if a line took no time: its longest path, evaluated anew without the line.

Nothing is looped over but joins and runs of work. A run is pieces that follow each other on one stream and were
launched between two joins of one thread; their ends are sums and running maxima.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from deepscope.analysis.critical.lines import PieceParts, Timelines
from deepscope.analysis.critical.path import Dependencies, Path, PathKind
from deepscope.analysis.critical.streams import WaitedFor
from deepscope.analysis.critical.waits import JoinKind
from deepscope.trace.arrays import distinct_values
from deepscope.trace.model import Int64

Many: TypeAlias = npt.NDArray[np.int64]
"""Times without the first line, without the second, …; shape (lines, …)."""


_LONGEST = 1_000
"""Longer runs are cut: what is worked out of so many pieces at once stays in the processor's cache."""


class Shortening:
    """Evaluates steps without each of a few lines.

    Of a piece that has parts of several lines the delay before it is the line's that counts for the piece.
    """

    def __init__(
        self, of: Dependencies, parts: PieceParts, timelines: Timelines, call_locations: Int64, lines: Sequence[int]
    ) -> None:
        """Prepares the evaluation.

        Args:
            of: the dependencies of a trace.
            parts: of its pieces.
            timelines: of its threads.
            call_locations: the line that owns the call of each join; shape (j,).
            lines: indexes into `Scopes.locations`.
        """
        pieces, joins = of.pieces, of.joins
        self.of, self.parts, self.lines = of, parts, lines
        self._timelines = timelines
        self._on_lines_before: dict[int, Many] = {}
        self._by_at = np.argsort(joins.at, kind="stable")
        self._at = joins.at[self._by_at]
        self._by_start = np.argsort(pieces.start, kind="stable")
        self._start = pieces.start[self._by_start]
        self._ended_by = np.maximum.accumulate(pieces.end[self._by_start])
        """By start: when all pieces up to each one had ended."""
        self._column = np.array(lines)[:, None]
        self.ended = np.empty((len(lines), len(pieces)), np.int64)
        """When each piece would end that has a part in the step that is evaluated; shape (lines, p)."""
        several = parts.begin[1:] - parts.begin[:-1] > 1
        self._several = set(np.flatnonzero(several).tolist())
        """Pieces with parts of several lines."""
        self.latencies = np.stack([call_locations != line for line in lines])
        """Whether the time that the call of a join takes to return remains."""
        self.segment = joins.at_or_before(pieces.thread, pieces.launch)
        """The last join before each launch on its thread."""
        self.segment_since = joins.at_or_before(joins.thread, np.minimum(joins.since, joins.at - 1))
        self.segment_other = joins.at_or_before(joins.other, joins.at)
        self.at_join = self._on_lines(joins.thread, joins.at)
        self.at_since = self._on_lines(joins.thread, joins.since)
        self.at_other = self._on_lines(joins.other, joins.at)

    def blocks(self, start: int, end: int) -> int:
        """How many joins and runs of work a step has."""
        return len(self.inside(start, end)) + len(self.runs(self.chosen(start, end)))

    def shorter_ns(self, path: Path, start: int, end: int) -> Int64:
        """By how much the step would end sooner without each line; shape (lines,). `path` is that of the trace."""
        return end - _Step(self, start, end).end_of(path)

    def inside(self, start: int, end: int) -> Int64:
        """The joins in a step."""
        low, high = np.searchsorted(self._at, [start, end], side="right")
        return self._by_at[low:high]

    def chosen(self, start: int, end: int) -> Int64:
        """The pieces with a part in a step."""
        low = int(np.searchsorted(self._ended_by, start, side="right"))
        found = self._by_start[low : int(np.searchsorted(self._start, end))]
        return np.sort(found[self.of.pieces.end[found] > start])

    def runs(self, chosen: Int64) -> Int64:
        """Where runs begin among the chosen pieces."""
        if not len(chosen):
            return chosen
        pieces, later, sooner = self.of.pieces, chosen[1:], chosen[:-1]
        follows = (pieces.before[later] == sooner) & (self.of.other[later] < 0)
        follows &= self.segment[later] == self.segment[sooner]
        follows &= pieces.thread[later] == pieces.thread[sooner]
        follows[_LONGEST - 1 :: _LONGEST] = False
        return np.flatnonzero(np.append(True, ~follows))

    def on_lines(self, thread: int, ts: Int64) -> Many:
        """How long a thread was on each line before each instant; shape (lines, q)."""
        line = self._timelines.of_thread(thread)
        if thread not in self._on_lines_before:
            self._on_lines_before[thread] = line.on_lines_before(self.lines)
        before = self._on_lines_before[thread]
        place = np.searchsorted(line.start, ts, side="right") - 1
        if not len(line.start):
            return np.zeros((len(self.lines), len(ts)), np.int64)
        into = np.minimum(ts, line.end[place]) - line.start[place]
        here = line.location[place] == np.array(self.lines)[:, None]
        return np.where(place >= 0, before[:, place] + into * here, 0)

    def remains(self, run: Int64) -> npt.NDArray[np.bool_]:
        """Whether the delay before each piece remains; shape (lines, m)."""
        return np.asarray(self.of.pieces.location[run] != self._column)

    def own(self, run: Int64, start: int) -> Many:
        """How much of each piece from an instant on is each line's; shape (lines, m)."""
        pieces = self.of.pieces
        length = pieces.end[run] - np.maximum(pieces.start[run], start)
        own = np.where(pieces.location[run] == self._column, length, 0)
        if self._several:
            for place, piece in enumerate(run.tolist()):
                if piece in self._several:
                    own[:, place : place + 1] = self.part(piece, start, int(pieces.end[piece]))
        return own

    def part(self, piece: int, start: int, end: int) -> Many:
        """How much of a piece within a stretch of time is each line's; shape (lines, 1)."""
        return np.array([[self.parts.within(piece, line, start, end)] for line in self.lines], np.int64)

    def _on_lines(self, thread: Int64, ts: Int64) -> Many:
        result = np.zeros((len(self.lines), len(ts)), np.int64)
        for number in distinct_values(thread[thread >= 0]).tolist():
            rows = np.flatnonzero(thread == number)
            result[:, rows] = self.on_lines(number, ts[rows])
        return result


class _Step:
    """When everything in a step would end. What began before it counts as begun with it."""

    def __init__(self, all_: Shortening, start: int, end: int) -> None:
        self._all, self._of = all_, all_.of
        self._start, self._end = start, end
        self._begin = np.full((len(all_.lines), 1), start, np.int64)
        self._joined: dict[int, Many] = {}
        self._at_begin: dict[int, Many] = {}
        pieces, joins = self._of.pieces, self._of.joins
        chosen = all_.chosen(start, end)
        all_.ended[:, chosen] = pieces.end[chosen]  # as measured, should clocks contradict each other
        first = all_.runs(chosen)
        last = np.append(first[1:], len(chosen)).astype(np.int64)
        inside = all_.inside(start, end)
        heads = chosen[first]
        # At one instant: work that was launched before, what waited for it, then work launched from there on.
        rank = np.where(pieces.launch[heads] < pieces.start[heads], 0, 4)
        ranks = np.concatenate((rank, 1 + joins.kind[inside]))
        times = np.concatenate((np.maximum(pieces.start[heads], start), joins.at[inside]))
        for block in np.lexsort((np.arange(len(times)), ranks, times)).tolist():
            if block < len(first):
                self._run(chosen[first[block] : last[block]])
            else:
                self._join(int(inside[block - len(first)]))

    def _run(self, run: Int64) -> None:
        """Each piece begins behind the one before, and not before it is launched."""
        all_, pieces, start = self._all, self._of.pieces, self._start
        behind, ready = self._of.behind[run], self._of.ready[run]
        began = pieces.start[run]
        early = (ready <= start) | (behind == WaitedFor.NOTHING)
        since = np.where(early, start, ready)
        delay = np.maximum(began - since, 0) * all_.remains(run)
        begin = self._begin + np.where(early, delay, 0)
        launched = pieces.launched[run] & (pieces.launch[run] > start)
        if launched.any():
            thread, segment = int(pieces.thread[run[0]]), int(all_.segment[run[0]])
            at = self._thread_at(thread, segment, pieces.launch[run], all_.on_lines(thread, pieces.launch[run]))
            at += np.where(behind == WaitedFor.LAUNCH, delay, 0)
            begin = np.where(launched, np.maximum(begin, at), begin)
        head = int(run[0])
        for source, why in ((pieces.before[head], WaitedFor.STREAM), (self._of.other[head], WaitedFor.OTHER_STREAM)):
            if source >= 0 and pieces.end[source] > start:
                ended = self._ended(int(source)) + (delay[:, :1] if behind[0] == why else 0)
                begin[:, :1] = np.maximum(begin[:, :1], ended)
        length = pieces.end[run] - np.maximum(began, start) - all_.own(run, start)
        gap = np.where((behind == WaitedFor.STREAM) & ~early, delay, 0)
        gap[:, 0] = 0
        total = np.cumsum(gap + length, axis=1)
        end = total + np.maximum.accumulate(begin + length - total, axis=1)
        all_.ended[:, run] = end

    def _ended(self, piece: int) -> Many:
        """When a piece would end."""
        return self._all.ended[:, piece : piece + 1]

    def _join(self, join: int) -> None:
        all_, joins, pieces, start = self._all, self._of.joins, self._of.pieces, self._start
        at = joins.at[join : join + 1]
        column = slice(join, join + 1)
        if joins.kind[join] != JoinKind.DEVICE:
            segment = int(all_.segment_other[join])
            self._joined[join] = self._thread_at(int(joins.other[join]), segment, at, all_.at_other[:, column])
            return
        thread, since = int(joins.thread[join]), np.maximum(joins.since[column], start)
        begun, before = self._begin, self._before(thread)
        if joins.since[join] > start:
            before = all_.at_since[:, column]
            begun = self._thread_at(thread, int(all_.segment_since[join]), since, before)
        latency = (at - max(int(pieces.end[joins.last[join]]), start)) * all_.latencies[:, column]
        if not joins.waited[join]:
            begun, latency = begun + at - since - (all_.at_join[:, column] - before), latency * 0
        elif pieces.end[joins.last[join]] <= start:
            begun = self._begin + latency
        found = begun
        for piece in joins.piece[joins.begin[join] : joins.begin[join + 1]].tolist():
            if pieces.end[piece] > start:
                found = np.maximum(found, self._ended(piece) + latency)
        self._joined[join] = found

    def _before(self, thread: int) -> Many:
        """How long a thread was on each line before the step."""
        if thread not in self._at_begin:
            self._at_begin[thread] = self._all.on_lines(thread, np.array([self._start]))
        return self._at_begin[thread]

    def _thread_at(self, thread: int, segment: int, ts: Int64, on_lines: Many) -> Many:
        """When a thread would be where it is at some instants, all behind the same join; shape (lines, q)."""
        at = int(self._of.joins.at[segment]) if segment >= 0 else self._start
        if at <= self._start:
            return self._begin + (ts - self._start) - (on_lines - self._before(thread))
        joined = self._joined.get(segment)
        base = np.full_like(self._begin, at) if joined is None else joined
        return base + (ts - at) - (on_lines - self._all.at_join[:, segment : segment + 1])

    def end_of(self, path: Path) -> Int64:
        """When the place would be reached at which the critical path of the trace is at the step's end."""
        within, thread = path.within(self._start, self._end), self._thread_of(path)
        if thread >= 0:
            return self._thread_reached(thread)[:, 0]
        if not len(within):
            return np.full(len(self._begin), self._end, np.int64)
        return self._reached(PathKind(int(within.kind[-1])), int(within.where[-1]))[:, 0]

    def _thread_of(self, path: Path) -> int:
        """The thread that the path is on at the step's end, if a stretch of a thread or of its launch begins there."""
        place, pieces = path.starts_at(self._end), self._of.pieces
        if place < 0:
            return path.thread if len(path) and path.end[-1] == self._end else -1
        kind, where = path.kind[place], int(path.where[place])
        if kind == PathKind.THREAD:
            return where
        launches = kind in (PathKind.LAUNCH, PathKind.WORK) and self._of.behind[where] == WaitedFor.LAUNCH
        return int(pieces.thread[where]) if launches and pieces.launch[where] == self._end else -1

    def _thread_reached(self, thread: int) -> Many:
        at = np.array([self._end], np.int64)
        segment = int(self._of.joins.at_or_before(np.array([thread]), at)[0])
        return self._thread_at(thread, segment, at, self._all.on_lines(thread, at))

    def _reached(self, kind: PathKind, where: int) -> Many:
        all_, pieces, joins, start, end = self._all, self._of.pieces, self._of.joins, self._start, self._end
        if kind is PathKind.THREAD:
            return self._thread_reached(where)
        if kind is PathKind.WORK:
            rest = int(pieces.end[where]) - end
            return self._ended(where) - rest + all_.part(where, end, int(pieces.end[where]))
        if kind is PathKind.RETURN:
            source, remains = int(joins.last[where]), all_.latencies[:, where : where + 1]
        else:
            remains = all_.remains(np.array([where]))
            behind = self._of.behind[where]
            if behind == WaitedFor.LAUNCH and pieces.launch[where] > start:
                launch = pieces.launch[where : where + 1]
                thread, segment = int(pieces.thread[where]), int(all_.segment[where])
                launched = self._thread_at(thread, segment, launch, all_.on_lines(thread, launch))
                return np.asarray(launched + (end - launch) * remains)
            source = int(pieces.before[where]) if behind == WaitedFor.STREAM else int(self._of.other[where])
            if behind in (WaitedFor.LAUNCH, WaitedFor.NOTHING):
                source = -1
        if source < 0 or pieces.end[source] <= start:
            return np.asarray(self._begin + (end - start) * remains)
        return np.asarray(self._ended(source) + (end - int(pieces.end[source])) * remains)

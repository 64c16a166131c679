"""The critical path by line: what each thread and each piece of work was on meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deepscope.analysis.array_ops.intervals import NO_INTERVALS, Intervals, covered_by, union, union_of
from deepscope.analysis.array_ops.selection import Columns, Mask, by_line, expanded, named, of_kind
from deepscope.analysis.critical.path import Path, PathKind
from deepscope.analysis.critical.streams import DevicePieces
from deepscope.analysis.numbers.phases import PhaseTimeline
from deepscope.analysis.ownership.attribution import Attribution, OwnedWork
from deepscope.analysis.ownership.calls import CPU_KINDS
from deepscope.trace.arrays import distinct_values, pick
from deepscope.trace.communication import is_collective
from deepscope.trace.joins.nesting import innermost
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64
from deepscope.trace.names import ANNOUNCEMENT, is_cpu_collective


@dataclass(frozen=True, slots=True)
class ThreadTimeline:
    """What a thread was on, in touching stretches; arrays of shape (k,)."""

    start: Int64
    end: Int64
    location: Int64
    """The line, -1 for none."""
    loads: Mask
    """Whether the training thread loaded data."""

    def between(self, start: int, end: int) -> ThreadTimeline:
        """The stretches with a part between two instants."""
        low = int(np.searchsorted(self.end, start, side="right"))
        chosen = slice(low, max(low, int(np.searchsorted(self.start, end, side="left"))))
        return ThreadTimeline(self.start[chosen], self.end[chosen], self.location[chosen], self.loads[chosen])

    def on_lines_before(self, lines: Sequence[int]) -> Int64:
        """How long it was on each of some lines before each stretch and before the end; shape (lines, k + 1)."""
        length = self.end - self.start
        before = np.zeros((len(lines), len(length) + 1), np.int64)
        for row, line in zip(before, lines, strict=True):
            np.cumsum(np.where(self.location == line, length, 0), out=row[1:])
        return before


class Timelines:
    """The timelines of threads, each made when it is first asked for."""

    def __init__(self, of: Attribution, phases: PhaseTimeline) -> None:
        events, location = of.trace.events, of.owners.location
        nodes = of.calls.nested.events
        above = of.calls.parent[nodes]
        marks = nodes[location[nodes] != np.where(above < 0, -1, location[above])]
        self._marks = marks
        self._thread = events.thread[marks]
        self._of = of
        self._data = phases.spans_of("data")
        self._made: dict[int, ThreadTimeline] = {}

    def of_thread(self, thread: int) -> ThreadTimeline:
        """The timeline of a thread; while a thread of the engine is on no line, that of the training thread's line."""
        if thread not in self._made:
            self._made[thread] = self._make(thread)
        return self._made[thread]

    def _make(self, thread: int) -> ThreadTimeline:
        of = self._of
        training = of.training.thread
        own = self._marks[self._thread == thread]
        is_engine = thread != training and bool((of.calls.root[of.trace.events.thread == thread] >= 0).any())
        trains = self.of_thread(training) if is_engine and training >= 0 else None
        events = of.trace.events
        start, end = events.start_ns[own], events.end_ns[own]
        cuts = [start, end]
        if trains is not None:
            cuts += [trains.start, trains.end]
        if thread == training:
            cuts += [self._data.start, self._data.end]
        begin = distinct_values(np.concatenate(cuts))
        zero = np.zeros(len(begin), np.int64)
        found = innermost(begin, zero, start, end, np.zeros(len(own), np.int64))
        location = pick(of.owners.location[own], found)
        if trains is not None and len(trains.start):
            place = Intervals(trains.start, trains.end).locate(begin)
            location = np.where(found < 0, pick(trains.location, place), location)
        loads = self._data.locate(begin) >= 0 if thread == training else np.zeros(len(begin), np.bool_)
        after = np.append(begin[1:], begin[-1:])
        return ThreadTimeline(begin, after, location, loads)


_LATE_NS, _LATE = 100_000, 0.5
"""Another thread may close a span so much, and this share of the time waited, after the thread that waited for it has
gone on: on a busy machine it is interrupted."""
_PAUSE_NS = 1_000_000
"""So long Python may take between two operators of a thread that records nothing else; what is longer is no work."""
_WRAPPERS = ("autograd::engine::", "torch::autograd::", "_c10d_functional", "DistributedDataParallel.", "FSDP")
"""Operators that run hooks, and so wait within themselves."""


class HostWork:
    """The intervals of each thread, made when it is first asked for."""

    def __init__(self, of: Attribution) -> None:
        trace, events = of.trace, of.trace.events
        on_cpu = of_kind(trace, Kind.OPERATOR)
        own_clock = named(trace, on_cpu | of_kind(trace, Kind.ANNOTATION), is_cpu_collective)
        rows = np.flatnonzero(own_clock)
        rows = rows[np.argsort(events.end_ns[rows], kind="stable")]
        self._span_start, self._span_end = events.start_ns[rows], events.end_ns[rows]
        computing: Mask = on_cpu & ~own_clock & ~named(trace, on_cpu, _waits)
        self._nodes = np.flatnonzero(computing)
        self._thread = events.thread[self._nodes]
        self._of = of
        self._operators: dict[int, Intervals] = {}
        self._waiting: dict[int, Intervals] = {}
        self._idle: dict[int, Intervals] = {}

    def operators(self, thread: int) -> Intervals:
        """When the thread runs operators, those excepted that exchange data with other ranks or run hooks."""
        if thread not in self._operators:
            events, own = self._of.trace.events, self._nodes[self._thread == thread]
            self._operators[thread] = covered_by(events, own)
        return self._operators[thread]

    def waiting(self, thread: int, line: ThreadTimeline) -> Intervals:
        """When the thread waits for other ranks: between its operators, while it stays on one line, during the spans of
        backends that end in this time. A span that ends later was not waited for."""
        if thread not in self._waiting:
            self._waiting[thread] = self._waits(self.operators(thread), line)
        return self._waiting[thread]

    def idle(self, thread: int) -> Intervals:
        """When a thread of a pool has no task: for long nothing is open on it. The training thread, which may run
        Python that is not recorded, and autograd's, whose pauses are its own, never are."""
        if thread not in self._idle:
            self._idle[thread] = self._without_task(thread)
        return self._idle[thread]

    def _without_task(self, thread: int) -> Intervals:
        events = self._of.trace.events
        own = events.thread == thread
        if thread == self._of.training.thread or (self._of.calls.root[own] >= 0).any():
            return NO_INTERVALS
        rows = np.flatnonzero(own & of_kind(self._of.trace, *CPU_KINDS))
        whole = Intervals(events.start_ns.min(keepdims=True), events.end_ns.max(keepdims=True))
        free = covered_by(events, rows).complement(whole)
        long = free.end - free.start > _PAUSE_NS
        return Intervals(free.start[long], free.end[long])

    def _waits(self, operators: Intervals, line: ThreadTimeline) -> Intervals:
        if not len(self._span_end):
            return NO_INTERVALS
        begin, end = _between(operators, line, int(self._span_start.min()), int(self._span_end.max()))
        first = np.searchsorted(self._span_end, begin, side="right")
        late = _LATE_NS + (_LATE * (end - begin)).astype(np.int64)
        last = np.searchsorted(self._span_end, end + late, side="right")
        gap, span = expanded(first, last - first)
        since = np.maximum(begin[gap], self._span_start[span])
        return union(since, np.minimum(end[gap], self._span_end[span]))


def _between(operators: Intervals, line: ThreadTimeline, low: int, high: int) -> tuple[Int64, Int64]:
    """The stretches on one line without an operator, as far as they lie between two instants."""
    inside = (line.end > low) & (line.start < high)
    busy = (operators.end > low) & (operators.start < high)
    op_start, op_end = operators.start[busy], operators.end[busy]
    cuts = np.concatenate((line.start[inside], line.end[inside], op_start, op_end, [low, high]))
    cuts = distinct_values(cuts[(cuts >= low) & (cuts <= high)])
    begin, end = cuts[:-1], cuts[1:]
    free = Intervals(op_start, op_end).locate(begin) < 0
    return begin[free], end[free]


def _waits(name: str) -> bool:
    return name == ANNOUNCEMENT or name.startswith(_WRAPPERS) or is_collective(name)


@dataclass(frozen=True, slots=True)
class PieceParts:
    """Touching stretches that fill the pieces, by piece; arrays of shape (r,)."""

    piece: Int64
    start: Int64
    end: Int64
    location: Int64
    """The line, -1 for none."""
    begin: Int64
    """Those of a piece are `begin[i] : begin[i + 1]`; shape (p + 1,)."""

    def of_line(self, location: int, pieces: int) -> Int64:
        """How much of each piece is a line's; shape (p,)."""
        own = np.zeros(pieces, np.int64)
        rows = self.location == location
        np.add.at(own, self.piece[rows], (self.end - self.start)[rows])
        return own

    def within(self, piece: int, location: int, start: int, end: int) -> int:
        """How much of a piece within a stretch of time is a line's."""
        rows = slice(int(self.begin[piece]), int(self.begin[piece + 1]))
        length = np.minimum(self.end[rows], end) - np.maximum(self.start[rows], start)
        return int(np.maximum(length, 0)[self.location[rows] == location].sum())

    def between(self, piece: Int64, start: Int64, end: Int64) -> tuple[Int64, Int64]:
        """The lines of stretches of pieces: their locations and lengths, part by part."""
        of, row = expanded(self.begin[piece], self.begin[piece + 1] - self.begin[piece])
        length = np.minimum(self.end[row], end[of]) - np.maximum(self.start[row], start[of])
        return self.location[row], np.maximum(length, 0)


def find_parts(work: OwnedWork, pieces: DevicePieces) -> PieceParts:
    """The parts of all pieces, clipped where their pieces are."""
    if not len(pieces):
        none = np.zeros(0, np.int64)
        return PieceParts(none, none, none, none, np.zeros(1, np.int64))
    sizes = np.bincount(work.piece)[work.piece[pieces.row]]
    begin = np.concatenate(([0], np.cumsum(sizes)))
    piece, row = expanded(pieces.first_row, sizes)
    length = work.duration_ns[row]
    before = np.cumsum(length) - length
    start = pieces.start[piece] + before - before[begin[:-1]][piece]
    end = np.minimum(start + length, pieces.end[piece])
    # Clocks that are wrong may have clipped the piece.
    return PieceParts(piece, np.minimum(start, pieces.end[piece]), end, work.location[row], begin)


KINDS = ("cpu_ns", "data_ns", "kernel_ns", "copy_ns", "communication_ns", "launch_ns", "gap_ns", "return_ns")
"""In the order of a step: fields of `records.CriticalTimes`."""
PARTS = ("operator_ns", "python_ns", *KINDS[1:])
"""The columns: CPU time is that in operators and that between them."""


def path_by_line(
    path: Path,
    pieces: DevicePieces,
    parts: PieceParts,
    timelines: Timelines,
    host: HostWork,
    *,
    kinds: Int64,
    call_locations: Int64,
    lines: int,
) -> Columns:
    """Time on the path by line; the columns `PARTS` of shape (lines + 1,), which together sum to the path.

    Args:
        path: the path, or a part of it.
        pieces: of device work.
        parts: of the pieces.
        timelines: of the threads.
        host: what the threads do.
        kinds: `Kind` of each piece; shape (p,).
        call_locations: the line that owns the call of each join; shape (j,).
        lines: how many there are.
    """
    columns = {name: np.zeros(lines + 1, np.int64) for name in PARTS}
    length = path.end - path.start

    def add(name: str, location: Int64, values: Int64) -> None:
        columns[name] += by_line(location, lines, values)

    for kind, name in ((PathKind.LAUNCH, "launch_ns"), (PathKind.GAP, "gap_ns")):
        rows = path.kind == kind
        add(name, pieces.location[path.where[rows]], length[rows])
    rows = path.kind == PathKind.RETURN
    add("return_ns", call_locations[path.where[rows]], length[rows])
    work = path.kind == PathKind.WORK
    piece = path.where[work]
    communicates, copies = pieces.collective[piece], kinds[piece] == Kind.MEMCPY
    for name, chosen in (
        ("communication_ns", communicates),
        ("copy_ns", copies & ~communicates),
        ("kernel_ns", ~copies & ~communicates),
    ):
        add(name, *parts.between(piece[chosen], path.start[work][chosen], path.end[work][chosen]))
    on_thread = path.kind == PathKind.THREAD
    for thread in distinct_values(path.where[on_thread]).tolist():
        rows = on_thread & (path.where == thread)
        own = union(path.start[rows], path.end[rows])
        whole = timelines.of_thread(thread)
        extent = int(path.start[rows][0]), int(path.end[rows][-1])
        line = whole.between(*extent)

        def spent(during: Intervals, line: ThreadTimeline = line) -> Int64:
            return during.overlap_ns(line.start, line.end)

        waiting = own.intersection(host.waiting(thread, whole).near(*extent))
        idle = waiting.complement(own).intersection(host.idle(thread).near(*extent))
        resting = union_of(waiting, idle)
        working = resting.complement(own)
        in_operators, at_all = spent(working.intersection(host.operators(thread).near(*extent))), spent(working)
        add("communication_ns", line.location, spent(waiting))
        add("data_ns", line.location[line.loads], at_all[line.loads])
        add("operator_ns", line.location[~line.loads], in_operators[~line.loads])
        add("python_ns", line.location[~line.loads], (at_all - in_operators)[~line.loads])
        columns["communication_ns"][lines] += waiting.total_ns - int(spent(waiting).sum())
        columns["gap_ns"][lines] += idle.total_ns
        columns["python_ns"][lines] += working.total_ns - int(at_all.sum())
    return columns


def sums_of_kinds(columns: Columns) -> Columns:
    """The columns `KINDS` of columns by part."""
    return {"cpu_ns": columns["operator_ns"] + columns["python_ns"]} | {name: columns[name] for name in KINDS[1:]}

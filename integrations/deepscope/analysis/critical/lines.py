"""The critical path by line: which stretches of a piece of work are which line's, and how long each line is on it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deepscope.analysis.array_ops.intervals import Intervals, union
from deepscope.analysis.array_ops.selection import Columns, by_line
from deepscope.analysis.critical.host_work import HostWork
from deepscope.analysis.critical.path import Path, PathKind
from deepscope.analysis.critical.pieces import DevicePieces
from deepscope.analysis.critical.timelines import ThreadTimeline, Timelines
from deepscope.analysis.ownership.attribution import OwnedWork
from deepscope.trace.arrays import distinct_values
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64


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
        sizes = self.begin[piece + 1] - self.begin[piece]
        of = np.repeat(np.arange(len(piece)), sizes)
        first = np.cumsum(sizes) - sizes
        row = np.repeat(self.begin[piece], sizes) + np.arange(len(of)) - np.repeat(first, sizes)
        length = np.minimum(self.end[row], end[of]) - np.maximum(self.start[row], start[of])
        return self.location[row], np.maximum(length, 0)


def find_parts(work: OwnedWork, pieces: DevicePieces) -> PieceParts:
    """The parts of all pieces, clipped where their pieces are."""
    if not len(pieces):
        none = np.zeros(0, np.int64)
        return PieceParts(none, none, none, none, np.zeros(1, np.int64))
    sizes = np.bincount(work.piece)[work.piece[pieces.row]]
    begin = np.concatenate(([0], np.cumsum(sizes)))
    piece = np.repeat(np.arange(len(pieces)), sizes)
    row = np.repeat(pieces.first_row - begin[:-1], sizes) + np.arange(len(piece))
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
        resting = union(np.append(waiting.start, idle.start), np.append(waiting.end, idle.end))
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

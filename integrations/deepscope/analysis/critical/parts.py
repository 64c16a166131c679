"""Which stretches of each piece of work are which line's: a kernel that was fused has several, one after the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deepscope.analysis.critical.pieces import Pieces
from deepscope.analysis.ownership.owned_work import OwnedWork
from deepscope.trace.model import Int64


@dataclass(frozen=True, slots=True)
class Parts:
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


def find_parts(work: OwnedWork, pieces: Pieces) -> Parts:
    """The parts of all pieces, clipped where their pieces are."""
    if not len(pieces):
        none = np.zeros(0, np.int64)
        return Parts(none, none, none, none, np.zeros(1, np.int64))
    sizes = np.bincount(work.piece)[work.piece[pieces.row]]
    begin = np.concatenate(([0], np.cumsum(sizes)))
    piece = np.repeat(np.arange(len(pieces)), sizes)
    row = np.repeat(pieces.first_row - begin[:-1], sizes) + np.arange(len(piece))
    length = work.duration_ns[row]
    before = np.cumsum(length) - length
    start = pieces.start[piece] + before - before[begin[:-1]][piece]
    end = np.minimum(start + length, pieces.end[piece])
    # Clocks that are wrong may have clipped the piece.
    return Parts(piece, np.minimum(start, pieces.end[piece]), end, work.location[row], begin)

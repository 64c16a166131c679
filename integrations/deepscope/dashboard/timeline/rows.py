"""In which row of its track each slice stands: below what is open when it starts, in the highest row that is free."""

from __future__ import annotations

import heapq

import numpy as np

from deepscope.analysis.algebra.ancestry import depth
from deepscope.analysis.algebra.selection import Mask
from deepscope.dashboard.timeline.columns import MOST_ROWS
from deepscope.trace.arrays import pick
from deepscope.trace.joins.nesting import Ints, Nesting
from deepscope.trace.model import Int64

__all__ = ["rows_of"]

_LARGEST_WASTE = 2
"""So many rows may be free above a slice before the rows around it are given out one by one."""


def rows_of(start: Int64, end: Int64, group: Ints, rank: Ints) -> tuple[Int64, Int64]:
    """The row of each slice within its group, and the slice that it lies in, -1 for none; both of shape (n,).

    By depth no two slices of a row overlap, whatever outlasts what it began in: all that is open when a slice starts
    lies above it. Where slices overlap in chains without end, depth grows though little is open. There the rows are
    given out in order of time instead, each slice having the first that is free.
    """
    nesting = Nesting.of(start, end, group, rank)
    parent = nesting.parents_of(start, end, group)
    row = depth(parent)
    wasteful = _wasteful(nesting, row[nesting.order])
    if wasteful.any():
        # The outermost slice of each slice leads to those that lie with it.
        top = np.zeros(len(start), np.bool_)
        top[nesting.order[wasteful]] = True
        empty = np.flatnonzero((end <= start) & (parent >= 0))
        top[empty] = top[parent[empty]]
        chosen = np.flatnonzero(top)
        order = chosen[np.lexsort((end[chosen] <= start[chosen], -end[chosen], start[chosen], group[chosen]))]
        row[order] = _first_free(start[order].tolist(), end[order].tolist(), group[order].tolist())
    return np.minimum(row, MOST_ROWS - 1), parent


def _wasteful(nesting: Nesting, level: Int64) -> Mask:
    """Which slices (of `nesting.order`) lie below a common outermost slice with one that wastes rows; shape (k,)."""
    k = len(nesting.order)
    outlasts = (nesting.parent >= 0) & (nesting.end > pick(nesting.end, nesting.parent))
    if not outlasts.any():
        return np.zeros(k, np.bool_)
    component = np.cumsum(nesting.parent < 0) - 1
    rows = np.flatnonzero(np.isin(component, component[outlasts]))
    member = component[rows]
    begins = np.searchsorted(member, member)
    # One axis serves all components when each has a stretch of it to itself.
    _, instant = np.unique(np.concatenate((nesting.start[rows], nesting.end[rows])), return_inverse=True)
    key = np.concatenate((member, member)) * (2 * len(rows) + 1) + instant.reshape(-1)
    closed = np.searchsorted(np.sort(key[len(rows) :]), key[: len(rows)], side="right") - begins
    is_open = np.arange(len(rows)) - begins - closed
    waste = level[rows] - is_open
    return np.asarray(np.isin(component, member[waste > _LARGEST_WASTE]))


def _first_free(starts: list[int], ends: list[int], groups: list[int]) -> list[int]:
    """The first row of each slice that nothing open holds; slices stand by group and start."""
    found = []
    held: list[tuple[int, int]] = []
    taken, current = 0, -1
    for start, end, group in zip(starts, ends, groups, strict=True):
        if group != current:
            held, taken, current = [], 0, group
        while held and held[0][0] <= start:
            taken ^= heapq.heappop(held)[1]
        bit = ~taken & (taken + 1)
        row = bit.bit_length() - 1
        found.append(row)
        if end > start and row < MOST_ROWS:
            taken |= bit
            heapq.heappush(held, (end, bit))
    return found

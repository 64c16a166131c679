"""In which row of its track each slice stands: below what it lies in, in the highest row that is free."""

from __future__ import annotations

import heapq

import numpy as np

from deepscope.analysis.array_ops.ancestry import depth, nearest
from deepscope.analysis.array_ops.selection import Mask
from deepscope.dashboard.timeline.columns import MOST_ROWS
from deepscope.trace.arrays import pick
from deepscope.trace.joins.nesting import Ints, Nesting
from deepscope.trace.model import Int64

_CLIMB = 256
"""So far outward the beginning of a chain is looked for; beyond, all that lies in the outermost slice is one."""


def rows_of(start: Int64, end: Int64, group: Ints, rank: Ints, *, side_by_side: Mask) -> tuple[Int64, Int64]:
    """The row of each slice within its group, and the slice that it lies in, -1 for none; both of shape (n,).

    By depth no two slices of a row overlap, whatever outlasts what it began in: all that is open when a slice starts
    lies above it. Where slices outlast what they began in, rows stay empty for as long as they run, and depth grows
    without end in chains of them. There the rows are given out in order of time instead: each slice has the first that
    is free below what it lies in, or any free one if that has outlasted what it began in.

    Args:
        start: of each slice.
        end: of each slice.
        group: slices of different groups have nothing to do with each other.
        rank: of slices that start and end together the lower one encloses the other.
        side_by_side: which slices do not call each other where they overlap, so that they may stand in any free row.
    """
    nesting = Nesting.of(start, end, group, rank)
    parent = nesting.parents_of(start, end, group)
    row = depth(parent)
    wasteful = nesting.order[_wasteful(nesting, row[nesting.order])]
    if len(wasteful):
        top = _outermost_of_chains(start, end, parent, wasteful)
        chosen = np.flatnonzero(top >= 0)
        place = np.full(len(start), len(start))  # what has no length follows what begins with it
        place[nesting.order] = np.arange(len(nesting.order))
        order = chosen[np.lexsort((place[chosen], start[chosen], top[chosen]))]
        at = np.full(len(start) + 1, -1)
        at[order] = np.arange(len(order))
        outlasts = (parent >= 0) & (end > pick(end, parent))
        outer = parent[order]
        above = at[np.where(side_by_side[order] | outlasts[outer], -1, outer)]
        free = _first_free(start[order].tolist(), end[order].tolist(), top[order].tolist(), above.tolist())
        row[order] = row[top[order]] + np.array(free, np.int64)
    return np.minimum(row, MOST_ROWS - 1), parent


def _wasteful(nesting: Nesting, level: Int64) -> Mask:
    """Above which slices (of `nesting.order`) a row is free; `level` are depths; shape (k,)."""
    k = len(nesting.order)
    outlasts = (nesting.parent >= 0) & (nesting.end > pick(nesting.end, nesting.parent))
    found = np.zeros(k, np.bool_)
    if not outlasts.any():
        return found
    component = np.cumsum(nesting.parent < 0) - 1
    affected = np.zeros(int(component[-1]) + 1, np.bool_)
    affected[component[outlasts]] = True
    rows = np.flatnonzero(affected[component])
    member = component[rows]
    first = np.flatnonzero(np.append(True, member[1:] != member[:-1]))
    number = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(rows))))
    begin, end = _on_one_axis(nesting.start[rows], nesting.end[rows], first, number)
    deep = np.flatnonzero(level[rows] > 0)
    closed = np.searchsorted(np.sort(end), begin[deep], side="right") - first[number[deep]]
    is_open = deep - first[number[deep]] - closed
    found[rows[deep]] = level[rows[deep]] > is_open
    return found


def _on_one_axis(start: Int64, end: Int64, first: Int64, number: Int64) -> tuple[Int64, Int64]:
    """Times moved so that each component has a stretch of one axis to itself, in their order.

    `first` is the first row of each component, `number` the component of each row.
    """
    origin = start[first]
    spans = np.maximum.reduceat(end, first) - origin + 1
    if spans.sum(dtype=np.float64) < 1 << 62:
        shift = (np.cumsum(spans) - spans - origin)[number]
        return start + shift, end + shift
    _, instant = np.unique(np.concatenate((start, end)), return_inverse=True)
    key = np.concatenate((number, number)) * (2 * len(start) + 1) + instant.reshape(-1)
    return key[: len(start)], key[len(start) :]


def _outermost_of_chains(start: Int64, end: Int64, parent: Int64, chosen: Int64) -> Int64:
    """The first slice of the chain that each slice is in or below, -1 for none; shape (n,).

    A chain begins with the outermost slice that had ended by the start of a `chosen` one in it.
    """
    first, rows, at = chosen.copy(), np.arange(len(chosen)), parent[chosen]
    for _ in range(_CLIMB):
        on = at >= 0
        rows, at = rows[on], at[on]
        if not len(rows):
            break
        ended = end[at] <= start[chosen[rows]]
        first[rows[ended]] = at[ended]
        at = parent[at]
    is_first = np.zeros(len(start), np.bool_)
    is_first[first] = True
    if len(rows):
        is_first[nearest(parent, parent < 0)[chosen[rows]]] = True
    marked = np.flatnonzero(is_first)
    is_first[marked[pick(nearest(parent, is_first), parent[marked]) >= 0]] = False
    return nearest(parent, is_first)


def _first_free(starts: list[int], ends: list[int], groups: list[int], above: list[int]) -> list[int]:
    """The first row of each slice that nothing open holds; slices stand by group and start.

    Below `above`, the place of what it lies in; -1 where any row will do.
    """
    found: list[int] = []
    held: list[tuple[int, int]] = []
    taken, current = 0, -1
    for start, end, group, outer in zip(starts, ends, groups, above, strict=True):
        if group != current:
            held, taken, current = [], 0, group
        while held and held[0][0] <= start:
            taken ^= heapq.heappop(held)[1]
        closed = taken | ((2 << found[outer]) - 1) if outer >= 0 else taken
        bit = ~closed & (closed + 1)
        row = bit.bit_length() - 1
        found.append(row)
        if end > start and row < MOST_ROWS:
            taken |= bit
            heapq.heappush(held, (end, bit))
    return found

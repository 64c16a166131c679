"""Operations on arrays that NumPy lacks, does more slowly, or imports more for; walks along "parent" pointers; sums
that fit into 64 bits."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

Number = TypeVar("Number", bound=np.generic)
Int64 = npt.NDArray[np.int64]


def distinct_values(values: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """The values that occur, ascending; `np.unique` without options imports all of `numpy.ma` to say the same."""
    ordered = np.sort(values)
    first: npt.NDArray[Number] = ordered[np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]]
    return first


def distinct_places(values: npt.NDArray[np.integer]) -> tuple[Int64, Int64]:
    """The values that occur, ascending, and for each value its place among them.

    `np.unique` sorts to find them; codes that lie as close together as a trace's are looked up in a table.
    """
    low, high = (int(values.min()), int(values.max())) if len(values) else (0, -1)
    if high - low >= 4 * len(values) + (1 << 16):
        found, place = np.unique(values, return_inverse=True)
        return found.astype(np.int64), place
    code = values.astype(np.int64)
    code -= low
    table = np.zeros(high - low + 1, np.int64)
    table[code] = 1
    found = np.flatnonzero(table)
    table[found] = np.arange(len(found))
    return found + low, table[code]


def pick(table: Int64, index: Int64) -> Int64:
    """`table[index]`, with -1 where `index` is -1."""
    if not len(table):
        return np.full(len(index), -1, np.int64)
    return np.where(index < 0, -1, table[index])


def stable_order(values: Int64) -> Int64:
    """`np.argsort(values, kind="stable")` for values of 0 and more, in linear time where none of them is large."""
    if len(values) and int(values.max()) < 1 << 15:
        values = values.astype(np.int16)  # NumPy sorts 16 bits by counting
    return np.argsort(values, kind="stable")


def first_with(ids: Int64, wanted: Int64) -> Int64:
    """The first place in `ids` of each wanted one, -1 for none; shape of `wanted`."""
    if not len(ids):
        return np.full(len(wanted), -1, np.int64)
    order = np.argsort(ids, kind="stable")
    at = order[np.minimum(np.searchsorted(ids[order], wanted), len(ids) - 1)]
    return np.where(ids[at] == wanted, at, -1)


def nearest(up: Int64, marked: npt.NDArray[np.bool_]) -> Int64:
    """The first marked node on the way up from each node, the node itself included; -1 for none.

    Args:
        up: shape (n,); the next node on the way, -1 at the top. Nodes on a cycle have no nearest one.
        marked: shape (n,).
    """
    n = len(up)
    marks = np.flatnonzero(marked)
    if not len(marks):
        return np.full(n, -1, np.int64)
    pointer = np.append(up, n)
    pointer[pointer < 0] = n
    pointer[marks] = marks
    final = np.append(marked, True)
    active = np.flatnonzero(~final[pointer])
    for _ in range(n.bit_length() + 1):
        if not len(active):
            break
        pointer[active] = pointer[pointer[active]]
        active = active[~final[pointer[active]]]
    pointer[active] = n
    pointer[pointer == n] = -1
    return pointer[:n]


_CLIMB = 96
"""Steps that are climbed one by one before pointer doubling takes over."""


def nearest_to(nodes: Int64, up: Int64, marked: npt.NDArray[np.bool_]) -> Int64:
    """`nearest` for a few nodes of many (-1 stays -1); shape of `nodes`."""
    found: Int64 = nodes.copy()
    active = np.flatnonzero(found >= 0)
    active = active[~marked[found[active]]]
    for _ in range(_CLIMB):
        if not len(active):
            return found
        above = up[found[active]]
        found[active] = above
        active = active[(above >= 0) & ~marked[above]]
    found[active] = nearest(up, marked)[found[active]]
    return found


def position_in(nodes: Int64, wanted: Int64, among: int) -> Int64:
    """Position of each wanted index in `nodes`, -1 for what is not there; all indexes lie below `among`."""
    position = np.full(among, -1, np.int64)
    position[nodes] = np.arange(len(nodes))
    return pick(position, wanted)


def depth(up: Int64) -> Int64:
    """How many nodes lie above each one; shape (n,)."""
    n = len(up)
    pointer = np.append(np.where(up < 0, n, up), n)
    distance = np.append(np.where(up < 0, 0, 1), 0)
    for _ in range(n.bit_length() + 1):
        if (pointer == n).all():
            break
        distance = distance + distance[pointer]
        pointer = pointer[pointer]
    return distance[:n]


def by_depth(up: Int64) -> list[Int64]:
    """The nodes in as many parts as the forest is deep: the roots, those directly below them, and so on."""
    level = depth(up)
    return np.split(stable_order(level), np.cumsum(np.bincount(level))[:-1])


def sums_with_callees(values: Int64, caller: Int64) -> Int64:
    """Each node's value with those of all nodes that it called, directly or not.

    `values` has shape (k,) or (k, columns); `caller` is the position of each node's caller, -1 for none.
    """
    sums: Int64 = values.copy()
    for nodes in by_depth(caller)[:0:-1]:
        np.add.at(sums, caller[nodes], sums[nodes])
    return sums


def self_values(values: Int64, caller: Int64) -> Int64:
    """Each node's value less those of the nodes that it called, at least 0; all of shape (k,).

    `caller` is the position of each node's caller, -1 for none. Callees that outlast it may hold more than it.
    """
    called = caller >= 0
    own: Int64 = values.copy()
    np.subtract.at(own, caller[called], values[called])
    return np.asarray(np.maximum(own, 0))


LARGEST_SUM = 2**62
"""Of a sum: half of what 64 bits hold, so that differences of sums hold too."""


def summable(values: Int64, most: int) -> npt.NDArray[np.bool_]:
    """Which values lie in [-most, most], and are small enough that all of them together cannot overflow."""
    found = (values >= -most) & (values <= most)
    if np.abs(values[found]).sum(dtype=np.float64) >= LARGEST_SUM:
        fair = LARGEST_SUM // len(values)
        found &= (values >= -fair) & (values <= fair)
    return np.asarray(found)

"""Small operations on arrays that NumPy lacks, does more slowly, or imports more for."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

Number = TypeVar("Number", bound=np.generic)


def distinct_values(values: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """The values that occur, ascending; `np.unique` without options imports all of `numpy.ma` to say the same."""
    ordered = np.sort(values)
    first: npt.NDArray[Number] = ordered[np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]]
    return first


def distinct_places(values: npt.NDArray[np.integer]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
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


def pick(table: npt.NDArray[np.int64], index: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """`table[index]`, with -1 where `index` is -1."""
    if not len(table):
        return np.full(len(index), -1, np.int64)
    return np.where(index < 0, -1, table[index])


def stable_order(values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """`np.argsort(values, kind="stable")` for values of 0 and more, in linear time where none of them is large."""
    if len(values) and int(values.max()) < 1 << 15:
        values = values.astype(np.int16)  # NumPy sorts 16 bits by counting
    return np.argsort(values, kind="stable")


def first_with(ids: npt.NDArray[np.int64], wanted: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The first place in `ids` of each wanted one, -1 for none; shape of `wanted`."""
    if not len(ids):
        return np.full(len(wanted), -1, np.int64)
    order = np.argsort(ids, kind="stable")
    at = order[np.minimum(np.searchsorted(ids[order], wanted), len(ids) - 1)]
    return np.where(ids[at] == wanted, at, -1)

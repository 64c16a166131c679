"""Each rank beside the median of the others."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_NORMAL = 1.4826
"""Of normal noise the standard deviation is so many times the median distance from the median."""


def others_median(values: Floats) -> Floats:
    """Of each rank the median over all the other ranks; ranks are the first axis, of at least two places."""
    count = len(values)
    order = np.argsort(values, axis=0, kind="stable")
    ordered = np.take_along_axis(values, order, axis=0)
    place = np.empty_like(order)
    np.put_along_axis(place, order, np.arange(count).reshape(-1, *[1] * (values.ndim - 1)), axis=0)

    def other(k: int) -> Floats:
        """The k-th smallest of the others."""
        return np.asarray(np.where(place <= k, ordered[k + 1], ordered[k]))

    low, high = (count - 2) // 2, (count - 1) // 2
    return np.asarray((other(low) + other(high)) / 2) if low != high else other(low)


def above_others(values: Floats) -> Floats:
    """By how much each rank is above the median of the others."""
    return np.asarray(values - others_median(values))


def scatter(values: Floats, axis: int) -> Floats:
    """A robust standard deviation along an axis: few values far off do not change it."""
    middle = np.median(values, axis=axis, keepdims=True)
    return np.asarray(_NORMAL * np.median(np.abs(values - middle), axis=axis))


Int64 = npt.NDArray[np.int64]


def distinct_pairs(first: Int64, second: Int64) -> tuple[Int64, Int64, Int64]:
    """The distinct pairs in order, as two columns, and of each given pair its place among them; all of shape (n,)."""
    firsts, of_first = np.unique(first, return_inverse=True)
    seconds, of_second = np.unique(second, return_inverse=True)
    width = max(len(seconds), 1)
    keys, place = np.unique(of_first.reshape(-1) * width + of_second.reshape(-1), return_inverse=True)
    return firsts[keys // width], seconds[keys % width], place.reshape(-1)

"""Pairs of numbers, each distinct pair once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Int64 = npt.NDArray[np.int64]


def distinct_pairs(first: Int64, second: Int64) -> tuple[Int64, Int64, Int64]:
    """The distinct pairs in order, as two columns, and of each given pair its place among them; all of shape (n,)."""
    firsts, of_first = np.unique(first, return_inverse=True)
    seconds, of_second = np.unique(second, return_inverse=True)
    width = max(len(seconds), 1)
    keys, place = np.unique(of_first.reshape(-1) * width + of_second.reshape(-1), return_inverse=True)
    return firsts[keys // width], seconds[keys % width], place.reshape(-1)

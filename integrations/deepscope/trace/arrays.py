"""Small operations on arrays that NumPy has only at the price of a slower start."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

__all__ = ["distinct_values"]

Number = TypeVar("Number", bound=np.generic)


def distinct_values(values: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """The values that occur, ascending; `np.unique` without options imports all of `numpy.ma` to say the same."""
    ordered = np.sort(values)
    first: npt.NDArray[Number] = ordered[np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]]
    return first

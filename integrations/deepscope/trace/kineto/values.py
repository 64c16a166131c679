"""Values of the file as numbers: an index for each value that occurs, an integer for whatever stands for an id."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from deepscope.trace.model import Int32, Int64

_MOST = 2.0**40
"""Of a number with a fraction."""


class Table(dict[Any, int]):
    """Value → index, in order of first sight."""

    def __missing__(self, value: Any) -> int:
        index = self[value] = len(self)
        return index

    def codes(self, values: Iterable[Any]) -> Int32:
        """The index of each value."""
        codes = [self[value] for value in values]
        return np.fromiter(codes, np.int32, len(codes))


def as_int(value: object) -> int:
    """An id, whatever its type: words become a hash, numbers beyond 64 bits wrap, -1 for nothing."""
    if isinstance(value, str):
        is_number = len(value) < 40 and value.lstrip("-").isdecimal()
        value = int(value) if is_number else zlib.crc32(value.encode("utf-8", "replace"))
    elif isinstance(value, float):
        value = int(value) if abs(value) < 2.0**63 else -1
    if not isinstance(value, int):
        return -1
    if not -(2**63) <= value < 2**64:
        return -1
    return int(value) if value < 2**63 else int(value) - 2**64


def ints(values: list[Any]) -> Int64:
    """`as_int` of each; lists of nothing but integers, the usual ones, at once."""
    if not values:
        return np.zeros(0, np.int64)
    with suppress(ValueError):  # lists of different lengths among them
        array = np.array(values)
        if array.dtype == np.int64 and array.ndim == 1:
            return array
    return np.fromiter(map(as_int, values), np.int64, len(values))


def fractions(values: list[Any]) -> npt.NDArray[np.float64]:
    """Each as a number; -1 for nothing, for words and for what is too large or less than 0."""
    array = np.zeros(0)
    with suppress(ValueError, OverflowError):  # lists of different lengths, integers beyond 64 bits
        array = np.array(values)
    if array.dtype.kind not in "if" or array.shape != (len(values),):
        plain = [float(value) if type(value) in {int, float} and abs(value) < _MOST else -1.0 for value in values]
        array = np.array(plain, np.float64)
    with np.errstate(invalid="ignore"):
        known = (array >= 0) & (array < _MOST)
    return np.where(known, array, -1.0).astype(np.float64)

"""Picks events by kind and name, each distinct name judged once, and sums them by line."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64, Trace

Mask = npt.NDArray[np.bool_]
Columns = dict[str, Int64]
"""Field of `records.Numbers` → sums by line, as `by_line` makes them."""


def of_kind(trace: Trace, *kinds: Kind) -> Mask:
    """Which events are of one of these kinds; shape (n,)."""
    column = trace.events.kind
    found = np.asarray(column == int(kinds[0]))
    for kind in kinds[1:]:
        found |= column == int(kind)
    return found


def distinct(strings: npt.NDArray[np.integer], among: int) -> list[int]:
    """The string indexes that occur, ascending, without -1; `among` is how many strings there are."""
    seen = np.zeros(among + 1, np.bool_)
    seen[strings] = True  # -1 lands on the last, spare place
    return [int(index) for index in np.flatnonzero(seen[:among])]


def named(trace: Trace, candidates: Mask, predicate: Callable[[str], object]) -> Mask:
    """Which of the candidate events bear a name that the predicate accepts; shape (n,)."""
    names = trace.events.name
    accepted = np.zeros(len(trace.strings) + 1, np.bool_)
    for index in distinct(names[candidates], len(trace.strings)):
        accepted[index] = bool(predicate(trace.strings[index]))
    return candidates & accepted[names]


def by_line(location: Int64, lines: int, values: Int64 | None = None) -> Int64:
    """Exact sums by line (counts without `values`); shape (lines + 1,), the last place for what has no line (-1)."""
    result = np.zeros(lines + 1, np.int64)
    np.add.at(result, location, 1 if values is None else values)
    return result

"""Picks events by kind and name, each distinct name judged once, and sums them by line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from deepscope.trace.arrays import distinct_places
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64, Trace

Mask = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Columns = dict[str, Int64]
"""Field of `records.Numbers` → sums by line, as `by_line` makes them."""


def of_kind(trace: Trace, *kinds: Kind) -> Mask:
    """Which events are of one of these kinds; shape (n,)."""
    column = trace.events.kind
    found = np.asarray(column == int(kinds[0]))
    for kind in kinds[1:]:
        found |= column == int(kind)
    return found


def mask_of(rows: npt.NDArray[Any] | list[int], among: int) -> Mask:
    """Which of so many rows are the chosen ones; shape (among,)."""
    mask = np.zeros(among, np.bool_)
    mask[rows] = True
    return mask


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


def sums(group: npt.NDArray[np.integer], groups: int, values: Int64 | None = None) -> Int64:
    """Exact sums by group, from 0 on (counts without `values`); shape (groups,)."""
    result = np.zeros(groups, np.int64)
    np.add.at(result, group, 1 if values is None else values)
    return result


def by_line(location: Int64, lines: int, values: Int64 | None = None) -> Int64:
    """`sums` by line; shape (lines + 1,), the last place for what has no line (-1)."""
    return sums(location, lines + 1, values)


def expanded(first: Int64, count: Int64) -> tuple[Int64, Int64]:
    """All numbers of ranges that begin with `first` and have `count` numbers (none below 1), one range after another.

    Returns the range that each is of, a place in `first`, and the number itself; both of shape (sum of counts,).
    """
    count = np.maximum(count, 0)
    row = np.repeat(np.arange(len(first)), count)
    return row, np.arange(len(row)) + np.repeat(first - (np.cumsum(count) - count), count)


class Share(NamedTuple):
    """What one member gives to its group."""

    group: int
    member: int
    total: int
    rows: int


def largest(group: Int64, member: Int64, value: Int64, keep: int) -> Iterator[Share]:
    """The `keep` members with the largest sums in each group, largest first; ties in order of the member's number.

    Args:
        group: shape (n,), rows with -1 are left out.
        member: shape (n,), likewise.
        value: shape (n,).
        keep: rows for each group.
    """
    known = (group >= 0) & (member >= 0)
    group, member, value = group[known], member[known], value[known]
    if not len(group):
        return
    width = int(member.max()) + 1
    pairs, inverse = distinct_places(group * width + member)
    count, total = np.bincount(inverse), sums(inverse, len(pairs), value)
    owner = pairs // width
    order = np.lexsort((pairs, -total, owner))
    owner = owner[order]
    begin = np.flatnonzero(np.concatenate(([True], owner[1:] != owner[:-1])))
    rank = np.arange(len(owner)) - np.repeat(begin, np.diff(np.append(begin, len(owner))))
    for row in order[rank < keep].tolist():
        yield Share(int(pairs[row]) // width, int(pairs[row]) % width, int(total[row]), int(count[row]))


def largest_named(group: Int64, name: Int64, value: Int64, keep: int, strings: Sequence[str]) -> Iterator[Share]:
    """`largest` where members are strings (indexes into `strings`, -1 for none); ties in the order of the alphabet.

    So the order of the events in a file does not matter.
    """
    used = np.array(sorted(distinct(name, len(strings)), key=strings.__getitem__), np.int64)
    place = np.full(len(strings) + 1, -1, np.int64)
    place[used] = np.arange(len(used))
    for share in largest(group, place[name], value, keep):
        yield share._replace(member=int(used[share.member]))


def commonest(group: Int64, value: npt.NDArray[np.integer], groups: int) -> list[int]:
    """The value that most rows of each group have, -1 for none; values of -1 do not count."""
    found = [-1] * groups
    for share in largest(group, value.astype(np.int64), np.ones(len(group), np.int64), 1):
        found[share.group] = share.member
    return found


def distinct_rows(*columns: npt.NDArray[np.integer]) -> tuple[list[tuple[int, ...]], Int64]:
    """The different rows of some columns of small numbers from -1 on, and the place of each row among them."""
    place = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        _, code = distinct_places(column)
        _, place = distinct_places(place * (int(code.max(initial=0)) + 1) + code)
    first = np.zeros(int(place.max(initial=-1)) + 1, np.int64)
    first[place[::-1]] = np.arange(len(place))[::-1]
    return list(zip(*(column[first].tolist() for column in columns), strict=True)), place


def rows(columns: Columns, order: Int64) -> list[dict[str, Any]]:
    """Each group's numbers as keyword arguments of `Numbers`."""
    names = list(columns)
    table = np.stack([columns[name][order] for name in names], axis=1).tolist() if names else []
    return [dict(zip(names, row, strict=True)) for row in table]


def largest_first(columns: Columns, count: int) -> Int64:
    """Groups (indexes) in which any number is not zero, by self device time, then total, then CPU time."""
    some = np.zeros(count, np.bool_)
    for values in columns.values():
        some |= values[:count] != 0
    present = np.flatnonzero(some)
    keys = [-columns[name][present] for name in ("self_cpu_ns", "total_device_ns", "self_device_ns")]
    return present[np.lexsort(keys)]

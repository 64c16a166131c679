"""Which event stands in which: the innermost interval open at the start of another, for whole columns at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from deepscope.trace.arrays import distinct_values, pick
from deepscope.trace.model import Events, Int64

Ints = npt.NDArray[np.signedinteger] | npt.NDArray[np.unsignedinteger]


def parents(start_ns: Int64, end_ns: Int64, group: Ints) -> Int64:
    """Index of the innermost event of the same group that is open when each event starts; -1 for none. Shape (n,).

    Events enter and leave as on a stack. They enter by start; at the same start the longer goes first, then the given
    order. They leave once a later one starts at or after their end. So an event that ends after its parent still has
    that parent. An event without duration lies in whatever is open at its instant, and never has children.
    """
    return Nesting.of(start_ns, end_ns, group).parents_of(start_ns, end_ns, group)


def innermost(query_ns: Int64, query_group: Ints, start_ns: Int64, end_ns: Int64, group: Ints) -> Int64:
    """Index of the innermost interval [start, end) of the query's group around each instant; -1 for none.

    Innermost is the one that entered last, in the order that `parents` describes. The shape is the query's.
    """
    return Nesting.of(start_ns, end_ns, group).at(query_ns, query_group)


def open_around(events: Events, inner: Int64, outer: Int64) -> Int64:
    """Which of the events `outer` is the innermost one open as each of `inner` starts (indexes in `outer`); -1 none."""
    return innermost(
        events.start_ns[inner],
        events.thread[inner],
        events.start_ns[outer],
        events.end_ns[outer],
        events.thread[outer],
    )


@dataclass(frozen=True)
class Nesting:
    """Intervals of positive length in stack order, to be asked more than once; `parent` is a position in that order."""

    order: Int64
    start: Int64
    end: Int64
    group: Int64
    parent: Int64

    @classmethod
    def of(cls, start_ns: Int64, end_ns: Int64, group: Ints, rank: Ints | None = None) -> Nesting:
        """Of these intervals; of those that start and end together the one of the lower `rank` is further out."""
        keep = np.flatnonzero(end_ns > start_ns)
        start, end, groups = start_ns[keep], end_ns[keep], group[keep].astype(np.int64)
        order = _stack_order(start, end, groups, None if rank is None else rank[keep].astype(np.int64))
        start, end, groups = start[order], end[order], groups[order]
        return cls(keep[order], start, end, groups, _nest(start, end, groups))

    def parents_of(self, start_ns: Int64, end_ns: Int64, group: Ints) -> Int64:
        """`parents` of the same events that it was made of."""
        result = np.full(len(start_ns), -1, np.int64)
        result[self.order] = pick(self.order, self.parent)
        empty = np.flatnonzero(end_ns <= start_ns)
        if len(empty):
            result[empty] = self.at(start_ns[empty], group[empty])
        return result

    def at(self, query_ns: Int64, query_group: Ints) -> Int64:
        """Original index of the innermost interval around each instant, as `innermost` describes it."""
        found = np.full(len(query_ns), -1, np.int64)
        if not len(self.order) or not len(query_ns):
            return found
        groups = query_group.astype(np.int64)
        last = _last_started(self.start, self.group, query_ns, groups)
        inside = np.flatnonzero(last >= 0)
        at = last[inside]
        # An interval that has ended gives way to its parent: all that started in between had ended before it.
        while len(inside):
            is_open = self.end[at] > query_ns[inside]
            found[inside[is_open]] = self.order[at[is_open]]
            inside, at = inside[~is_open], self.parent[at[~is_open]]
            inside, at = inside[at >= 0], at[at >= 0]
        return found


def _stack_order(start: Int64, end: Int64, group: Int64, rank: Int64 | None) -> Int64:
    """By group, start, the longer first, then by rank, then as given."""
    last = [-end] if rank is None else [rank, -end]
    if not len(start):
        return np.zeros(0, np.int64)
    origin, first = int(start.min()), int(group.min())
    span = int(start.max()) - origin + 1
    if span * (int(group.max()) - first + 1) >= 2**63:
        return np.asarray(np.lexsort([*last, start, group]))
    # By one key for group and start, recorded events stand in a few ascending runs. The other columns settle ties.
    key = (group - first) * span + (start - origin)
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    tied = np.zeros(len(order), np.bool_)
    tied[1:] = ordered[1:] == ordered[:-1]
    tied[:-1] |= tied[1:]
    rows = np.sort(order[tied])
    order[tied] = rows[np.lexsort([*(column[rows] for column in last), key[rows]])]
    return np.asarray(order)


def _last_started(start: Int64, group: Int64, query_ns: Int64, query_group: Int64) -> Int64:
    """Position of the last interval of the group with start <= query; -1 for none. Sorted by (group, start)."""
    last = np.full(len(query_ns), -1, np.int64)
    low = np.searchsorted(group, query_group, "left")
    high = np.searchsorted(group, query_group, "right")
    for number in distinct_values(low[low < high]).tolist():
        rows = np.flatnonzero((low == number) & (low < high))
        segment = start[number : high[rows[0]]]
        position = np.searchsorted(segment, query_ns[rows], "right") - 1
        last[rows] = np.where(position >= 0, position + number, -1)
    return last


def _nest(start: Int64, end: Int64, group: Int64) -> Int64:
    """Parents of intervals that stand in stack order, as positions.

    The parent is the last interval before that is still open. The first guess is the one just before. A guess that has
    ended gives way to its own guess. Whatever lies between the two had ended when the first began, so nothing open is
    skipped. As guesses leap over guesses, rows of siblings are crossed in a logarithmic number of rounds.
    """
    guess = np.arange(-1, len(start) - 1)
    guess[1:][group[1:] != group[:-1]] = -1
    active = np.flatnonzero(guess >= 0)
    while len(active):
        at = guess[active]
        active = active[end[at] <= start[active]]
        guess[active] = guess[guess[active]]
        active = active[guess[active] >= 0]
    return guess

"""Slices found by their names or by their line."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import numpy.typing as npt

from deepscope.dashboard.timeline.answers import Matches
from deepscope.dashboard.timeline.columns import KIND_NUMBER, KINDS, Columns
from deepscope.dashboard.timeline.names import shown_name, whole_name
from deepscope.dashboard.timeline.places import found_slices
from deepscope.errors import OptionError
from deepscope.trace.model import Int64

__all__ = ["MOST_FOUND", "NameIndex", "at_line", "search"]

MOST_FOUND = 1_000
"""So many slices at most are told of one question."""
_LONGEST_TEXT = 1_000

Mask = npt.NDArray[np.bool_]


class NameIndex:
    """The names of a timeline as they are searched: in lower case, as shown and as recorded."""

    def __init__(self, columns: Columns) -> None:
        labels = columns.labels
        self._texts: list[str] = []
        for label in range(len(labels.kind)):
            shown, whole = shown_name(labels, label).casefold(), whole_name(labels, label).casefold()
            self._texts.append(whole if shown in whole else f"{shown}\n{whole}")

    def holding(self, text: str) -> Mask:
        """Which labels hold a text, whatever its case; shape (labels,)."""
        wanted = text.casefold()
        return np.fromiter((wanted in one for one in self._texts), np.bool_, len(self._texts))


def search(
    columns: Columns,
    names: NameIndex,
    text: str,
    *,
    from_ns: float = 0,
    limit: int = 100,
    kinds: Collection[str] | None = None,
) -> Matches:
    """The slices of some kinds (None: all) whose name holds a text; nothing is found for an empty one.

    Raises:
        OptionError: there is no such kind, or less than one slice is asked for.
    """
    chosen = np.ones(len(KINDS), np.bool_)
    if kinds is not None:
        for kind in kinds:
            if kind not in KIND_NUMBER:
                raise OptionError("kinds", kind, f"no such kind; there are: {', '.join(KINDS)}")
        chosen = np.isin(np.arange(len(KINDS)), [KIND_NUMBER[kind] for kind in kinds])
    if not text.strip() or not len(columns.slices):
        return _matches(columns, np.zeros(0, np.int64), from_ns, limit)
    wanted = names.holding(text[:_LONGEST_TEXT]) & chosen[columns.labels.kind]
    return _matches(columns, np.flatnonzero(wanted[columns.slices.label]), from_ns, limit)


def at_line(columns: Columns, file: str, line: int, *, from_ns: float = 0, limit: int = 100) -> Matches:
    """The slices that belong to a line of code: its runs, what it called, the work that it owns.

    Raises:
        OptionError: less than one slice is asked for.
    """
    places = [place for place, one in enumerate(columns.places) if (one.file, one.line) == (file, line)]
    found = np.flatnonzero(np.isin(columns.slices.place, places)) if places else np.zeros(0, np.int64)
    return _matches(columns, found, from_ns, limit)


def _matches(columns: Columns, found: Int64, from_ns: float, limit: int) -> Matches:
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise OptionError("limit", limit, f"no number of slices; it takes one from 1 to {MOST_FOUND:,}")
    if from_ns != from_ns:  # noqa: PLR0124  not a number
        raise OptionError("from_ns", from_ns, "not a time; it takes nanoseconds from the timeline's begin")
    slices = columns.slices
    start = slices.start[found]
    ahead = start >= from_ns
    told: list[Int64] = []
    room = min(limit, MOST_FOUND)
    for rows in (np.flatnonzero(ahead), np.flatnonzero(~ahead)):
        if room and len(rows):
            first = rows if len(rows) <= room else rows[np.argpartition(start[rows], room - 1)[:room]]
            told.append(first[np.lexsort((found[first], start[first]))])
            room -= len(told[-1])
    chosen = found[np.concatenate(told)] if told else found[:0]
    return Matches(
        count=len(found),
        time_ns=int((slices.end[found] - start).sum()),
        found=found_slices(columns, chosen),
    )

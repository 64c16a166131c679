"""Slices found by their names or by their line, and how long those of a name are."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import numpy.typing as npt

from deepscope.dashboard.timeline.answers import Durations, Matches
from deepscope.dashboard.timeline.columns import KIND_NUMBER, KINDS, TimelineColumns
from deepscope.dashboard.timeline.names import cut, found_slices, shown, whole_name
from deepscope.errors import OptionError
from deepscope.printable import printable
from deepscope.trace.model import Int64

MOST_FOUND = 1_000
"""So many slices at most are told of one question."""
_LONGEST_TEXT = 1_000

Mask = npt.NDArray[np.bool_]


class NameIndex:
    """The names of a timeline as they are looked for: as shown and as recorded."""

    def __init__(self, columns: TimelineColumns) -> None:
        labels = columns.labels
        self._whole = [printable(text) for text in labels.recorded]
        self._shown = [shown(title, text) for title, text in zip(labels.titles, labels.recorded, strict=True)]
        lower = zip(map(str.casefold, self._shown), map(str.casefold, self._whole), strict=True)
        self._lower = [whole if shown in whole else f"{shown}\n{whole}" for shown, whole in lower]

    def holding(self, text: str) -> Mask:
        """Which labels hold a text, whatever its case; shape (labels,)."""
        wanted = text.casefold()
        return np.fromiter((wanted in one for one in self._lower), np.bool_, len(self._lower))

    def bearing(self, name: str) -> Mask:
        """Which labels are this name, as shown or as recorded; shape (labels,)."""
        same = (name in pair for pair in zip(self._shown, self._whole, strict=True))
        return np.fromiter(same, np.bool_, len(self._whole))


def search(
    columns: TimelineColumns,
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


def at_line(columns: TimelineColumns, file: str, line: int, *, from_ns: float = 0, limit: int = 100) -> Matches:
    """The slices that belong to a line of code: its runs, what it called, the work that it owns.

    Raises:
        OptionError: less than one slice is asked for.
    """
    places = [place for place, one in enumerate(columns.places) if (one.file, one.line) == (file, line)]
    found = np.flatnonzero(np.isin(columns.slices.place, places)) if places else np.zeros(0, np.int64)
    return _matches(columns, found, from_ns, limit)


def _matches(columns: TimelineColumns, found: Int64, from_ns: float, limit: int) -> Matches:
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise OptionError("limit", limit, f"no number of slices; it takes one from 1 to {MOST_FOUND:,}")
    if from_ns != from_ns:  # noqa: PLR0124  not a number
        raise OptionError("from_ns", from_ns, "not a time; it takes nanoseconds from the timeline's begin")
    slices = columns.slices
    start = slices.start[found]
    ahead = start >= from_ns
    parts: list[Int64] = []
    room = min(limit, MOST_FOUND)
    for side in (ahead, ~ahead):
        rows = np.flatnonzero(side)
        if room and len(rows):
            if len(rows) > room:
                rows = rows[start[rows] <= np.partition(start[rows], room - 1)[room - 1]]
            parts.append(rows[np.lexsort((found[rows], start[rows]))[:room]])
            room -= len(parts[-1])
    chosen = found[np.concatenate(parts)] if parts else found[:0]
    return Matches(
        count=len(found),
        time_ns=int((slices.end[found] - start).sum()),
        found=found_slices(columns, chosen),
    )


BINS = 40
_LONGEST = 10


def durations_of(columns: TimelineColumns, names: NameIndex, name: str, kind: str) -> Durations:
    """The durations of the slices of a kind that bear a name, as it is shown or as it was recorded.

    Percentiles are those of the nearest rank. Slices of no duration stand in the first bin.

    Raises:
        OptionError: there is no such kind, or no slice of it bears the name.
    """
    if kind not in KIND_NUMBER:
        raise OptionError("kind", kind, f"no such kind; there are: {', '.join(KINDS)}")
    labels, slices = columns.labels, columns.slices
    wanted = (labels.kind == KIND_NUMBER[kind]) & names.bearing(name)
    found = np.flatnonzero(wanted[slices.label]) if wanted.any() else np.zeros(0, np.int64)
    if not len(found):
        raise OptionError("name", cut(name), f"no {kind} is called so")
    length = slices.end[found] - slices.start[found]
    ordered = np.sort(length)
    longest = np.lexsort((found, -length))[:_LONGEST]
    edges = _edges(int(ordered[0]), int(ordered[-1]))
    counts, _ = np.histogram(np.maximum(length, 1), edges)
    return Durations(
        name=whole_name(labels, int(np.argmax(wanted))),
        kind=KINDS[KIND_NUMBER[kind]],
        count=len(found),
        least_ns=int(ordered[0]),
        median_ns=int(ordered[(len(ordered) - 1) // 2]),
        p95_ns=int(ordered[-(-95 * len(ordered) // 100) - 1]),
        largest_ns=int(ordered[-1]),
        total_ns=int(length.sum()),
        edges_ns=edges.tolist(),
        counts=counts.tolist(),
        longest=found_slices(columns, found[longest]),
    )


def _edges(least: int, largest: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Edges of bins that grow by a constant ratio, from the least duration to beyond the largest."""
    first, last = float(max(least, 1)), float(max(largest, 1))
    if first == last:
        return np.array([first, first * 1.05])
    edges = np.geomspace(first, last, BINS + 1)
    edges[0], edges[-1] = first, np.nextafter(last, np.inf)
    return edges

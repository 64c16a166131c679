"""What a stretch of time is made of: work, operators, how busy tracks are, counters; and slices by name or line."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from deepscope.analysis.array_ops.selection import Mask
from deepscope.dashboard.timeline.answers import Busy, Durations, Matches, Selection, SliceKind, Sum
from deepscope.dashboard.timeline.columns import (
    KIND_NUMBER,
    KINDS,
    LONGEST,
    WORK_KINDS,
    TimelineColumns,
    asked_tracks,
    found_slices,
    kind_numbers,
    shown_name,
    shown_text,
    slices_within,
    stretch_of,
    whole_name,
)
from deepscope.dashboard.timeline.counters import change_in
from deepscope.dashboard.timeline.detail_levels import covered_before, ranges
from deepscope.errors import OptionError
from deepscope.printable import clipped, printable
from deepscope.records.lines import NO_LINE
from deepscope.trace.arrays import distinct_places
from deepscope.trace.model import Int64

LISTED = 50
OTHERS = "(others)"


class _Part(NamedTuple):
    """Times of slices within a selection; arrays of shape (k,)."""

    slice: Int64
    time_ns: Int64


def selection_of(columns: TimelineColumns, begin: int, end: int, tracks: Collection[int] | None) -> Selection:
    """The sums over some tracks (None: all) between two instants.

    Raises:
        OptionError: there is no such track, or the stretch ends before it begins.
    """
    begin_ns, end_ns = stretch_of(begin, end)
    chosen = asked_tracks(columns, tracks)
    rows = slices_within(columns, chosen, begin_ns, end_ns)
    kind = columns.labels.kind[columns.slices.label[rows]] if len(rows) else rows
    operators = _own_time(columns, rows[kind == KIND_NUMBER["operator"]], begin_ns, end_ns)
    work = rows[np.isin(kind, kind_numbers(WORK_KINDS))] if columns.has_device else operators.slice
    kernels = (
        _Part(work, _clipped(columns, work, begin_ns, end_ns)) if columns.has_device else _Part(work[:0], work[:0])
    )
    bounds = np.array([begin_ns, end_ns])
    covered = [np.diff(covered_before(columns.busy, track, bounds)) for track in chosen.tolist()]
    devices = [np.diff(covered_before(columns.device_busy, one, bounds)) for one in range(len(columns.devices))]
    changes = (change_in(columns, one, begin_ns, end_ns) for one in range(len(columns.counters)))
    return Selection(
        begin_ns=begin_ns,
        end_ns=end_ns,
        busy=[Busy(track=one, busy_ns=int(ns[0])) for one, ns in zip(chosen.tolist(), covered, strict=True)],
        idle_ns=[end_ns - begin_ns - int(ns[0]) for ns in devices],
        devices=list(columns.devices),
        lines=_by_line(columns, work, begin_ns, end_ns, None if columns.has_device else operators),
        kernels=_by_name(columns, kernels),
        operators=_by_name(columns, operators),
        counters=[one for one in changes if one is not None],
    )


def _clipped(columns: TimelineColumns, rows: Int64, begin: int, end: int) -> Int64:
    """How much of each slice lies between two instants."""
    slices = columns.slices
    return np.asarray(np.maximum(np.minimum(slices.end[rows], end) - np.maximum(slices.start[rows], begin), 0))


def _own_time(columns: TimelineColumns, rows: Int64, begin: int, end: int) -> _Part:
    """The operators' own time: without that of the operators called from them."""
    time = _clipped(columns, rows, begin, end)
    place = np.searchsorted(columns.operators, rows)
    caller = columns.operator_caller[place].astype(np.int64) if len(rows) else rows
    at = np.searchsorted(place, caller)
    known = (caller >= 0) & (at < len(place))
    known[known] = place[at[known]] == caller[known]
    own = time.copy()
    np.subtract.at(own, at[known], time[known])
    return _Part(rows, np.maximum(own, 0))


def _by_line(columns: TimelineColumns, rows: Int64, begin: int, end: int, own: _Part | None) -> list[Sum]:
    """The work of some slices by line. Parts of a slice follow each other in its time (`own` or all of it)."""
    parts = columns.work
    low, high = np.searchsorted(parts.slice, rows, "left"), np.searchsorted(parts.slice, rows, "right")
    part, of = ranges(low, high), np.repeat(np.arange(len(rows)), high - low)
    if own is None:
        start = columns.slices.start[rows]
        first, last = np.maximum(begin - start, 0)[of], np.maximum(end - start, 0)[of]
    else:
        first, last = np.zeros(len(of), np.int64), own.time_ns[of]
    offset, duration = parts.offset_ns[part], parts.duration_ns[part]
    time = np.maximum(np.minimum(offset + duration, last) - np.maximum(offset, first), 0)
    place = parts.place[part].astype(np.int64)
    found, number = distinct_places(place)
    sums, counts = np.zeros(len(found), np.int64), np.bincount(number, minlength=len(found))
    np.add.at(sums, number, time)
    order = np.argsort(-sums, kind="stable")
    of_no_line: SliceKind = "kernel" if own is None else "operator"
    return [
        Sum(
            name=columns.places[one].title if one >= 0 else NO_LINE,
            kind="line" if one >= 0 else of_no_line,
            place=one,
            time_ns=time_ns,
            count=count,
        )
        for one, time_ns, count in zip(found[order].tolist(), sums[order].tolist(), counts[order].tolist(), strict=True)
    ]


def _by_name(columns: TimelineColumns, part: _Part) -> list[Sum]:
    """Times by name, the largest, and then one of all others."""
    slices, labels = columns.slices, columns.labels
    if not len(part.slice):
        return []
    found, number = distinct_places(slices.label[part.slice])
    sums, counts = np.zeros(len(found), np.int64), np.bincount(number, minlength=len(found))
    np.add.at(sums, number, part.time_ns)
    place = slices.place[part.slice]
    least, most = np.full(len(found), np.iinfo(np.int32).max), np.full(len(found), -1)
    np.minimum.at(least, number, place)
    np.maximum.at(most, number, place)
    order = np.argsort(-sums, kind="stable")
    listed = [
        Sum(
            name=shown_name(labels, int(found[one])),
            kind=KINDS[labels.kind[found[one]]],
            place=int(most[one]) if most[one] == least[one] else -1,
            time_ns=int(sums[one]),
            count=int(counts[one]),
        )
        for one in order[:LISTED].tolist()
    ]
    rest = order[LISTED:]
    if len(rest):
        time_ns, count = int(sums[rest].sum()), int(counts[rest].sum())
        listed.append(Sum(name=OTHERS, kind=listed[0].kind, place=-1, time_ns=time_ns, count=count))
    return listed


MOST_FOUND = 1_000
"""So many slices at most are told of one question."""
_LONGEST_TEXT = 1_000


class NameIndex:
    """The names of a timeline as they are looked for: as shown and as recorded."""

    def __init__(self, columns: TimelineColumns) -> None:
        labels = columns.labels
        self._whole = [printable(text) for text in labels.recorded]
        self._shown = [shown_text(title, text) for title, text in zip(labels.titles, labels.recorded, strict=True)]
        lower = zip(map(str.casefold, self._shown), map(str.casefold, self._whole), strict=True)
        self._lower = [whole if shown in whole else f"{shown}\n{whole}" for shown, whole in lower]

    def holding(self, text: str) -> Mask:
        """Which labels hold a text, whatever its case; shape (labels,)."""
        wanted = text.casefold()
        return np.fromiter((wanted in one for one in self._lower), np.bool_, len(self._lower))

    def named(self, name: str) -> Mask:
        """Which labels are this name, as shown or as recorded; shape (labels,)."""
        same = (name in pair for pair in zip(self._shown, self._whole, strict=True))
        return np.fromiter(same, np.bool_, len(self._whole))


def search(
    columns: TimelineColumns,
    names: NameIndex,
    text: str,
    *,
    from_ns: int,
    limit: int,
    kinds: Collection[str] | None,
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
        chosen = np.isin(np.arange(len(KINDS)), kind_numbers(kinds))
    if not text.strip() or not len(columns.slices):
        return _matches(columns, np.zeros(0, np.int64), from_ns, limit)
    wanted = names.holding(text[:_LONGEST_TEXT]) & chosen[columns.labels.kind]
    return _matches(columns, np.flatnonzero(wanted[columns.slices.label]), from_ns, limit)


def at_line(columns: TimelineColumns, file: str, line: int, *, from_ns: int, limit: int) -> Matches:
    """The slices that belong to a line of code: its runs, what it called, the work that it owns.

    Raises:
        OptionError: less than one slice is asked for.
    """
    places = [place for place, one in enumerate(columns.places) if (one.file, one.line) == (file, line)]
    return _matches(columns, np.flatnonzero(np.isin(columns.slices.place, places)), from_ns, limit)


def _matches(columns: TimelineColumns, found: Int64, from_ns: int, limit: int) -> Matches:
    if limit < 1:
        raise OptionError("limit", limit, f"no number of slices; it takes one from 1 to {MOST_FOUND:,}")
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
    time_ns = int((slices.end[found] - start).sum())
    return Matches(count=len(found), time_ns=time_ns, found=found_slices(columns, chosen))


BINS = 40
_LONGEST = 10


def durations_of(columns: TimelineColumns, names: NameIndex, name: str, kind: SliceKind) -> Durations:
    """The durations of the slices of a kind that have a name, as it is shown or as it was recorded.

    Percentiles are those of the nearest rank. Slices of no duration stand in the first bin.

    Raises:
        OptionError: no slice of this kind has the name.
    """
    labels, slices = columns.labels, columns.slices
    wanted = (labels.kind == KIND_NUMBER[kind]) & names.named(name)
    found = np.flatnonzero(wanted[slices.label])
    if not len(found):
        raise OptionError("name", clipped(name, LONGEST), f"no {kind} is called so")
    length = slices.end[found] - slices.start[found]
    ordered = np.sort(length)
    longest = np.lexsort((found, -length))[:_LONGEST]
    edges = _edges(int(ordered[0]), int(ordered[-1]))
    counts, _ = np.histogram(np.maximum(length, 1), edges)
    return Durations(
        name=whole_name(labels, int(np.argmax(wanted))),
        kind=kind,
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

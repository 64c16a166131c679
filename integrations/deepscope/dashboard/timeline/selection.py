"""What a stretch of time is made of: work by line and name, operators, how busy tracks are, what counters do."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from deepscope.dashboard.timeline.answers import Busy, Selection, Sum
from deepscope.dashboard.timeline.columns import KIND_NUMBER, KINDS, TimelineColumns
from deepscope.dashboard.timeline.counters import change_in
from deepscope.dashboard.timeline.levels import covered_before, ranges
from deepscope.dashboard.timeline.names import asked_tracks, shown_name, stretch_of, within
from deepscope.trace.arrays import distinct_places
from deepscope.trace.model import Int64

LISTED = 50
OTHERS = "(others)"
NO_LINE = "(no user line)"

_WORK = ("kernel", "copy", "collective")


class _Part(NamedTuple):
    """Times of slices within a selection; arrays of shape (k,)."""

    slice: Int64
    time_ns: Int64


def selection_of(
    columns: TimelineColumns, begin: float, end: float, tracks: Collection[int] | None = None
) -> Selection:
    """The sums over some tracks (None: all) between two instants.

    Raises:
        OptionError: there is no such track, or the stretch has no begin or end.
    """
    begin_ns, end_ns = stretch_of(begin, end)
    chosen = asked_tracks(columns, tracks)
    rows = within(columns, chosen, begin_ns, end_ns)
    kind = columns.labels.kind[columns.slices.label[rows]] if len(rows) else rows
    operators = _own_time(columns, rows[kind == KIND_NUMBER["operator"]], begin_ns, end_ns)
    work = rows[np.isin(kind, [KIND_NUMBER[one] for one in _WORK])] if columns.has_device else operators.slice
    kernels = _Part(work, _clipped(columns, work, begin_ns, end_ns)) if columns.has_device else _none()
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


def _none() -> _Part:
    return _Part(np.zeros(0, np.int64), np.zeros(0, np.int64))


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
    kind = "kernel" if own is None else "operator"
    return [
        Sum(
            name=columns.places[one].title if one >= 0 else NO_LINE,
            kind="line" if one >= 0 else KINDS[KIND_NUMBER[kind]],
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

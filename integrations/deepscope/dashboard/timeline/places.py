"""Where slices stand: their tracks and rows, and what is asked for of them."""

from __future__ import annotations

import math
from collections.abc import Collection

import numpy as np

from deepscope.dashboard.timeline.answers import Found
from deepscope.dashboard.timeline.columns import Columns
from deepscope.dashboard.timeline.names import shown_name
from deepscope.errors import OptionError
from deepscope.trace.model import Int64

_LARGEST = 1 << 61


def row_of(columns: Columns, one: int) -> tuple[int, int]:
    """The track and the row of a slice."""
    lane = int(np.searchsorted(columns.lane_slice, one, "right")) - 1
    track = int(np.searchsorted(columns.track_lane, lane, "right")) - 1
    return track, lane - int(columns.track_lane[track])


def found_slices(columns: Columns, chosen: Int64) -> list[Found]:
    """Slices with their names, in the given order."""
    slices, found = columns.slices, []
    for one in chosen.tolist():
        track, row = row_of(columns, one)
        found.append(
            Found(
                slice=one,
                track=track,
                row=row,
                start_ns=int(slices.start[one]),
                end_ns=int(slices.end[one]),
                name=shown_name(columns.labels, int(slices.label[one])),
            )
        )
    return found


def within(columns: Columns, tracks: Int64, begin: int, end: int) -> Int64:
    """The slices of some tracks that lie in a stretch of time at least in part, ascending.

    Slices without a length count at their instant.
    """
    if not len(tracks):
        return np.zeros(0, np.int64)
    lanes = columns.lane_slice[columns.track_lane[tracks]], columns.lane_slice[columns.track_lane[tracks + 1]]
    slices, parts = columns.slices, []
    for first, last in zip(lanes[0].tolist(), lanes[1].tolist(), strict=True):
        start, stop = slices.start[first:last], slices.end[first:last]
        parts.append(first + np.flatnonzero((start < end) & (np.maximum(stop, start + 1) > begin)))
    return np.concatenate(parts)


def stretch_of(begin: float, end: float) -> tuple[int, int]:
    """A stretch of time as it was asked for, in whole nanoseconds, at least one.

    Raises:
        OptionError: it has no begin or end, or ends before it begins.
    """
    bounds = []
    for name, value in (("begin_ns", begin), ("end_ns", end)):
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            raise OptionError(name, value, "not a time; it takes nanoseconds from the timeline's begin")
        bounds.append(int(min(max(value, -_LARGEST), _LARGEST)))
    if bounds[0] > bounds[1]:
        raise OptionError("end_ns", end, f"lies before the begin, {begin}")
    return bounds[0], max(bounds[1], bounds[0] + 1)


def asked_tracks(columns: Columns, tracks: Collection[int] | None) -> Int64:
    """The tracks that were asked for, ascending; all of them for None.

    Raises:
        OptionError: there is no such track.
    """
    if tracks is None:
        return np.arange(len(columns.tracks))
    for one in tracks:
        if isinstance(one, bool) or not isinstance(one, int) or not 0 <= one < len(columns.tracks):
            raise OptionError("tracks", one, f"no such track; there are {len(columns.tracks)}, from 0 on")
    return np.array(sorted(set(tracks)), np.int64)

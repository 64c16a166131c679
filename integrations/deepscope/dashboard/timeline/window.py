"""What a stretch of time shows: as many slices as can be seen, the shorter ones joined."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from deepscope.analysis.array_ops.intervals import union
from deepscope.dashboard.timeline.answers import TrackWindow, Window
from deepscope.dashboard.timeline.columns import TimelineColumns
from deepscope.dashboard.timeline.counters import bins_for, counter_window, edges_of
from deepscope.dashboard.timeline.levels import TOP, LevelEntries, dominant, ranges, resolution_of, shown
from deepscope.dashboard.timeline.names import asked_tracks, shown_name, stretch_of
from deepscope.errors import OptionError
from deepscope.trace.arrays import distinct_places
from deepscope.trace.model import Int64

MOST_PIXELS = 4096
"""A wider window is answered as one of this width."""
MOST_SLICES = 5_000
"""Where more would be shown, more of them are joined."""
_WIDTH = 2
"""Pixels: what is narrower is joined with its neighbours."""


class _Drawn(NamedTuple):
    """What is drawn, by lane and start; arrays of shape (s,)."""

    lane: Int64
    start: Int64
    end: Int64
    label: Int64
    place: Int64
    slice: Int64
    """-1 for joined ones."""
    slices: Int64
    """How many each stands for."""
    busy: Int64


def window_of(
    columns: TimelineColumns, begin: float, end: float, pixels: int, tracks: Collection[int] | None = None
) -> Window:
    """What a window shows on some tracks (None: all), for a screen so many pixels wide.

    Raises:
        OptionError: the window has no begin or end or no width, or there is no such track.
    """
    begin_ns, end_ns = stretch_of(begin, end)
    if isinstance(pixels, bool) or not isinstance(pixels, int) or pixels < 1:
        raise OptionError("pixels", pixels, "no width; it takes a whole number of pixels from 1 on")
    width = min(pixels, MOST_PIXELS)
    chosen = asked_tracks(columns, tracks)
    level = max(_WIDTH * (end_ns - begin_ns) // width, 1).bit_length()
    lanes = ranges(columns.track_lane[chosen], columns.track_lane[chosen + 1])
    found = shown(columns.levels, lanes, begin_ns, end_ns, level=min(level, TOP - 1), most=MOST_SLICES)
    drawn = _drawn(columns, found, begin_ns, end_ns)
    labels, name = distinct_places(drawn.label)
    counters = range(len(columns.counters))
    edges = edges_of(begin_ns, end_ns, bins_for(len(counters), width))
    return Window(
        begin_ns=begin_ns,
        end_ns=end_ns,
        resolution_ns=resolution_of(found.level),
        tracks=_by_track(columns, drawn, name, chosen),
        counters=[counter_window(columns, one, edges) for one in counters],
        names=[shown_name(columns.labels, label) for label in labels.tolist()],
    )


def _by_track(columns: TimelineColumns, drawn: _Drawn, name: Int64, tracks: Int64) -> list[TrackWindow]:
    lanes = columns.track_lane
    low, high = np.searchsorted(drawn.lane, lanes[tracks]), np.searchsorted(drawn.lane, lanes[tracks + 1])
    kind = columns.labels.kind[drawn.label] if len(drawn.label) else drawn.label
    found = []
    for track, first, last in zip(tracks.tolist(), low.tolist(), high.tolist(), strict=True):
        part = slice(first, last)
        found.append(
            TrackWindow(
                id=track,
                start=drawn.start[part].tolist(),
                end=drawn.end[part].tolist(),
                row=(drawn.lane[part] - lanes[track]).tolist(),
                name=name[part].tolist(),
                kind=kind[part].tolist(),
                place=drawn.place[part].tolist(),
                slice=drawn.slice[part].tolist(),
                count=drawn.slices[part].tolist(),
                busy=drawn.busy[part].tolist(),
            )
        )
    return found


def _drawn(columns: TimelineColumns, found: LevelEntries, begin: int, end: int) -> _Drawn:
    """The entries of a window with what they are. Of groups that go beyond it only the slices in it count."""
    slices, levels = columns.slices, columns.levels
    joined = np.flatnonzero(found.ref < 0)
    group = -1 - found.ref[joined]
    one = np.where(found.ref < 0, 0, found.ref)
    label, place = (column[one].astype(np.int64) for column in (slices.label, slices.place))
    number, count, busy = found.ref.copy(), np.ones(len(one), np.int64), found.end - found.start
    number[joined] = -1
    label[joined], place[joined] = levels.label[group], levels.place[group]
    count[joined], busy[joined] = levels.count[group], levels.busy[group]
    few = np.flatnonzero(levels.label[group] < 0)
    if len(few):
        first, several = levels.first[group[few]].astype(np.int64), levels.count[group[few]]
        of = np.repeat(np.arange(len(few)), several)
        label[joined[few]], place[joined[few]] = _dominant(columns, ranges(first, first + several), of, len(few))
    drawn = _Drawn(found.lane, found.start, found.end, label, place, number, count, busy)
    return _trimmed(columns, drawn, joined, group, begin=begin, end=end)


def _trimmed(columns: TimelineColumns, drawn: _Drawn, joined: Int64, group: Int64, *, begin: int, end: int) -> _Drawn:
    """The same where groups (rows of `drawn`, with their numbers) go beyond the window: what of them lies in it."""
    slices, levels = columns.slices, columns.levels
    # What has no length and stands at the window's end is not in it, though it lies not beyond.
    beyond = (drawn.start[joined] < begin) | (drawn.end[joined] >= end)
    for row, one in zip(joined[beyond].tolist(), group[beyond].tolist(), strict=True):
        first = int(levels.first[one])
        part = slice(first, first + int(levels.count[one]))
        is_in = (slices.start[part] < end) & (np.maximum(slices.end[part], slices.start[part] + 1) > begin)
        inside = first + np.flatnonzero(is_in)
        drawn.slices[row] = len(inside)
        if not len(inside):
            continue
        drawn.start[row], drawn.end[row] = slices.start[inside[0]], slices.end[inside].max()
        drawn.slice[row] = inside[0] if len(inside) == 1 else -1
        drawn.busy[row] = union(slices.start[inside], slices.end[inside]).total_ns
        label, place = _dominant(columns, inside, np.zeros(len(inside), np.int64), 1)
        drawn.label[row], drawn.place[row] = label[0], place[0]
    kept = drawn.slices > 0
    return drawn if kept.all() else _Drawn(*(column[kept] for column in drawn))


def _dominant(columns: TimelineColumns, rows: Int64, group: Int64, groups: int) -> tuple[Int64, Int64]:
    """Label and place with the most time among some slices, by group; `rows` stand by group."""
    slices = columns.slices
    label, place = slices.label[rows].astype(np.int64), slices.place[rows].astype(np.int64)
    order = np.lexsort((place, label, group))
    label, place, group = label[order], place[order], group[order]
    time = (slices.end[rows] - slices.start[rows])[order]
    same = (group[1:] == group[:-1]) & (label[1:] == label[:-1]) & (place[1:] == place[:-1])
    begins = np.flatnonzero(np.append(True, ~same))
    return dominant(group[begins], label[begins], place[begins], np.add.reduceat(time, begins), groups)

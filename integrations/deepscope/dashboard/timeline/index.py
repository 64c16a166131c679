"""The timeline of one trace, ready for questions: made, or taken from what was kept; what a window of it shows."""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property
from typing import NamedTuple

import msgspec
import numpy as np

from deepscope.analysis.array_ops.intervals import union
from deepscope.dashboard.timeline.answers import (
    Durations,
    Matches,
    Selection,
    SliceDetails,
    SliceKind,
    Timeline,
    TrackWindow,
    Window,
)
from deepscope.dashboard.timeline.columns import (
    KIND_NUMBER,
    KINDS,
    WORK_KINDS,
    TimelineColumns,
    asked_tracks,
    kind_numbers,
    shown_name,
    stretch_of,
)
from deepscope.dashboard.timeline.counters import bins_for, counter_head, counter_window, edges_of
from deepscope.dashboard.timeline.detail_levels import TOP, LevelEntries, dominant, ranges, resolution_of, shown_entries
from deepscope.dashboard.timeline.details import details_of
from deepscope.dashboard.timeline.selection import NameIndex, at_line, durations_of, search, selection_of
from deepscope.errors import OptionError, TraceError
from deepscope.processes import MessageError, ProcessEndedError, Progress
from deepscope.store.cache import can_keep, load_columns, save_columns
from deepscope.store.files import TraceFile
from deepscope.store.single_trace import ColumnsRequest, collect_parsed, keep_parsed, open_attribution
from deepscope.store.worker_process import worker
from deepscope.trace.arrays import distinct_places
from deepscope.trace.kineto.source import likely_json_bytes
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


class TimelineIndex:
    """Answers questions about a timeline; several threads may ask at once.

    Raises:
        OptionError: (each question) what is asked for is not there; the message says what there is.
    """

    def __init__(self, columns: TimelineColumns) -> None:
        self.columns = columns

    def head(self) -> Timeline:
        """What there is to see."""
        columns = self.columns
        work_begin, work_end = work_of(columns)
        return Timeline(
            end_ns=columns.end_ns,
            work_begin_ns=work_begin,
            work_end_ns=work_end,
            begin_epoch_ns=columns.begin_epoch_ns,
            tracks=columns.tracks,
            counters=[counter_head(number, one) for number, one in enumerate(columns.counters)],
            kinds=list(KINDS),
            places=columns.places,
            slices=len(columns.slices),
        )

    def window(self, begin_ns: int, end_ns: int, pixels: int, tracks: Collection[int] | None = None) -> Window:
        """What a stretch of time shows on some tracks (None: all) of a screen so many pixels wide."""
        begin_ns, end_ns = stretch_of(begin_ns, end_ns)
        if pixels < 1:
            raise OptionError("pixels", pixels, "no width; it takes a whole number of pixels from 1 on")
        width = min(pixels, MOST_PIXELS)
        chosen = asked_tracks(self.columns, tracks)
        level = max(_WIDTH * (end_ns - begin_ns) // width, 1).bit_length()
        lanes = ranges(self.columns.track_lane[chosen], self.columns.track_lane[chosen + 1])
        found = shown_entries(self.columns.levels, lanes, begin_ns, end_ns, level=min(level, TOP - 1), most=MOST_SLICES)
        drawn = _drawn(self.columns, found, begin_ns, end_ns)
        labels, name = distinct_places(drawn.label)
        edges = edges_of(begin_ns, end_ns, bins_for(len(self.columns.counters), width))
        return Window(
            begin_ns=begin_ns,
            end_ns=end_ns,
            resolution_ns=resolution_of(found.level),
            tracks=_by_track(self.columns, drawn, name, chosen),
            counters=[counter_window(self.columns, one, edges) for one in range(len(self.columns.counters))],
            names=[shown_name(self.columns.labels, label) for label in labels.tolist()],
        )

    def details(self, slice_: int) -> SliceDetails:
        """All that is known of a slice."""
        return details_of(self.columns, slice_)

    def selection(self, begin_ns: int, end_ns: int, tracks: Collection[int] | None = None) -> Selection:
        """The sums of a stretch of time over some tracks (None: all)."""
        return selection_of(self.columns, begin_ns, end_ns, tracks)

    def search(self, text: str, *, from_ns: int = 0, limit: int = 100, kinds: Collection[str] | None = None) -> Matches:
        """The slices of some kinds (None: all) whose name holds a text, whatever its case."""
        return search(self.columns, self._names, text, from_ns=from_ns, limit=limit, kinds=kinds)

    def at_line(self, file: str, line: int, *, from_ns: int = 0, limit: int = 100) -> Matches:
        """The slices that belong to a line of code; `file` as recorded."""
        return at_line(self.columns, file, line, from_ns=from_ns, limit=limit)

    def durations(self, name: str, kind: SliceKind) -> Durations:
        """How long the slices of a kind are that have a name."""
        return durations_of(self.columns, self._names, name, kind)

    @cached_property
    def _names(self) -> NameIndex:
        return NameIndex(self.columns)


_NO_WORK: tuple[SliceKind, ...] = ("span", "other", "phase", "step")


def work_of(columns: TimelineColumns) -> tuple[int, int]:
    """Begin and end of the steps and the device's work; without steps of all that is no span of the profiler's.

    The whole where there is nothing of the kind.
    """
    if not len(columns.slices):
        return 0, columns.end_ns
    kind = columns.labels.kind[columns.slices.label]
    is_step = kind == KIND_NUMBER["step"]
    chosen = (
        is_step | np.isin(kind, kind_numbers(WORK_KINDS)) if is_step.any() else ~np.isin(kind, kind_numbers(_NO_WORK))
    )
    if not chosen.any():
        return 0, columns.end_ns
    return int(columns.slices.start[chosen].min()), int(columns.slices.end[chosen].max())


APART_BYTES = 32 << 20
"""Of JSON: a larger trace is read in a process of its own, so that its memory is free again and nobody waits for the
interpreter meanwhile."""


def open_timeline(
    file: TraceFile,
    progress: Progress | None = None,
    *,
    partial: bool = False,
    cache: bool = True,
) -> TimelineIndex:
    """The timeline of one trace file.

    Args:
        file: a trace as its folder lists it.
        partial: of a trace that ends early, read what is whole.
        cache: keep the timeline in the user's cache folder and take it from there.
        progress: called with bytes done and bytes in all.

    Raises:
        TraceError: as `load_profile`.
    """
    cache = cache and file.has_version
    kept = load_columns("timeline", file, TimelineColumns, partial=partial) if cache else None
    if kept is None and cache and likely_json_bytes(file.path, file.size_bytes) >= APART_BYTES and can_keep():
        kept = _made_apart(file, partial=partial, progress=progress)
    if kept is None:
        kept = make_timeline(file, partial=partial, cache=cache, progress=progress)
    elif progress is not None:
        progress(file.size_bytes, file.size_bytes)
    return TimelineIndex(kept)


def make_timeline(
    file: TraceFile, *, partial: bool, cache: bool = True, progress: Progress | None = None
) -> TimelineColumns:
    """Makes the timeline of a trace in this process and keeps it, and what was parsed for it, where `cache` is set.

    Raises:
        TraceError: as `load_profile`.
    """
    with collect_parsed() as parsed:
        of = open_attribution(file, partial=partial, cache=cache, progress=progress)
    from deepscope.dashboard.timeline.build import build_timeline  # behind the start of helping processes

    columns = build_timeline(of)
    if cache:
        save_columns("timeline", file, columns, partial=partial)
        for one in parsed:
            keep_parsed(one)
    return columns


def _made_apart(file: TraceFile, *, partial: bool, progress: Progress | None) -> TimelineColumns | None:
    """The timeline that another process has made and kept; None where there is no process, or it could not be kept."""
    try:
        with worker() as process:
            if process is None:
                return None
            process.ask(msgspec.msgpack.encode(ColumnsRequest(file, "timeline", partial)), progress)
    except UnicodeEncodeError:  # a path that is no text
        return None
    except (ProcessEndedError, MessageError, MemoryError) as error:
        words = str(error) if isinstance(error, MessageError) else "not enough memory to read it"
        raise TraceError(f"{file.path}: {words}") from error
    return load_columns("timeline", file, TimelineColumns, partial=partial)

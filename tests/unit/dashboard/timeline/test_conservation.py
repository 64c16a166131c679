"""Nothing of a recorded trace is lost or counted twice, at any level of detail."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path

import msgspec
import numpy as np
import pytest

from deepscope.analysis.build import build_profile
from deepscope.analysis.ownership.attribution import attribute
from deepscope.dashboard.timeline.answers import Window
from deepscope.dashboard.timeline.build import build_timeline
from deepscope.dashboard.timeline.columns import KINDS
from deepscope.dashboard.timeline.index import TimelineIndex
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Trace
from deepscope.trace.read import read_trace
from recorded_traces import each_trace

FAMILIES = {
    "annotations": ((Kind.ANNOTATION,), ("annotation", "step")),
    "code": ((Kind.PYTHON_FUNCTION, Kind.LINE_SCOPE, Kind.MODULE_SCOPE), ("frame", "line", "library", "module")),
    "operators": ((Kind.OPERATOR,), ("operator",)),
    "calls": ((Kind.RUNTIME,), ("runtime",)),
    "kernels": ((Kind.KERNEL,), ("kernel", "collective")),
    "copies": ((Kind.MEMCPY, Kind.MEMSET), ("copy",)),
    "spans": ((Kind.DEVICE_SPAN,), ("span",)),
    "others": ((Kind.OTHER,), ("other",)),
}
OF_EVENT = {kind: family for family, (kinds, _) in FAMILIES.items() for kind in kinds}
OF_SLICE = {word: family for family, (_, words) in FAMILIES.items() for word in words}


def check_slices(trace: Trace, index: TimelineIndex) -> None:
    """Each event is one slice, of its time and of its kind; and slices of a row do not overlap."""
    columns = index.columns
    words = np.array(KINDS)[columns.labels.kind[columns.slices.label]]
    events = list(zip(trace.events.start_ns.tolist(), trace.events.end_ns.tolist(), trace.events.kind, strict=True))
    begin = int(columns.begin_epoch_ns) - trace.unix_base_ns
    told = Counter((start - begin, end - begin, OF_EVENT[Kind(kind)]) for start, end, kind in events)
    slices = zip(columns.slices.start.tolist(), columns.slices.end.tolist(), words.tolist(), strict=True)
    seen = Counter((start, end, OF_SLICE[word]) for start, end, word in slices if word != "phase")
    assert seen == told
    assert int(columns.slices.start.min(initial=0)) >= 0
    for first, last in zip(columns.lane_slice.tolist(), columns.lane_slice.tolist()[1:], strict=False):
        assert last > first, "an empty row"
        assert (columns.slices.end[first : last - 1] <= columns.slices.start[first + 1 : last]).all()


def covered(window: Window) -> dict[tuple[int, int], int]:
    """By track and row, the time that slices cover."""
    found: Counter[tuple[int, int]] = Counter()
    for track in window.tracks:
        for row, busy in zip(track.row, track.busy, strict=True):
            found[track.id, row] += busy
    return found


def check_windows(index: TimelineIndex) -> None:
    """All slices are in every window of the whole, whatever its resolution, and cover the same time."""
    head = index.head()
    assert sum(track.slices for track in head.tracks) == head.slices
    by_row: Counter[tuple[int, int]] = Counter()
    columns = index.columns
    for track in range(len(head.tracks)):
        lanes = columns.lane_slice[columns.track_lane[track] : columns.track_lane[track + 1] + 1].tolist()
        for row, (first, last) in enumerate(pairwise(lanes)):
            by_row[track, row] = int((columns.slices.end[first:last] - columns.slices.start[first:last]).sum())
    for pixels in (1, 30, 400, 2000, 10**9):
        window = index.window(0, head.end_ns + 1, pixels)
        assert len(msgspec.json.encode(window)) < 400_000
        assert covered(window) == by_row
        for track, told in zip(head.tracks, window.tracks, strict=True):
            assert track.id == told.id
            assert sum(told.count) == track.slices
            assert all(row < track.rows for row in told.row)
            assert all((one >= 0) == (count == 1) for one, count in zip(told.slice, told.count, strict=True))
            assert all(
                0 <= begin <= end and 0 <= busy <= end - begin
                for begin, end, busy in zip(told.start, told.end, told.busy, strict=True)
            )


def check_lines(trace: Trace, index: TimelineIndex) -> None:
    """The work of the whole by line is that of the Profile, and so are names."""
    profile = build_profile(trace)
    head = index.head()
    whole = index.selection(0, head.end_ns + 1)
    lines = {(one.file, one.line): one.self_device_ns for one in profile.lines if one.self_device_ns}
    told = {
        (head.places[one.place].file, head.places[one.place].line) if one.place >= 0 else None: one.time_ns
        for one in whole.lines
        if one.time_ns
    }
    nothing = told.pop(None, 0)
    assert told == lines
    assert nothing == profile.no_line.self_device_ns
    if profile.metric == "device":
        assert sum(one.time_ns for one in whole.kernels) == sum(one.device_ns for one in profile.kernels)
        assert sum(one.count for one in whole.kernels) == sum(one.calls for one in profile.kernels)
    assert sum(one.time_ns for one in whole.operators) == sum(one.self_cpu_ns for one in profile.operators)


@pytest.mark.parametrize("path", each_trace())
def test_each_recorded_trace_is_shown_as_a_whole(path: Path) -> None:
    trace = read_trace(str(path))
    index = TimelineIndex(build_timeline(attribute(trace)))
    check_slices(trace, index)
    check_windows(index)
    check_lines(trace, index)

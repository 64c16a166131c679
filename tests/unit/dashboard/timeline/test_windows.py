"""What windows show, against a plain rendering of the same slices one by one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from itertools import combinations, groupby

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from deepscope.dashboard.timeline.answers import TrackWindow, Window
from deepscope.dashboard.timeline.columns import KINDS, shown_name
from deepscope.dashboard.timeline.index import TimelineIndex
from deepscope.dashboard.timeline.tracks import rows_of
from deepscope.errors import OptionError
from random_traces import random_trace
from trace_builder import TraceBuilder

Open = Callable[[TraceBuilder], TimelineIndex]
Slice = tuple[int, int, int, int, int]
"""Start, end, number, label, place."""


def slices_by_row(index: TimelineIndex) -> dict[tuple[int, int], list[Slice]]:
    """The slices of each track and row in order."""
    columns, found = index.columns, {}
    lanes = columns.lane_slice.tolist()
    for track in range(len(columns.tracks)):
        first_lane = int(columns.track_lane[track])
        for lane in range(first_lane, int(columns.track_lane[track + 1])):
            found[track, lane - first_lane] = [
                (
                    int(columns.slices.start[one]),
                    int(columns.slices.end[one]),
                    one,
                    int(columns.slices.label[one]),
                    int(columns.slices.place[one]),
                )
                for one in range(lanes[lane], lanes[lane + 1])
            ]
    return found


def rendered(row: list[Slice], begin: int, end: int, resolution: int) -> list[list[Slice]]:
    """What one row shows: neighbours that are short and start in the same cell together, what lies outside left out."""

    def cell(one: Slice) -> object:
        start, stop, number, _, _ = one
        return start // resolution if stop - start < resolution else ("alone", number)

    found = []
    for _, members in groupby(row, cell):
        inside = [one for one in members if one[0] < end and max(one[1], one[0] + 1) > begin]
        if inside:
            found.append(inside)
    return found


def check(index: TimelineIndex, window: Window, names: list[str]) -> None:
    rows, resolution = slices_by_row(index), window.resolution_ns
    for track in window.tracks:
        shown = defaultdict(list)
        for place, row in enumerate(track.row):
            shown[row].append(place)
        for (number, row), slices in rows.items():
            if number != track.id:
                continue
            expected = rendered(slices, window.begin_ns, window.end_ns, resolution)
            assert len(expected) == len(shown[row])
            for members, place in zip(expected, shown[row], strict=True):
                check_one(index, window, track, place, members)


def check_one(index: TimelineIndex, window: Window, track: TrackWindow, place: int, members: list[Slice]) -> None:
    assert track.start[place] == members[0][0]
    assert track.end[place] == max(one[1] for one in members)
    assert track.count[place] == len(members)
    assert track.busy[place] == sum(one[1] - one[0] for one in members)
    assert track.slice[place] == (members[0][2] if len(members) == 1 else -1)
    by_label: dict[int, int] = defaultdict(int)
    by_place: dict[tuple[int, int], int] = defaultdict(int)
    for start, end, _, label, line in members:
        by_label[label] += end - start
        by_place[label, line] += end - start
    labels = index.columns.labels
    candidates = [label for label, time in by_label.items() if time == max(by_label.values())]
    fitting = [
        label
        for label in candidates
        if labels.kind[label] == track.kind[place] and labels.recorded[label] == window.names[track.name[place]]
    ]
    assert fitting, "not the name with the most time"
    most = {label: max(time for (one, _), time in by_place.items() if one == label) for label in fitting}
    assert any(by_place.get((label, track.place[place])) == most[label] for label in fitting)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 10_000),
    begin=st.integers(-3_000, 22_000),
    length=st.integers(0, 30_000),
    pixels=st.integers(1, 4_000),
)
@example(seed=936, begin=1831, length=8703, pixels=68)  # a slice without length at the window's very end
def test_any_window_shows_what_a_plain_rendering_shows(
    timeline_of: Open, seed: int, begin: int, length: int, pixels: int
) -> None:
    index = timeline_of(random_trace(seed, libraries=seed % 2 == 0))
    # Names as recorded, so that they can be compared.
    window = index.window(begin, begin + length, pixels)
    labels = index.columns.labels
    plain: dict[str, str] = {}
    for label in range(len(labels.kind)):
        plain.setdefault(shown_name(labels, label), labels.recorded[label])
    window.names = [plain[name] for name in window.names]
    check(index, window, window.names)
    # Cells are as wide as two pixels at most, and no narrower than one.
    target = max(2 * max(length, 1) // pixels, 1)
    assert window.resolution_ns <= target < 2 * window.resolution_ns


def test_a_slice_is_below_what_is_open_and_leaves_no_row_empty(timeline_of: Open) -> None:
    builder = TraceBuilder()
    builder.op("outer", 0, 1_000).op("inner", 100, 300).op("outlasting", 300, 900).op("later", 1_050, 50)
    index = timeline_of(builder)
    columns = index.columns
    found = {
        index.details(one).name: (index.details(one).row, index.details(one).self_ns)
        for one in range(len(columns.slices))
    }
    # "outlasting" begins in "inner" and ends after all: it lies in what is open, and "later" has a free row beside it.
    assert found == {"outer": (0, 100), "inner": (1, 200), "outlasting": (2, 850), "later": (0, 50)}


def test_chains_of_overlaps_take_two_rows(timeline_of: Open) -> None:
    builder = TraceBuilder()
    builder.runtime("cudaLaunchKernel", 0, 1)
    for number in range(40):
        builder.orphan("gemm", 10 + 100 * number, 101, correlation=1)
    (stream,) = (track for track in timeline_of(builder).head().tracks if track.kind == "stream")
    assert (stream.rows, stream.slices) == (2, 40)


def test_joined_slices_say_how_many_and_how_long(timeline_of: Open) -> None:
    builder = TraceBuilder()
    for number in range(1_000):
        builder.op("aten::mm" if number % 3 else "aten::add", 1_000_000 + 10 * number, 4)
    index = timeline_of(builder)
    window = index.window(0, 10_000, 10)
    (track,) = (one for one in window.tracks if one.start)
    assert window.resolution_ns == 1024
    assert sum(track.count) == 1_000
    assert sum(track.busy) == 4_000
    assert {window.names[name] for name in track.name} == {"aten::mm"}
    assert set(track.slice) == {-1}
    near = index.window(0, 100, 100)
    assert [one for track in near.tracks for one in track.count] == [1] * 10


@pytest.mark.parametrize(("begin", "end", "pixels"), [(10, 5, 100), (0, 5, 0), (0, 5, -3)])
def test_windows_that_cannot_be_are_refused(timeline_of: Open, begin: int, end: int, pixels: int) -> None:
    index = timeline_of(TraceBuilder().op("aten::mm", 0, 10))
    with pytest.raises(OptionError):
        index.window(begin, end, pixels)


def test_windows_beside_the_trace_and_of_no_length_are_answered(timeline_of: Open) -> None:
    index = timeline_of(TraceBuilder().op("aten::mm", 0, 10))
    for begin, end in ((-100, -50), (50, 100), (-(10**30), 10**30), (3, 3)):
        window = index.window(begin, end, 10**9)
        inside = begin < 10 and end > 0
        assert sum(sum(track.count) for track in window.tracks) == (1 if inside else 0)
    with pytest.raises(OptionError, match="no such track"):
        index.window(0, 5, 10, [7])
    assert index.window(0, 5, 10, []).tracks == []


def test_the_number_of_slices_is_bounded_by_a_coarser_resolution(timeline_of: Open) -> None:
    builder = TraceBuilder()
    for number in range(12_000):
        builder.op("aten::mm", 100 * number, 60)
    index = timeline_of(builder)
    window = index.window(0, 1_200_000, 4_000)
    shown = sum(len(track.start) for track in window.tracks)
    assert shown <= 5_000
    assert sum(sum(track.count) for track in window.tracks) == 12_000
    assert set(KINDS) >= {"operator"}


@settings(max_examples=150, deadline=None)
@given(
    spans=st.lists(
        st.tuples(st.integers(0, 60), st.integers(0, 25), st.integers(0, 2), st.booleans()), min_size=1, max_size=60
    ),
    scale=st.sampled_from([1, 1 << 55]),
)
def test_no_two_slices_of_a_row_overlap_and_each_stands_below_what_it_is_in(
    spans: list[tuple[int, int, int, bool]], scale: int
) -> None:
    start = np.array([begin * scale for begin, _, _, _ in spans], np.int64)
    end = np.array([(begin + length) * scale for begin, length, _, _ in spans], np.int64)
    group = np.array([group for _, _, group, _ in spans], np.int64)
    tight = np.full(len(spans), spans[0][3])
    row, parent = rows_of(start, end, group, np.zeros(len(spans), np.int64), side_by_side=tight)
    places = list(zip(start.tolist(), end.tolist(), group.tolist(), row.tolist(), strict=True))
    for one, other in combinations(places, 2):
        if one[2:] == other[2:]:
            assert one[1] <= other[0] or other[1] <= one[0], (one, other)
    for number, above in enumerate(parent.tolist()):
        if above >= 0:
            assert start[above] <= start[number]
            assert end[above] > start[number]
            outlasts = parent[above] >= 0 and end[above] > end[parent[above]]
            assert tight[0] or outlasts or row[above] < row[number]
    if tight[0]:
        # No more rows than are open at once.
        for number in set(group.tolist()):
            real = [(begin, stop, place) for begin, stop, of, place in places if of == number and stop > begin]
            most = max((sum(begin <= at < stop for begin, stop, _ in real) for at, _, _ in real), default=0)
            assert max((place for _, _, place in real), default=-1) < most or not real


def test_calls_behind_what_outlasted_its_caller_leave_no_row_empty() -> None:
    """An annotation that begins deep in a call and ends behind it holds its own row, and no other."""
    spans = [(0, 10), (1, 9), (2, 8), (3, 100), (20, 30), (21, 29), (22, 28)]
    start, end = (np.array(ends, np.int64) for ends in zip(*spans, strict=True))
    same = np.zeros(len(spans), np.int64)
    row, _ = rows_of(start, end, same, same, side_by_side=same > 0)
    assert row.tolist() == [0, 1, 2, 3, 0, 1, 2]

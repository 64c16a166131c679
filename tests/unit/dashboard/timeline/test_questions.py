"""Selections, search, links, details, durations and counters, against plain answers worked out slice by slice."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deepscope.dashboard.timeline.columns import KINDS, shown_name
from deepscope.dashboard.timeline.counters import MOST_COUNTERS
from deepscope.dashboard.timeline.index import TimelineIndex
from deepscope.errors import OptionError
from random_traces import random_trace
from trace_builder import TraceBuilder

Open = Callable[[TraceBuilder], TimelineIndex]
random_traces = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
seeds = st.integers(0, 10_000)
instants = st.integers(-2_000, 22_000)
MAIN = 101


def plain(index: TimelineIndex) -> list[tuple[int, int, str, str, int, int]]:
    """Start, end, kind, name as shown, place and track of each slice."""
    columns = index.columns
    tracks = [0] * len(columns.slices)
    for track in range(len(columns.tracks)):
        first, last = (int(columns.lane_slice[columns.track_lane[one]]) for one in (track, track + 1))
        tracks[first:last] = [track] * (last - first)
    slices, labels = columns.slices, columns.labels
    return [
        (
            int(slices.start[one]),
            int(slices.end[one]),
            KINDS[labels.kind[slices.label[one]]],
            shown_name(labels, int(slices.label[one])),
            int(slices.place[one]),
            tracks[one],
        )
        for one in range(len(slices))
    ]


def clipped(start: int, end: int, begin: int, stop: int) -> int:
    return max(min(end, stop) - max(start, begin), 0)


def union_ns(spans: list[tuple[int, int]], begin: int, stop: int) -> int:
    return len({instant for start, end in spans for instant in range(max(start, begin), min(end, stop))})


@random_traces
@given(seed=seeds, bounds=st.tuples(instants, instants), side=st.integers(0, 2))
def test_any_selection_is_the_sum_of_what_lies_in_it(
    timeline_of: Open, seed: int, bounds: tuple[int, int], side: int
) -> None:
    index = timeline_of(random_trace(seed))
    begin, end = min(bounds), max(max(bounds), min(bounds) + 1)
    tracks = None if side == 0 else [one.id for one in index.head().tracks if one.id % 2 == side - 1]
    found = index.selection(begin, end, tracks)
    slices = [one for one in plain(index) if tracks is None or one[5] in tracks]
    work = [one for one in slices if one[2] in {"kernel", "copy", "collective"}]
    lines: Counter[int] = Counter()
    names: Counter[str] = Counter()
    for start, stop, _, name, place, _ in work:
        lines[place] += clipped(start, stop, begin, end)
        names[name] += clipped(start, stop, begin, end)
    assert {one.place: one.time_ns for one in found.lines if one.time_ns} == +lines
    assert {one.name: one.time_ns for one in found.kernels if one.time_ns} == +names
    assert sorted((one.time_ns for one in found.lines), reverse=True) == [one.time_ns for one in found.lines]
    for busy in found.busy:
        kinds = {"steps": {"step"}, "thread": {"operator", "runtime"}}.get(
            index.head().tracks[busy.track].kind, {"kernel", "copy", "collective"}
        )
        spans = [(one[0], one[1]) for one in slices if one[5] == busy.track and one[2] in kinds]
        assert busy.busy_ns == union_ns(spans, begin, end)
    everything = plain(index)
    streams = {one.id: one.device for one in index.head().tracks if one.kind == "stream"}
    for device, idle in zip(found.devices, found.idle_ns, strict=True):
        spans = [
            (one[0], one[1])
            for one in everything
            if streams.get(one[5]) == device and one[2] in {"kernel", "copy", "collective"}
        ]
        assert idle == end - begin - union_ns(spans, begin, end)


@random_traces
@given(seed=seeds, begin=instants, length=st.integers(1, 20_000), bins=st.integers(1, 300))
def test_any_counter_shows_the_largest_value_of_each_stretch(
    timeline_of: Open, seed: int, begin: int, length: int, bins: int
) -> None:
    index = timeline_of(random_trace(seed))
    window = index.window(begin, begin + length, bins)
    for told, counter in zip(window.counters, index.columns.counters, strict=True):
        points = list(zip(told.at, told.value, strict=True))
        assert [at for at, _ in points] == sorted(set(told.at))
        if counter.busy_of >= 0:
            assert all(0 <= value <= 100 for value in told.value)
            continue
        steps = list(zip(counter.at.tolist(), counter.value.tolist(), strict=True))
        inside = [value for at, value in steps if begin <= at < begin + length]
        before = [value for at, value in steps if at < begin][-1:]
        expected = max([*inside, *(before if not inside or steps[0][0] < begin else [])], default=None)
        if expected is None:
            assert points == []
            continue
        values = set(told.value)
        assert max(told.value) in {expected, max(inside, default=expected)}
        assert values <= {*inside, *before}
        # What it is at the end is what it was last set to, within a stretch.
        width = -(-length // min(max(bins, 16), length))
        recent = [value for at, value in steps if begin + length - 2 * width <= at < begin + length]
        recent += [value for at, value in steps if at < begin + length - 2 * width][-1:]
        last = [value for at, value in steps if at < begin + length][-1]
        assert points[-1][1] in {last, *recent}


def test_utilisation_is_the_share_of_each_stretch(timeline_of: Open) -> None:
    builder = TraceBuilder().kernel("gemm", 0, 1_000, 500).kernel("gemm", 10, 1_800, 700)
    index = timeline_of(builder)
    (told,) = (
        one for one, head in zip(index.window(0, 16_000, 16).counters, index.head().counters, strict=True)
        if head.unit == "percent"
    )  # fmt: skip
    assert list(zip(told.at, told.value, strict=True)) == [(0, 0), (1_000, 70.0), (2_000, 50.0), (3_000, 0)]
    (change, *_) = index.selection(1_000, 2_000).counters
    assert change.mean == 70.0


def test_a_queue_holds_what_was_launched_and_has_not_ended(timeline_of: Open) -> None:
    builder = TraceBuilder()
    for number in range(3):
        builder.kernel("gemm", 100 * number, 1_000 + 100 * number, 100)
    index = timeline_of(builder)
    (queue,) = (one for one in index.columns.counters if one.title == "device 0 queue")
    points = list(zip(queue.at.tolist(), queue.value.tolist(), strict=True))
    assert points == [(0, 1), (100, 2), (200, 3), (1_100, 2), (1_200, 1), (1_300, 0)]


@random_traces
@given(seed=seeds, text=st.sampled_from(["mm", "MM", "train.py:3", "gemm", "l", "nowhere"]), from_ns=instants,
       limit=st.integers(1, 40))  # fmt: skip
def test_any_search_finds_what_bears_the_text(
    timeline_of: Open, seed: int, text: str, from_ns: int, limit: int
) -> None:
    index = timeline_of(random_trace(seed, libraries=True))
    columns = index.columns
    wanted = [
        number
        for number, one in enumerate(plain(index))
        if text.lower() in one[3].lower()
        or text.lower() in columns.labels.recorded[columns.slices.label[number]].lower()
    ]
    found = index.search(text, from_ns=from_ns, limit=limit)
    starts = columns.slices.start
    ordered = sorted(wanted, key=lambda one: (starts[one] < from_ns, starts[one], one))
    assert [one.slice for one in found.found] == ordered[:limit]
    assert found.count == len(wanted)
    assert found.time_ns == sum(int(columns.slices.end[one] - starts[one]) for one in wanted)
    kernels = index.search(text, kinds=["kernel"], limit=1_000)
    assert {index.details(one.slice).kind for one in kernels.found} <= {"kernel"}


def test_a_lines_slices_are_found_and_their_work_with_them(timeline_of: Open) -> None:
    builder = TraceBuilder().line("/job/a.py", 3, "f", 0, 100).kernel("gemm", 10, 200, 50)
    builder.line("/job/a.py", 4, "f", 100, 50).kernel("add", 110, 300, 5)
    index = timeline_of(builder)
    found = index.at_line("/job/a.py", 3)
    assert sorted(index.details(one.slice).kind for one in found.found) == ["kernel", "line", "runtime"]
    assert (found.count, found.time_ns) == (3, 100 + 1 + 50)
    assert index.at_line("/job/a.py", 5).found == index.at_line("/job/b.py", 3).found == []


def named(index: TimelineIndex, name: str) -> int:
    (found,) = (one.slice for one in index.search(name).found if one.name == name)
    return found


def test_links_lead_from_launch_to_work_and_from_work_to_what_waited(timeline_of: Open) -> None:
    builder = TraceBuilder().kernel("gemm", 10, 200, 50).runtime("cudaDeviceSynchronize", 100, 160)
    index = timeline_of(builder)
    launch, work, wait = (named(index, name) for name in ("cudaLaunchKernel", "gemm", "cudaDeviceSynchronize"))
    (started,) = index.details(launch).links
    assert (started.kind, started.from_slice, started.to_slice, started.title) == ("launch", launch, work, "gemm")
    # The timeline begins with its first slice.
    assert (started.from_ns, started.to_ns) == (0, 190)
    into, out = index.details(work).links
    assert (into.from_slice, into.title) == (launch, "cudaLaunchKernel")
    assert (out.kind, out.from_slice, out.to_slice) == ("wait", work, wait)
    assert (out.from_ns, out.to_ns) == (240, 250)
    assert index.head().tracks[out.to_track].kind == "thread"


def test_links_lead_from_forward_to_backward(timeline_of: Open) -> None:
    builder = TraceBuilder().op("aten::mm", 0, 10, sequence=5).backward("MmBackward0", 100, 20, 5)
    builder.flow(0, 100)
    index = timeline_of(builder)
    (link,) = index.details(named(index, "aten::mm")).links
    assert (link.kind, link.from_ns, link.to_ns) == ("backward", 0, 100)
    (back,) = index.details(link.to_slice).links
    assert (back.from_slice, back.to_slice, back.title) == (link.from_slice, link.to_slice, "aten::mm")
    assert "MmBackward0" in link.title


def test_the_links_of_a_replayed_graph_are_bounded(timeline_of: Open) -> None:
    builder = TraceBuilder().runtime("cudaGraphLaunch", 0, 5, correlation=7)
    for number in range(500):
        builder.orphan("gemm", 100 + 10 * number, 5, correlation=7)
    links = timeline_of(builder).details(0).links
    assert len(links) == 100
    assert [one.to_ns for one in links[:2]] == [100, 110]


def test_details_tell_the_lines_around_the_module_and_what_the_trace_tells(timeline_of: Open) -> None:
    builder = TraceBuilder()
    builder.line("/job/a.py", 3, "main", 0, 1_000).module("Linear", "net.fc", 100, 500)
    builder.line("/job/net.py", 8, "Net.forward", 150, 400)
    builder.op("aten::mm", 200, 100, dims=[[64, 128], [128, 32]])
    builder.kernel("gemm", 210, 1_500, 50, grid=[4, 1, 1])
    builder.memcpy("HtoD", 4_000, 320, 1_600, 1_000)
    index = timeline_of(builder)
    places = index.head().places
    found = index.details(named(index, "gemm"))
    assert [(places[one].file, places[one].line) for one in found.stack] == [("/job/net.py", 8), ("/job/a.py", 3)]
    assert places[found.place].title == "net.py:8 Net.forward"
    assert found.module == "net.fc"
    facts = {one.label: one.value for one in found.facts}
    assert (facts["Grid"], facts["From launch to start"], facts["Queued before it"]) == ("[4, 1, 1]", "1.29µs", "0")
    assert (facts["Launched by operator"], facts["Its input shapes"]) == ("aten::mm", "[[64, 128], [128, 32]]")
    operator = {one.label: one.value for one in index.details(named(index, "aten::mm")).facts}
    assert operator["FLOPs"] == f"{2 * 64 * 128 * 32:,}"
    assert operator["Input shapes"] == "[[64, 128], [128, 32]]"
    copy = {one.label: one.value for one in index.details(named(index, "Memcpy HtoD (Pageable -> Device)")).facts}
    assert (copy["Size"], copy["Bandwidth"]) == ("3.91KiB", "4 GB/s")
    with pytest.raises(OptionError, match="no such slice"):
        index.details(10_000)


@random_traces
@given(seed=seeds)
def test_any_names_durations_are_those_of_its_slices(timeline_of: Open, seed: int) -> None:
    index = timeline_of(random_trace(seed))
    by_name = defaultdict(list)
    for start, end, kind, name, _, _ in plain(index):
        by_name[name, kind].append(end - start)
    for (name, kind), lengths in list(by_name.items())[:8]:
        found = index.durations(name, kind)
        ordered = sorted(lengths)
        assert (found.count, found.total_ns) == (len(lengths), sum(lengths))
        assert (found.least_ns, found.largest_ns) == (ordered[0], ordered[-1])
        assert found.p95_ns == ordered[math.ceil(0.95 * len(ordered)) - 1]
        assert found.median_ns == ordered[math.ceil(0.5 * len(ordered)) - 1]
        assert sum(found.counts) == len(lengths)
        assert len(found.edges_ns) == len(found.counts) + 1
        ratios = [b / a for a, b in zip(found.edges_ns, found.edges_ns[1:], strict=False)]
        assert max(ratios) == pytest.approx(min(ratios))
        for low, high, count in zip(found.edges_ns, found.edges_ns[1:], found.counts, strict=False):
            assert count == sum(low <= max(length, 1) < high for length in lengths)
        assert [one.end_ns - one.start_ns for one in found.longest] == ordered[::-1][:10]


def test_what_is_not_there_is_refused_and_told(timeline_of: Open) -> None:
    index = timeline_of(TraceBuilder().op("aten::mm", 0, 10))
    for ask in (
        lambda: index.durations("aten::nothing", "operator"),
        lambda: index.search("mm", kinds=["gemm"]),
        lambda: index.search("mm", limit=0),
        lambda: index.selection(5, 2),
        lambda: index.details(-1),
    ):
        with pytest.raises(OptionError):
            ask()
    assert index.search("").count == index.search("  ").count == 0


def test_without_a_device_lines_have_their_operators_own_time(timeline_of: Open) -> None:
    builder = TraceBuilder().line("/job/a.py", 3, "f", 0, 100).op("aten::linear", 10, 60).op("aten::mm", 20, 40)
    index = timeline_of(builder)
    whole, part = index.selection(0, 200), index.selection(15, 30)
    assert [(one.name, one.time_ns) for one in whole.lines] == [("a.py:3 f", 60)]
    assert {one.name: one.time_ns for one in whole.operators} == {"aten::linear": 20, "aten::mm": 40}
    assert {one.name: one.time_ns for one in part.operators} == {"aten::linear": 5, "aten::mm": 10}
    assert [one.time_ns for one in part.lines] == [15]
    assert (whole.devices, whole.idle_ns, whole.kernels) == ([], [], [])


@random_traces
@given(seed=seeds)
def test_the_work_begins_with_the_steps_and_ends_with_them_or_with_the_devices_work(
    timeline_of: Open, seed: int
) -> None:
    index = timeline_of(random_trace(seed))
    slices = plain(index)
    steps = [one for one in slices if one[2] == "step"]
    device = [one for one in slices if one[2] in {"kernel", "copy", "collective"}]
    rest = [one for one in slices if one[2] not in {"span", "other", "phase", "step"}]
    work = [*steps, *device] if steps else rest
    head = index.head()
    expected = (min(one[0] for one in work), max(one[1] for one in work)) if work else (0, head.end_ns)
    assert (head.work_begin_ns, head.work_end_ns) == expected


def test_many_disks_and_interfaces_leave_room_for_the_gpu(timeline_of: Open) -> None:
    builder = TraceBuilder().step(0, 0, 10_000).op("aten::mm", 0, 10)
    of_disks = {f"disk {what}": [f"nvme{n}n1" for n in range(10)] for what in ("busy", "queue", "read", "written")}
    of_links = {
        f"{kind} {way}": [f"{kind}{n}" for n in range(10)]
        for kind in ("network", "InfiniBand")
        for way in ("received", "sent")
    }
    of_gpu = {f"GPU {what}": ["0"] for what in ("busy", "SM clock", "temperature")}
    names = {"CPU cores": [str(core) for core in range(64)], **of_disks, **of_links, **of_gpu}
    for track, series in names.items():
        for at in (0, 10_000):
            builder.counter(f"DeepScope: {track}", at, **dict.fromkeys(series, 1.0))
    shown = Counter(one.title.partition(":")[0] for one in timeline_of(builder).columns.counters)
    assert (shown["CPU cores"], shown["GPU busy"], shown["GPU SM clock"], shown["GPU temperature"]) == (6, 1, 1, 1)
    assert sum(shown[track] for track in names) <= MOST_COUNTERS

"""Counters of a trace: levels that hold from sample to sample, over the window and by step."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deepscope.analysis.analysis import analyse
from deepscope.analysis.build import build_profile
from deepscope.analysis.ownership.attribution import attribute
from deepscope.analysis.tables.counters import MOST_SERIES, Level
from deepscope.dashboard.pages.steps import counter_charts
from deepscope.records import CounterSeries, Profile
from deepscope.records.merging import RankRecords, merge
from deepscope.report.exports.tensorboard import scalars
from deepscope.trace.format.counters import TRACKS
from deepscope.trace.read import read_trace
from trace_builder import TraceBuilder

US = 1_000


def profile_of(builder: TraceBuilder, folder: Path, **view: Any) -> Profile:
    return build_profile(read_trace(builder.write(folder / "built.json")), **view)


def two_steps() -> TraceBuilder:
    """Steps of 100 and 300 µs; the CPU is at 10 % up to 50 µs, at 50 % up to 200 µs, at 90 % up to the end, 400 µs."""
    builder = TraceBuilder()
    builder.step(4, 0, 100 * US).step(5, 100 * US, 300 * US)
    builder.op("aten::mm", 10 * US, 20 * US)
    for at, value in ((0, 10.0), (50, 50.0), (200, 90.0), (400, 90.0)):
        builder.counter("DeepScope: CPU", at * US, all=value)
    return builder


def test_means_are_weighted_by_time_and_peaks_are_the_largest(tmp_path: Path):
    (row,) = profile_of(two_steps(), tmp_path).counters
    assert (row.counter, row.series, row.unit, row.is_own) == ("CPU", "all", "%", True)
    assert row.mean == pytest.approx((50 * 10 + 150 * 50 + 200 * 90) / 400)
    assert (row.smallest, row.largest) == (10, 90)
    assert (row.samples, row.covered_ns) == (4, 400 * US)


def test_by_step(tmp_path: Path):
    (row,) = profile_of(two_steps(), tmp_path).counters
    assert [(one.block, one.mean, one.smallest, one.largest) for one in row.blocks] == [
        (4, 30, 10, 50),
        (5, pytest.approx((100 * 50 + 200 * 90) / 300, rel=1e-5), 50, 90),
    ]
    # The blocks are the whole.
    covered = sum(one.covered_ns for one in row.blocks)
    assert covered == row.covered_ns
    assert sum(one.mean * one.covered_ns for one in row.blocks) / covered == pytest.approx(row.mean, rel=1e-5)


def test_a_step_alone_is_its_block(tmp_path: Path):
    (row,) = profile_of(two_steps(), tmp_path, step=5).counters
    (block,) = row.blocks
    assert (row.mean, row.smallest, row.largest, row.covered_ns) == (
        block.mean,
        block.smallest,
        block.largest,
        block.covered_ns,
    )


def test_counters_of_others_have_no_unit(tmp_path: Path):
    builder = two_steps().counter("GPU 0 watts", 10 * US, value=3)
    _, other = profile_of(builder, tmp_path).counters
    assert (other.counter, other.series, other.unit, other.is_own) == ("GPU 0 watts", "value", "", False)
    assert (other.mean, other.samples, other.covered_ns, other.blocks) == (3, 1, 0, [])


def test_the_order_is_that_of_the_tracks_and_of_numbers(tmp_path: Path):
    builder = TraceBuilder().op("aten::mm", 0, 5 * US).counter("aaa", 0, x=1)
    builder.counter("DeepScope: CPU cores", 0, **{"10": 1, "2": 1, "0": 1})
    builder.counter("DeepScope: CPU", 0, all=1).counter("DeepScope: not known", 0, x=1)
    listed = [(row.counter, row.series) for row in profile_of(builder, tmp_path).counters]
    cores = [("CPU cores", core) for core in ("0", "2", "10")]
    assert listed == [("CPU", "all"), *cores, ("DeepScope: not known", "x"), ("aaa", "x")]


def test_hundreds_of_cores_leave_room_for_all_other_counters_by_step(tmp_path: Path):
    builder = two_steps().op("aten::mm", 110 * US, 20 * US)
    for at in (0, 400):
        builder.counter("DeepScope: CPU cores", at * US, **{str(core): core % 100 for core in range(256)})
        builder.counter("DeepScope: GPU SM clock", at * US, **{str(device): 1980 for device in range(8)})
        builder.counter("of others", at * US, x=1)
    profile = profile_of(builder, tmp_path)
    told = Counter(row.counter for row in profile.counters if row.blocks)
    assert told == {"CPU": 1, "CPU cores": 8, "GPU SM clock": 8, "of others": 1}
    busiest = [row.mean for row in profile.counters if row.counter == "CPU cores" and row.blocks]
    assert sorted(busiest) == [96, 96, 97, 97, 98, 98, 99, 99]
    charts = {chart.title: chart for chart in counter_charts(profile)}
    assert list(charts) == ["CPU", "GPU SM clock", "CPU cores"]
    assert (len(charts["CPU cores"].lines), charts["CPU cores"].left_out) == (4, 252)
    points = scalars(analyse(attribute(read_trace(tmp_path / "built.json"))))
    tags = Counter(point.tag.rpartition("/")[0] for point in points if point.step == 4)
    assert (tags["deepscope/counter/CPU_cores"], tags["deepscope/counter/GPU_SM_clock"]) == (64, 8)


def test_each_counter_has_its_chart(tmp_path: Path):
    builder = two_steps().op("aten::mm", 110 * US, 20 * US)
    for track in TRACKS:
        for at in (0, 400):
            builder.counter(f"DeepScope: {track}", at * US, **{"0": 1})
    assert [chart.title for chart in counter_charts(profile_of(builder, tmp_path))] == list(TRACKS)


def test_hostile_counters_are_bounded(tmp_path: Path):
    builder = two_steps()
    for number in range(MOST_SERIES + 50):
        builder.counter(f"c{number}", 5 * US, x=1)
    builder.counter("huge", 5 * US, x=1e299).counter("DeepScope: memory", 5 * US, used=-1e200)
    path = builder.write(tmp_path / "built.json")
    text = path.read_text().replace('"x": 1e+299', '"x": 1e999')
    assert "1e999" in text
    path.write_text(text)
    rows = build_profile(read_trace(path)).counters
    assert len(rows) == MOST_SERIES
    assert not [row for row in rows if row.counter in ("huge", "memory")]
    assert json.loads(json.dumps([row.mean for row in rows], allow_nan=False))


@given(
    st.lists(st.tuples(st.integers(1, 50), st.floats(-1e6, 1e6)), min_size=1, max_size=20),
    st.lists(st.integers(-20, 1100), min_size=2, max_size=8),
)
def test_neighbouring_stretches_sum_to_the_whole(steps: list[tuple[int, float]], cuts: list[int]):
    at = np.cumsum([width for width, _ in steps]).astype(np.int64)
    level = Level("c", "s", False, at, np.array([value for _, value in steps]))
    edges = np.array(sorted(cuts), np.int64)
    parts = level.within(edges[:-1], edges[1:])
    whole = level.within(edges[:1], edges[-1:])
    assert parts.covered_ns.sum() == whole.covered_ns[0]
    assert (parts.mean * parts.covered_ns).sum() == pytest.approx(whole.mean[0] * whole.covered_ns[0], abs=1e-3)
    if whole.covered_ns[0]:
        known = parts.covered_ns > 0
        assert parts.largest[known].max() == whole.largest[0]
        assert parts.smallest[known].min() == whole.smallest[0]
        # By hand: nanosecond by nanosecond.
        inside = range(max(int(edges[0]), int(at[0])), min(int(edges[-1]), int(at[-1])))
        values = [level.value[np.searchsorted(at, ns, "right") - 1] for ns in inside]
        assert whole.mean[0] == pytest.approx(np.mean(values), rel=1e-6, abs=1e-6)
        assert whole.largest[0] == max(values)


def test_ranks_merge_by_the_time_that_they_cover():
    ranks = [
        CounterSeries(counter="CPU", series="all", mean=10.0, smallest=1, largest=20, samples=2, covered_ns=100),
        CounterSeries(counter="CPU", series="all", mean=40.0, smallest=5, largest=90, samples=3, covered_ns=200),
    ]
    merged = merge(RankRecords(ranks, [0, 1], [0, 1]))
    assert (merged.mean, merged.smallest, merged.largest) == (30, 1, 90)
    assert (merged.samples, merged.covered_ns, merged.blocks) == (5, 300, [])

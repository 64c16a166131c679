"""Operations on intervals against sets of nanoseconds."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from deepscope.analysis.array_ops.intervals import Extent, Intervals, union

intervals = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 15)), max_size=12)


def columns(rows: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    start = np.array([start for start, _ in rows], np.int64)
    return start, start + np.array([length for _, length in rows], np.int64)


def instants(rows: list[tuple[int, int]]) -> set[int]:
    return {at for start, length in rows for at in range(start, start + length)}


def members(whole: Intervals) -> set[int]:
    return {at for start, end in zip(whole.start.tolist(), whole.end.tolist(), strict=True) for at in range(start, end)}


@given(intervals)
def test_a_union_holds_each_instant_once(rows):
    whole = union(*columns(rows))
    assert members(whole) == instants(rows)
    assert whole.total_ns == len(instants(rows))
    assert (whole.start[1:] > whole.end[:-1]).all()


@given(intervals, intervals)
def test_complement_and_intersection_part_a_window(rows, other):
    window, busy = union(*columns(rows)), union(*columns(other))
    assert members(busy.complement(window)) == instants(rows) - instants(other)
    assert members(window.intersection(busy)) == instants(rows) & instants(other)


@given(intervals, intervals)
def test_overlap_counts_the_shared_instants_of_each_interval(rows, asked):
    whole = union(*columns(rows))
    found = whole.overlap_ns(*columns(asked)).tolist()
    assert found == [len(instants([one]) & instants(rows)) for one in asked]


@given(intervals)
def test_an_instant_is_located_in_the_interval_that_holds_it(rows):
    whole = union(*columns(rows))
    found = whole.locate(np.arange(-1, 80))
    assert {at for at, i in zip(range(-1, 80), found.tolist(), strict=True) if i >= 0} == instants(rows)


@given(intervals, intervals)
def test_intervals_that_overlap_are_summed_up_in_each_one_of_others(rows, asked):
    whole = union(*columns(rows))
    spans = [range(*one) for one in zip(whole.start.tolist(), whole.end.tolist(), strict=True)]
    found = whole.of_each_ns(*columns(asked)).tolist()
    assert found == [sum(len(instants([one]) & set(span)) for one in asked) for span in spans]


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 15), st.integers(-1, 3)), max_size=15), intervals)
def test_each_groups_union_is_its_own_within_an_extent(rows, window):
    start, end = columns([row[:2] for row in rows])
    group = np.array([row[2] for row in rows], np.int64)
    for spans, inside in ((None, instants([(0, 80)])), (union(*columns(window)), instants(window))):
        groups, lengths = Extent(spans).grouped_union_ns(start, end, group)
        known = sorted({row[2] for row in rows})
        expected = {g: len(instants([row[:2] for row in rows if row[2] == g]) & inside) for g in known}
        assert dict(zip(groups.tolist(), lengths.tolist(), strict=True)) == expected

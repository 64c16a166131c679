"""Pointers upward and the call paths that they make, against loops in plain Python."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from deepscope.analysis.array_ops.selection import largest
from deepscope.analysis.ownership.paths import PathBuilder
from deepscope.trace.arrays import depth, nearest, position_in

forests = st.lists(st.integers(0, 1000), max_size=40).map(
    lambda rows: [row % (i + 1) - 1 for i, row in enumerate(rows)]
)
"""Parents, each before its children; -1 for a root."""


def ancestors(up: list[int], node: int) -> list[int]:
    found = []
    while node >= 0:
        found.append(node)
        node = up[node]
    return found


@given(forests, st.sets(st.integers(0, 39)))
def test_nearest_is_the_first_marked_node_on_the_way_up(up, chosen):
    marked = np.array([i in chosen for i in range(len(up))], np.bool_)
    expected = [next((a for a in ancestors(up, i) if a in chosen), -1) for i in range(len(up))]
    assert nearest(np.array(up, np.int64), marked).tolist() == expected


@given(forests)
def test_depth_counts_the_nodes_above(up):
    assert depth(np.array(up, np.int64)).tolist() == [len(ancestors(up, i)) - 1 for i in range(len(up))]


def test_a_cycle_ends_in_nothing():
    assert nearest(np.array([1, 0, 1]), np.array([False, False, False])).tolist() == [-1, -1, -1]
    assert nearest(np.array([1, 0, -1]), np.array([False, False, True])).tolist() == [-1, -1, 2]


def test_a_chain_of_ten_thousand_calls_is_walked():
    up = np.arange(-1, 9_999)
    marked = np.zeros(10_000, np.bool_)
    marked[3] = True
    assert nearest(up, marked)[[2, 3, 9_999]].tolist() == [-1, 3, 3]
    paths = PathBuilder()
    assert len(paths.locations(int(paths.of_forest(up, np.zeros(10_000, np.int64))[-1]))) == 10_000


def test_what_is_not_among_the_nodes_has_no_position():
    assert position_in(np.array([2, 5]), np.array([5, 2, 3, -1]), 6).tolist() == [1, 0, -1, -1]


@given(forests, st.lists(st.integers(0, 3), min_size=40, max_size=40))
def test_a_node_has_the_path_of_the_locations_above_it_and_equal_paths_are_one(up, places):
    paths = PathBuilder()
    found = paths.of_forest(np.array(up, np.int64), np.array(places[: len(up)], np.int64)).tolist()
    expected = [tuple(places[a] for a in reversed(ancestors(up, i))) for i in range(len(up))]
    assert [tuple(paths.locations(path)) for path in found] == expected
    assert len(set(found)) == len(set(expected))


@given(forests, st.lists(st.integers(0, 3), min_size=40, max_size=40), st.lists(st.integers(0, 9), min_size=41))
def test_totals_count_each_value_once_for_every_location_on_its_path(up, places, weights):
    paths = PathBuilder()
    paths.of_forest(np.array(up, np.int64), np.array(places[: len(up)], np.int64))
    values = np.array([weights[i % len(weights)] for i in range(len(paths))], np.int64)
    expected = [sum(int(values[p]) for p in range(len(paths)) if place in paths.locations(p)) for place in range(4)]
    assert paths.table().totals(values, np.arange(4), 4).tolist() == expected


def joined(forward: list[int], caller: list[int]) -> list[int]:
    paths = PathBuilder()
    return paths.locations(paths.join(paths.of(forward), paths.of(caller)))


def test_a_join_has_each_line_once_and_ends_at_the_forward_line():
    assert joined([1, 10, 50], [1, 11]) == [1, 11, 10, 50]
    assert joined([1], [1]) == [1]
    assert joined([1, 2], [1, 2, 3]) == [1, 3, 2]
    assert joined([], [1, 2]) == [1, 2]
    assert joined([1, 2], []) == [1, 2]
    assert joined([5, 6], [1, 2]) == [1, 2, 5, 6]


@given(st.lists(st.tuples(st.integers(-1, 3), st.integers(-1, 4), st.integers(0, 50)), max_size=40), st.integers(1, 3))
def test_the_largest_members_of_each_group_come_first(rows, keep):
    columns = [np.array(column, np.int64) for column in zip(*rows, strict=True)] or [np.zeros(0, np.int64)] * 3
    sums: dict[int, dict[int, int]] = {}
    for group, member, value in rows:
        if group >= 0 and member >= 0:
            sums.setdefault(group, {}).setdefault(member, 0)
            sums[group][member] += value
    expected = {
        group: sorted(members.items(), key=lambda item: (-item[1], item[0]))[:keep] for group, members in sums.items()
    }
    found: dict[int, list[tuple[int, int]]] = {}
    for share in largest(*columns, keep):
        found.setdefault(share.group, []).append((share.member, share.total))
    assert found == expected

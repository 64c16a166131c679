"""Nesting by columns against the plain stack that defines it."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from deepscope.trace.joins.nesting import Nesting, parents

_TIME = st.integers(0, 12)
_INTERVALS = st.lists(st.tuples(_TIME, st.integers(0, 8), st.integers(-1, 2), st.integers(0, 3)), max_size=30)


def _columns(rows):
    table = np.array(rows, np.int64).reshape(-1, 4)
    return table[:, 0], table[:, 0] + table[:, 1], table[:, 2], table[:, 3]


def _order(rows):
    return sorted(range(len(rows)), key=lambda i: (rows[i][2], rows[i][0], -rows[i][1], rows[i][3], i))


def _parents_by_stack(rows):
    result = [-1] * len(rows)
    stacks = {}
    for i in _order(rows):
        start, _, group, _ = rows[i]
        stack = stacks.setdefault(group, [])
        while stack and rows[stack[-1]][0] + rows[stack[-1]][1] <= start:
            stack.pop()
        result[i] = stack[-1] if stack else -1
        stack.append(i)
    return result


def _innermost_by_scan(rows, ns, group):
    found = -1
    for i in _order(rows):
        if rows[i][2] == group and rows[i][0] <= ns < rows[i][0] + rows[i][1]:
            found = i
    return found


def _by_rank(start, end, group, rank):
    return Nesting.of(start, end, group, rank).parents_of(start, end, group)


@given(_INTERVALS)
def test_parents_are_those_of_a_stack(rows):
    start, end, group, rank = _columns(rows)
    assert _by_rank(start, end, group, rank).tolist() == _parents_by_stack(rows)


@given(_INTERVALS, st.integers(-(2**60), 2**60))
def test_a_shift_in_time_changes_no_parent(rows, shift):
    start, end, group, rank = _columns(rows)
    expected = _by_rank(start, end, group, rank)
    assert _by_rank(start + shift, end + shift, group, rank).tolist() == expected.tolist()


@given(_INTERVALS, st.lists(st.tuples(st.integers(-2, 22), st.integers(-2, 3)), max_size=20))
def test_innermost_is_the_last_to_enter_of_those_open(rows, queries):
    start, end, group, rank = _columns(rows)
    asked = np.array(queries, np.int64).reshape(-1, 2)
    found = Nesting.of(start, end, group, rank).at(asked[:, 0], asked[:, 1])
    assert found.tolist() == [_innermost_by_scan(rows, ns, at) for ns, at in queries]


def test_an_event_at_the_end_of_another_is_not_in_it():
    start, end = np.array([0, 10, 10]), np.array([10, 20, 10])
    assert parents(start, end, np.zeros(3, np.int64)).tolist() == [-1, -1, 1]


def test_an_event_that_outlasts_the_one_it_starts_in_has_it_as_parent():
    start, end = np.array([0, 5, 8, 12]), np.array([10, 15, 9, 13])
    assert parents(start, end, np.zeros(4, np.int64)).tolist() == [-1, 0, 1, 1]


def test_equal_intervals_nest_by_rank_then_by_order():
    start, end, group = np.zeros(3, np.int64), np.full(3, 5), np.zeros(3, np.int64)
    assert _by_rank(start, end, group, np.array([4, 0, 4])).tolist() == [1, -1, 0]


def test_unsigned_ranks_and_narrow_groups_will_do():
    start, end = np.array([0, 1]), np.array([5, 2])
    assert _by_rank(start, end, np.zeros(2, np.int32), np.zeros(2, np.uint8)).tolist() == [-1, 0]

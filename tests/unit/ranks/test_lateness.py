"""Who is late, and who is only noisy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepscope.ranks.lateness import lateness, others_median

MS = 1e6
RANKS = st.integers(2, 24)
STEPS = st.integers(4, 32)
SEEDS = st.integers(0, 2**32 - 1)


def noisy(rng: np.random.Generator, ranks: int, steps: int) -> np.ndarray:
    """Steps of 100 ms that scatter by 3 %."""
    return 100 * MS * (1 + rng.uniform(-0.03, 0.03, (ranks, steps)))


@given(st.integers(2, 9), st.integers(1, 4), SEEDS)
def test_each_rank_is_beside_the_median_of_the_others(ranks: int, columns: int, seed: int) -> None:
    values = np.random.default_rng(seed).integers(0, 5, (ranks, columns)).astype(float)
    expected = [np.median(np.delete(values, rank, axis=0), axis=0) for rank in range(ranks)]
    assert np.array_equal(others_median(values), expected)


@settings(max_examples=200, deadline=None)
@given(RANKS, STEPS, SEEDS)
def test_no_rank_is_named_among_ranks_that_are_equal_up_to_noise(ranks: int, steps: int, seed: int) -> None:
    assert lateness(noisy(np.random.default_rng(seed), ranks, steps), np.ones(steps), 100 * MS) == {}


@settings(max_examples=200, deadline=None)
@given(RANKS, STEPS, SEEDS, st.floats(0.1, 3))
def test_a_rank_that_is_late_by_a_tenth_of_a_step_is_named_and_no_other(
    ranks: int, steps: int, seed: int, part: float
) -> None:
    rng = np.random.default_rng(seed)
    own = noisy(rng, ranks, steps)
    late = int(rng.integers(ranks))
    own[late] += part * 100 * MS
    found = lateness(own, np.ones(steps), 100 * MS)
    assert list(found) == [late]
    assert 2 * found[late].late_steps >= found[late].steps
    assert found[late].excess_ns == pytest.approx(part * 100 * MS, abs=6 * MS)


@settings(max_examples=100, deadline=None)
@given(st.integers(4, 24), st.integers(6, 32), SEEDS, st.integers(2, 3))
def test_a_rank_that_is_late_in_some_steps_is_named_with_these(ranks: int, steps: int, seed: int, some: int) -> None:
    rng = np.random.default_rng(seed)
    own = noisy(rng, ranks, steps)
    chosen = rng.choice(steps, some, replace=False)
    own[0, chosen] += 0.15 * 100 * MS * steps / some
    (found,) = lateness(own, np.ones(steps), 100 * MS).items()
    assert found[0] == 0
    assert set(np.flatnonzero(found[1].late).tolist()) >= set(chosen.tolist())


def test_one_step_late_by_more_than_a_step_was_late_once_and_one_by_less_is_the_machines_doing() -> None:
    own = np.full((4, 6), 10 * MS)
    own[1, 3] += 9 * MS
    assert lateness(own, np.ones(6), 10 * MS) == {}
    own[1, 3] += 2 * MS
    (found,) = lateness(own, np.ones(6), 10 * MS).values()
    assert (found.late_steps, found.steps) == (1, 6)
    assert found.excess_ns == pytest.approx(11 / 6 * MS)


def test_of_single_steps_the_other_ranks_tell_what_noise_is() -> None:
    own = np.array([[10.0], [11], [12], [13], [14], [15]]) * MS
    assert lateness(own, np.ones(1), 20 * MS) == {}
    assert list(lateness(np.array([[10.0], [10], [10], [10], [10], [15]]) * MS, np.ones(1), 20 * MS)) == [5]


def test_two_stragglers_are_two() -> None:
    own = noisy(np.random.default_rng(0), 8, 8)
    own[[2, 5]] += 30 * MS
    assert sorted(lateness(own, np.ones(8), 100 * MS)) == [2, 5]


def test_a_thousand_ranks_are_looked_at_at_once() -> None:
    own = noisy(np.random.default_rng(1), 1024, 32)
    own[700] += 20 * MS
    assert list(lateness(own, np.ones(32), 100 * MS)) == [700]

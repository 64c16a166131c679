"""The intervals hold the truth as often as they say, on runs whose truth is known."""

from __future__ import annotations

import numpy as np
import pytest

from deepscope.comparison.noise import MOST_RUN_NOISE, Pair, Sample, intervals, run_variance

ROUNDS = 1500


def sample(values: np.ndarray) -> Sample:
    return Sample(float(values.mean()), tuple(values.tolist()))


def drawn(
    rng: np.random.Generator, means: np.ndarray, *, runs: int, steps: int, spread: float, between: float
) -> list[list[Sample]]:
    """By row, then by run: all rows of a run are shifted alike."""
    shifts = 1 + between * rng.standard_normal(runs)
    rows = means[:, None, None] * shifts[:, None] * (1 + spread * rng.standard_normal((len(means), runs, steps)))
    return [[sample(values) for values in row] for row in rows]


def judged(pairs: list[Pair]) -> list[tuple[float, float] | None]:
    return intervals(pairs, run_variance(pairs) or 0.0)


@pytest.mark.parametrize("steps", [2, 3, 5, 12])
@pytest.mark.parametrize("change", [0.0, 0.3])
def test_the_interval_of_a_single_row_holds_the_true_change_95_times_of_100(steps: int, change: float) -> None:
    rng = np.random.default_rng(steps)
    before, after = np.array([1e6]), np.array([1e6 * (1 + change)])
    held = 0
    for _ in range(ROUNDS):
        sides = [drawn(rng, mean, runs=1, steps=steps, spread=0.05, between=0) for mean in (before, after)]
        (interval,) = judged([Pair(sides[0][0], sides[1][0])])
        assert interval is not None
        held += interval[0] <= 1e6 * change <= interval[1]
    # Degrees of freedom are rounded down: with few steps the interval is too wide rather than too narrow.
    assert 0.935 <= held / ROUNDS <= (0.99 if steps > 2 else 1)


@pytest.mark.parametrize(
    ("runs", "between"), [((1, 1), 0.0), ((1, 1), 0.05), ((1, 1), 0.1), ((3, 3), 0.1), ((4, 1), 0.05), ((2, 2), 0.05)]
)
def test_no_row_without_a_change_is_beyond_noise_in_most_comparisons(runs: tuple[int, int], between: float) -> None:
    rng = np.random.default_rng(7)
    means = 1e6 * np.geomspace(1, 0.005, 25)
    wrong = rounds = 0
    for _ in range(300):
        sides = [drawn(rng, means, runs=count, steps=5, spread=0.05, between=between) for count in runs]
        found = judged([Pair(*pair) for pair in zip(*sides, strict=True)])
        wrong += any(interval is not None and not interval[0] <= 0 <= interval[1] for interval in found)
        rounds += 1
    assert wrong / rounds <= (0.08 if between == 0 else 0.2)


@pytest.mark.parametrize(("runs", "between"), [((1, 1), 0.0), ((1, 1), 0.05), ((3, 3), 0.05), ((5, 1), 0.05)])
def test_one_line_that_became_half_as_slow_again_is_found_and_no_other(runs: tuple[int, int], between: float) -> None:
    rng = np.random.default_rng(11)
    means = 1e6 * np.geomspace(1, 0.01, 20)
    slower = means.copy()
    slower[2] *= 1.8
    found = others = 0
    for _ in range(200):
        sides = [
            drawn(rng, one, runs=count, steps=5, spread=0.03, between=between)
            for one, count in zip((means, slower), runs, strict=True)
        ]
        beyond = [
            row
            for row, interval in enumerate(judged([Pair(*pair) for pair in zip(*sides, strict=True)]))
            if interval is not None and interval[0] > 0
        ]
        found += 2 in beyond
        others += bool(set(beyond) - {2})
    assert found / 200 >= 0.95
    assert others / 200 <= 0.15


def test_what_all_rows_share_is_not_called_a_change_of_each_until_it_is_large() -> None:
    rng = np.random.default_rng(3)
    means = 1e6 * np.geomspace(1, 0.05, 12)

    def beyond(factor: float) -> int:
        sides = [drawn(rng, one, runs=1, steps=6, spread=0.01, between=0) for one in (means, means * factor)]
        pairs = [Pair(*pair) for pair in zip(*sides, strict=True)]
        assert (run_variance(pairs) or 0) <= MOST_RUN_NOISE**2
        return sum(interval is not None and interval[0] > 0 for interval in judged(pairs))

    assert beyond(1.15) == 0
    assert beyond(3) >= 6
    # Repeats tell: the same fifteen percent, seen in each of several runs, is a change.
    sides = [drawn(rng, one, runs=4, steps=6, spread=0.01, between=0.005) for one in (means, means * 1.15)]
    assert all(
        interval is not None and interval[0] > 0 for interval in judged([Pair(*p) for p in zip(*sides, strict=True)])
    )


def test_no_noise_between_runs_makes_a_manifold_time_believed_to_be_none() -> None:
    rng = np.random.default_rng(5)
    means = 1e6 * np.geomspace(1, 0.05, 12)
    slower = means * np.where(np.arange(12) == 4, 8, 1)
    for runs, least in (((1, 1), 1.0), ((3, 3), 0.95), ((2, 2), 0.8)):
        found = 0
        for _ in range(60):
            sides = [
                drawn(rng, one, runs=count, steps=5, spread=0.1, between=0.2)
                for one, count in zip((means, slower), runs, strict=True)
            ]
            interval = judged([Pair(*pair) for pair in zip(*sides, strict=True)])[4]
            assert interval is not None
            found += interval[0] > 0
        assert found / 60 >= least, runs


def test_one_observation_a_side_has_no_interval() -> None:
    one = [sample(np.array([5.0]))]
    many = [sample(np.array([5.0, 6.0]))]
    assert judged([Pair(one, one), Pair(one, many), Pair(many, one)]) == [None, None, None]
    assert judged([Pair(many, many)]) != [None]
    assert judged([Pair(one * 2, one)]) != [None]


def test_times_that_never_differ_have_an_interval_of_no_width() -> None:
    same, more = [sample(np.full(3, 5.0))], [sample(np.full(3, 6.0))]
    assert judged([Pair(same, same), Pair(same, more)]) == [(0, 0), (1, 1)]


def test_a_row_of_one_side_alone_has_the_spread_of_that_side() -> None:
    nothing, something = [sample(np.zeros(4))], [sample(np.array([9.0, 10.0, 11.0, 10.0]))]
    (new,) = judged([Pair(nothing, something)])
    (gone,) = judged([Pair(something, nothing)])
    assert new is not None
    assert gone is not None
    assert 5 < new[0] < 10 < new[1]
    assert gone == pytest.approx((-new[1], -new[0]))

"""Percentiles of the steps, and the words on the slowest one."""

from __future__ import annotations

import numpy as np
import pytest

import built_profiles
from deepscope.records import Step
from deepscope.records.ranks import merge_profiles
from deepscope.report.step_table import PERCENTILES, step_times, step_times_words


def steps(*durations: int) -> list[Step]:
    return [
        Step(number=i, start_ns=0, duration_ns=one, device_ns=0, busy_ns=0, idle_ns=0, wait_ns=0)
        for i, one in enumerate(durations)
    ]


@pytest.mark.parametrize("count", [1, 2, 3, 10, 101])
def test_percentiles_are_numpys(count: int) -> None:
    profile = built_profiles.training()
    durations = np.random.default_rng(count).integers(1, 10**9, count)
    profile.steps = steps(*durations.tolist())
    found = step_times(profile)
    assert found is not None
    for one in PERCENTILES:
        assert getattr(found, f"p{one}_ns") == pytest.approx(np.percentile(durations, one), abs=1)
    assert (found.min_ns, found.max_ns, found.count) == (durations.min(), durations.max(), count)
    assert found.slowest == durations.argmax()


def test_of_several_ranks_a_step_is_as_long_as_on_their_mean() -> None:
    merged = merge_profiles([built_profiles.training(), built_profiles.training()])
    found, one = step_times(merged), step_times(built_profiles.training())
    assert found == one


def test_the_words_name_the_slowest_step_and_its_line() -> None:
    words = dict(step_times_words(built_profiles.training()))
    assert words["slowest"] == "step 2, 55ms: 5ms over the median; train.py:5 main took 9ms more than it usually does"


def test_without_two_steps_there_is_nothing_to_compare() -> None:
    assert step_times_words(built_profiles.cpu_only()) == []
    assert step_times(built_profiles.cpu_only()) is None

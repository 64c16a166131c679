"""Benchmarks on clocks whose times are known."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain, cycle, repeat

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deepscope.measure.timing import TimedCalls, Timing, measured, timing_of


def timed(durations_ns: Iterator[int], *, seconds: float = 1.0) -> tuple[Timing, int]:
    """A function whose calls take these times, and how often it was called."""
    now_ns = calls = 0

    def call() -> None:
        nonlocal now_ns, calls
        calls += 1
        now_ns += next(durations_ns)

    found = measured(call, lambda: now_ns / 1e9, seconds)
    return timing_of(found, name="f", device="cpu", batch_size=4), calls


def samples(*latencies_ns: float, calls_per_second: float = 1.0) -> TimedCalls:
    return TimedCalls(list(latencies_ns), 1, 2, True, 1.0, calls_per_second)


def test_a_steady_function_is_measured_exactly():
    timing, calls = timed(repeat(1_000_000))
    assert timing.is_steady
    assert timing.warmup_calls == 10
    assert timing.calls == pytest.approx(1000, abs=1)  # a second of calls of a millisecond
    assert calls == timing.calls + timing.warmup_calls
    times = (
        timing.min_ns,
        timing.p10_ns,
        timing.median_ns,
        timing.mean_ns,
        timing.p90_ns,
        timing.p99_ns,
        timing.max_ns,
    )
    assert times == pytest.approx((1e6,) * 7)
    assert (timing.median_low_ns, timing.median_high_ns) == pytest.approx((1e6, 1e6))
    assert timing.noise_ratio == pytest.approx(0, abs=1e-6)
    assert timing.calls_per_second == pytest.approx(1000)
    assert timing.items_per_second == pytest.approx(4000)


def test_warm_up_goes_on_until_calls_are_steady():
    slow_start = [100_000_000 - 4_000_000 * place for place in range(20)]
    timing, _ = timed(chain(slow_start, repeat(20_000_000)))
    assert timing.is_steady
    assert timing.warmup_calls == 30
    assert timing.max_ns == pytest.approx(20_000_000)


def test_warm_up_without_end_is_cut_off_and_said():
    timing, _ = timed(iter(int(1e6 * 1.1**place) for place in range(200)))
    assert not timing.is_steady
    assert "not steady" in str(timing)


def test_a_slow_function_is_called_ten_times_all_the_same():
    timing, calls = timed(repeat(7_000_000_000))
    assert (timing.warmup_calls, timing.calls, calls) == (2, 10, 12)


def test_short_calls_are_timed_several_at_once():
    timing, calls = timed(repeat(100), seconds=1e-3)
    assert timing.calls_per_sample == pytest.approx(200, abs=1)
    assert timing.median_ns == pytest.approx(100)
    assert calls == timing.calls + timing.warmup_calls
    assert timing.calls_per_second == pytest.approx(1e7)


def test_an_outlier_moves_neither_median_nor_noise():
    timing, _ = timed(cycle([10**6] * 99 + [10**9]), seconds=2)
    assert (timing.median_ns, timing.p90_ns, timing.max_ns) == pytest.approx((10**6, 10**6, 10**9))
    assert timing.noise_ratio == pytest.approx(0, abs=1e-6)


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.integers(1_000, 10**9), min_size=1, max_size=60))
def test_figures_are_in_order_and_agree_with_the_samples(durations: list[int]):
    found = samples(*durations, calls_per_second=len(durations) * 1e9 / sum(durations))
    timing = timing_of(found, name="f", device="cpu")
    figures = [timing.min_ns, timing.p10_ns, timing.median_ns, timing.p90_ns, timing.p99_ns, timing.max_ns]
    assert figures == sorted(figures)
    assert timing.min_ns <= timing.median_low_ns <= timing.median_ns <= timing.median_high_ns <= timing.max_ns
    assert timing.calls_per_second * timing.mean_ns == pytest.approx(1e9)
    assert {timing.median_low_ns, timing.median_high_ns} <= set(durations)


def test_the_interval_holds_the_true_median_in_ninety_five_of_a_hundred_cases():
    random = np.random.default_rng(1)
    hits = total = 0
    for count in (8, 25, 101):
        for _ in range(400):
            drawn = random.lognormal(10, 1, count)
            timing = timing_of(samples(*drawn), name="f", device="cpu")
            hits += timing.median_low_ns <= np.exp(10) <= timing.median_high_ns
            total += 1
    assert 0.94 <= hits / total <= 0.995


def test_it_is_json_and_its_name_is_harmless():
    timing, _ = timed(repeat(1_000_000))
    assert json.loads(timing.to_json())["median_ns"] == timing.median_ns
    assert max(map(len, str(timing).splitlines())) <= 80
    hostile = timing_of(samples(1.0), name="<script>\x1b[2J", device="cpu")
    assert "<script>" not in hostile._repr_html_()
    assert "\x1b" not in str(hostile)

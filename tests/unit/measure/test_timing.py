"""Benchmarks on clocks whose times are known."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import chain, cycle, repeat

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deepscope.measure.timing import Limits, Sample, Samples, Timing, measured, timing_of
from deepscope.measure.timing_report import timing_html, timing_text


class FakeClock:
    """Each call takes the next of some durations; on a device the host goes on after a tenth of it."""

    def __init__(self, durations: Iterator[int], *, returns_early: bool = False) -> None:
        self.durations = durations
        self.returns_early = returns_early
        self.time_ns = 0

    def now_ns(self) -> int:
        return self.time_ns

    def sample(self, call: Callable[[], object], times: int) -> Sample:
        took = 0
        for _ in range(times):
            call()
            took += next(self.durations)
        self.time_ns += took
        return Sample(took / times, took / times / (10 if self.returns_early else 1))

    def in_a_row_ns(self, call: Callable[[], object], times: int) -> int:
        """They overlap by a half."""
        return round(self.sample(call, times).latency_ns * times / 2)


def timed(durations: Iterator[int], *, returns_early: bool = False, limits: Limits | None = None) -> tuple[Timing, int]:
    calls = 0

    def call() -> None:
        nonlocal calls
        calls += 1

    found = measured(call, FakeClock(durations, returns_early=returns_early), limits or Limits())
    return timing_of(found, name="f", device="cpu", batch_size=4), calls


def test_a_steady_function_is_measured_exactly():
    timing, calls = timed(repeat(1_000_000))
    assert timing.is_steady
    assert timing.warmup_calls == 10
    assert timing.calls == 1000  # a second of calls of a millisecond
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
    assert set(times) == {1e6}
    assert (timing.median_low_ns, timing.median_high_ns, timing.noise_ratio) == (1e6, 1e6, 0)
    assert timing.calls_per_second == 1000
    assert timing.items_per_second == 4000


def test_warm_up_goes_on_until_calls_are_steady():
    slow_start = [100_000_000 - 4_000_000 * place for place in range(20)]
    timing, _ = timed(chain(slow_start, repeat(20_000_000)))
    assert timing.is_steady
    assert timing.warmup_calls == 30
    assert timing.max_ns == 20_000_000


def test_warm_up_without_end_is_cut_off_and_said():
    timing, _ = timed(iter(int(1e6 * 1.1**place) for place in range(200)))
    assert not timing.is_steady
    assert "not steady" in timing_text(timing)


def test_a_slow_function_is_called_ten_times_all_the_same():
    timing, calls = timed(repeat(7_000_000_000))
    assert (timing.warmup_calls, timing.calls, calls) == (2, 10, 12)


def test_short_calls_are_timed_several_at_once():
    timing, calls = timed(repeat(100), limits=Limits(seconds=1e-3))
    assert timing.calls_per_sample == 200
    assert timing.median_ns == 100
    assert calls == timing.calls + timing.warmup_calls
    assert timing.calls_per_second == pytest.approx(1e7)


def test_on_a_device_throughput_is_that_of_calls_in_a_row():
    timing, _ = timed(repeat(1_000_000), returns_early=True)
    assert timing.median_ns == 1e6
    assert timing.host_ns == 1e5
    assert timing.calls_per_second == pytest.approx(2000)


def test_an_outlier_moves_neither_median_nor_noise():
    timing, _ = timed(cycle([10**6] * 99 + [10**9]), limits=Limits(seconds=2))
    assert timing.median_ns == timing.p90_ns == 10**6
    assert timing.noise_ratio == 0
    assert timing.max_ns == 10**9


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.integers(1_000, 10**9), min_size=1, max_size=60))
def test_figures_are_in_order_and_agree_with_the_samples(durations: list[int]):
    samples = [Sample(float(one), float(one)) for one in durations]
    timing = timing_of(Samples(samples, 1, 2, True, len(durations), sum(durations)), name="f", device="cpu")
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
            samples = [Sample(float(one), 1.0) for one in drawn]
            timing = timing_of(Samples(samples, 1, 0, True, 1, 1), name="f", device="cpu")
            hits += timing.median_low_ns <= np.exp(10) <= timing.median_high_ns
            total += 1
    assert 0.94 <= hits / total <= 0.995


def test_it_is_json_and_its_name_is_harmless():
    timing, _ = timed(repeat(1_000_000))
    assert json.loads(timing.to_json())["median_ns"] == 1e6
    assert max(map(len, str(timing).splitlines())) <= 80
    hostile = timing_of(Samples([Sample(1.0, 1.0)], 1, 2, True, 1, 1), name="<script>\x1b[2J", device="cpu")
    assert "<script>" not in timing_html(hostile)
    assert "\x1b" not in timing_text(hostile)

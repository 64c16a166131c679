"""How long a call takes: warm-up until it is steady, samples, and what they tell. Knows no torch and no clock."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple, Protocol

import msgspec
import numpy as np

Call = Callable[[], object]

_WINDOW = 5
"""Calls whose median is compared with that of as many before."""
_STEADY = 0.05
_LONG_ENOUGH_NS = 20_000
"""Shorter calls are timed several at once, so that reading the clock does not count."""


class Sample(NamedTuple):
    """Calls that were timed as one."""

    latency_ns: float
    """Of one call, from its begin until its work was done."""
    host_ns: float
    """The part of it until the call returned."""


class Clock(Protocol):
    """What times calls, on the host or on a device."""

    @property
    def returns_early(self) -> bool:
        """Whether a call may return before its work is done, so that calls in a row overlap."""

    def now_ns(self) -> int:
        """The host's time."""

    def sample(self, call: Call, times: int) -> Sample:
        """Call so many times, with nothing of before or after in it."""

    def in_a_row_ns(self, call: Call, times: int) -> int:
        """The time of so many calls that do not wait for each other's work."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """When to stop."""

    seconds: float = 1.0
    """Of samples; at least `least_samples` are taken however long they are."""
    warmup_seconds: float = 3.0
    """Of warm-up, if calls do not become steady before; two calls at least."""
    least_samples: int = 10
    most_samples: int = 100_000


class Samples(NamedTuple):
    """What was measured of one function."""

    samples: list[Sample]
    calls_per_sample: int
    warmup_calls: int
    is_steady: bool
    row_calls: int
    row_ns: int
    """Of `row_calls` calls that did not wait for each other; of the samples where all calls wait."""


def measured(call: Call, clock: Clock, limits: Limits) -> Samples:
    """Warm up, then sample, then call in a row where that is another thing."""
    warmup, is_steady = _warmed_up(call, clock, limits)
    usual = float(np.median([one.latency_ns for one in warmup[-_WINDOW:]]))
    at_once = max(1, math.ceil(_LONG_ENOUGH_NS / max(usual, 1.0))) if usual < _LONG_ENOUGH_NS else 1
    samples: list[Sample] = []
    end = clock.now_ns() + int(limits.seconds * 1e9)
    while len(samples) < limits.least_samples or (clock.now_ns() < end and len(samples) < limits.most_samples):
        samples.append(clock.sample(call, at_once))
    if not clock.returns_early:
        timed = len(samples) * at_once
        return Samples(
            samples, at_once, len(warmup), is_steady, timed, round(sum(one.latency_ns for one in samples) * at_once)
        )
    in_a_row = max(limits.least_samples, min(len(samples), int(limits.seconds * 2.5e8 / max(usual, 1.0))))
    return Samples(samples, at_once, len(warmup), is_steady, in_a_row, clock.in_a_row_ns(call, in_a_row))


def _warmed_up(call: Call, clock: Clock, limits: Limits) -> tuple[list[Sample], bool]:
    """Calls until the medians of two windows that follow each other are within a twentieth of each other."""
    samples: list[Sample] = []
    end = clock.now_ns() + int(limits.warmup_seconds * 1e9)
    while len(samples) < 2 or clock.now_ns() < end:
        samples.append(clock.sample(call, 1))
        if len(samples) % _WINDOW == 0 and len(samples) >= 2 * _WINDOW:
            before, last = (
                float(np.median([one.latency_ns for one in part]))
                for part in (samples[-2 * _WINDOW : -_WINDOW], samples[-_WINDOW:])
            )
            if abs(last - before) <= _STEADY * before:
                return samples, True
    return samples, False


@dataclass(frozen=True, kw_only=True, repr=False)
class Timing:
    """Latency and throughput of a function; prints itself as a table. All times are of one call."""

    name: str
    device: str
    """The device whose events were timed (`cuda:0`); `cpu` for the host's clock."""
    calls: int
    """Timed one after another, each once the one before was done."""
    calls_per_sample: int
    """Above 1 for calls shorter than 20 µs: percentiles then are of means of so many."""
    warmup_calls: int
    is_steady: bool
    """Whether the warm-up ended because calls no longer changed, and not at its limit of time."""
    median_ns: float
    median_low_ns: float
    """With `median_high_ns` an interval that holds the median of the function's latency with 95 % confidence, if
    calls do not depend on each other: two order statistics, by the binomial distribution."""
    median_high_ns: float
    mean_ns: float
    min_ns: float
    p10_ns: float
    p90_ns: float
    p99_ns: float
    max_ns: float
    noise_ratio: float
    """1.4826 times the median absolute deviation, by the median: the standard deviation without its outliers."""
    host_ns: float
    """Median time until the call returned; less than `median_ns` where a device works on."""
    calls_per_second: float
    """Calls in a row, which do not wait for each other's work."""
    batch_size: int | None
    items_per_second: float | None
    """`batch_size` times `calls_per_second`; None unless it was told."""
    peak_bytes: int | None
    """The most memory on the device that a call had above what was allocated before; None where torch cannot tell."""

    def to_json(self) -> str:
        """As a JSON object, fields as they are named here."""
        return msgspec.json.format(msgspec.json.encode(asdict(self)), indent=2).decode()

    def __str__(self) -> str:
        from deepscope.measure.timing_report import timing_text

        return timing_text(self).rstrip("\n")

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from deepscope.measure.timing_report import timing_html

        return timing_html(self)


def timing_of(
    measured: Samples, *, name: str, device: str, batch_size: int | None = None, peak_bytes: int | None = None
) -> Timing:
    """The figures of what was measured."""
    latency = np.array([one.latency_ns for one in measured.samples], np.float64)
    median = float(np.median(latency))
    low, high = _median_interval(np.sort(latency))
    p10, p90, p99 = (float(np.percentile(latency, percent)) for percent in (10, 90, 99))
    per_second = measured.row_calls * 1e9 / max(measured.row_ns, 1)
    return Timing(
        name=name,
        device=device,
        calls=len(latency) * measured.calls_per_sample,
        calls_per_sample=measured.calls_per_sample,
        warmup_calls=measured.warmup_calls,
        is_steady=measured.is_steady,
        median_ns=median,
        median_low_ns=low,
        median_high_ns=high,
        mean_ns=float(np.mean(latency)),
        min_ns=float(latency.min()),
        p10_ns=p10,
        p90_ns=p90,
        p99_ns=p99,
        max_ns=float(latency.max()),
        noise_ratio=float(1.4826 * np.median(np.abs(latency - median)) / median) if median else 0.0,
        host_ns=float(np.median([one.host_ns for one in measured.samples])),
        calls_per_second=per_second,
        batch_size=batch_size,
        items_per_second=None if batch_size is None else batch_size * per_second,
        peak_bytes=peak_bytes,
    )


def _median_interval(ordered: Sequence[float] | np.ndarray[tuple[int], np.dtype[np.float64]]) -> tuple[float, float]:
    """The k-th smallest and the k-th largest, for the largest k at which at most 5 % lie outside of them.

    That the median is below the k-th smallest of n has the probability of fewer than k heads in n throws of a coin
    (https://en.wikipedia.org/wiki/Order_statistic). Under six values all of them are needed, and are not enough.
    """
    count = len(ordered)
    below, k = 0.0, 0
    while 2 * k < count:
        below += math.exp(math.lgamma(count + 1) - math.lgamma(k + 1) - math.lgamma(count - k + 1) - count * _LN2)
        if below > 0.025:
            break
        k += 1
    k = max(k, 1)
    return float(ordered[k - 1]), float(ordered[count - k])


_LN2 = math.log(2)

"""How long a call takes: warm-up until it is steady, samples, and what they tell. Knows no torch."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from timeit import Timer
from typing import NamedTuple

import msgspec
import numpy as np

from deepscope.printable import printable
from deepscope.quantities import bytes_text, count_text, time_text

Clock = Callable[[], float]
"""Seconds, as `time.perf_counter` has them."""

_WINDOW = 5
"""Calls whose median is compared with that of as many before."""
_STEADY = 0.05
_WARMUP_SECONDS = 3.0
_LEAST_SAMPLES = 10
_MOST_SAMPLES = 100_000
_LONG_ENOUGH_SECONDS = 20e-6
"""Shorter calls are timed several at once, so that reading the clock does not count."""


class Samples(NamedTuple):
    """What was measured of one function."""

    latencies_ns: list[float]
    """Of one call each, from its begin until its work was done."""
    calls_per_sample: int
    warmup_calls: int
    is_steady: bool
    host_ns: float
    """Median time until the call returned."""
    calls_per_second: float


def measured(call: Callable[[], object], clock: Clock, seconds: float, *, host_clock: Clock | None = None) -> Samples:
    """Warm up, then sample for `seconds`, ten times at least.

    Args:
        call: what is measured; without garbage collection, as `timeit` does it.
        clock: waits for all work, then tells the time.
        seconds: how long samples are taken.
        host_clock: tells the time without waiting, where a call may return before its work is done. Then calls in a
            row overlap, and are measured as well.
    """
    timer = Timer(call, timer=clock)
    warmup, is_steady = _warmed_up(timer, clock)
    usual = float(np.median(warmup[-_WINDOW:]))
    at_once = max(1, math.ceil(_LONG_ENOUGH_SECONDS / max(usual, 1e-9)))
    latencies: list[float] = []
    end = clock() + seconds
    while len(latencies) < _LEAST_SAMPLES or (clock() < end and len(latencies) < _MOST_SAMPLES):
        latencies.append(timer.timeit(at_once) / at_once)
    host, row_calls, row_seconds = float(np.median(latencies)), len(latencies), sum(latencies)
    if host_clock is not None:
        host = float(np.median(Timer(call, setup=clock, timer=host_clock).repeat(_LEAST_SAMPLES, 1)))
        row_calls = max(_LEAST_SAMPLES, min(len(latencies), int(seconds / 4 / max(usual, 1e-9))))
        row_seconds = timer.timeit(row_calls)
    return Samples(
        [one * 1e9 for one in latencies],
        at_once,
        len(warmup),
        is_steady,
        host * 1e9,
        row_calls / max(row_seconds, 1e-9),
    )


def _warmed_up(timer: Timer, clock: Clock) -> tuple[list[float], bool]:
    """Seconds of calls until the medians of two windows that follow each other are within a twentieth of each other."""
    taken: list[float] = []
    end = clock() + _WARMUP_SECONDS
    while len(taken) < 2 or clock() < end:
        taken.append(timer.timeit(1))
        if len(taken) % _WINDOW == 0 and len(taken) >= 2 * _WINDOW:
            before, last = (float(np.median(part)) for part in (taken[-2 * _WINDOW : -_WINDOW], taken[-_WINDOW:]))
            if abs(last - before) <= _STEADY * before:
                return taken, True
    return taken, False


@dataclass(frozen=True, kw_only=True, repr=False)
class Timing:
    """Latency and throughput of a function; prints itself as a table. All times are of one call."""

    name: str
    device: str
    """The device whose work was waited for (`cuda:0`); `cpu` where calls do their work themselves."""
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
        return "\n".join(f"{title:<11}  {text}" for title, text in _entries(self))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The same for a notebook; the name is escaped."""
        rows = "".join(
            f'<tr><th style="text-align:left">{html.escape(title)}</th><td>{html.escape(text)}</td></tr>'
            for title, text in _entries(self)
        )
        return f"<table>{rows}</table>"


def timing_of(
    measured: Samples, *, name: str, device: str, batch_size: int | None = None, peak_bytes: int | None = None
) -> Timing:
    """The figures of what was measured."""
    latency = np.sort(np.array(measured.latencies_ns, np.float64))
    least, p10, median, p90, p99, most = np.percentile(latency, (0, 10, 50, 90, 99, 100)).tolist()
    low, high = _median_interval(latency)
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
        min_ns=least,
        p10_ns=p10,
        p90_ns=p90,
        p99_ns=p99,
        max_ns=most,
        noise_ratio=float(1.4826 * np.median(np.abs(latency - median)) / median) if median else 0.0,
        host_ns=measured.host_ns,
        calls_per_second=measured.calls_per_second,
        batch_size=batch_size,
        items_per_second=None if batch_size is None else batch_size * measured.calls_per_second,
        peak_bytes=peak_bytes,
    )


def _median_interval(ordered: np.ndarray[tuple[int], np.dtype[np.float64]]) -> tuple[float, float]:
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


def _entries(timing: Timing) -> Iterator[tuple[str, str]]:
    yield "function", f"{printable(timing.name)} on {timing.device}"
    yield (
        "median",
        (
            f"{_time(timing.median_ns)}  (95 %: {_time(timing.median_low_ns)} to {_time(timing.median_high_ns)}; "
            f"noise {100 * timing.noise_ratio:.1f} %)"
        ),
    )
    yield "p10 p90 p99", f"{_time(timing.p10_ns)}  {_time(timing.p90_ns)}  {_time(timing.p99_ns)}"
    yield "min max", f"{_time(timing.min_ns)}  {_time(timing.max_ns)}"
    if timing.device != "cpu":
        yield "host", f"{_time(timing.host_ns)} until the call returned"
    yield "throughput", _throughput(timing)
    if timing.peak_bytes is not None:
        yield "memory", f"{bytes_text(timing.peak_bytes) or '0B'} at the peak, above what was there before"
    yield "measured", _measured(timing)


def _throughput(timing: Timing) -> str:
    calls = f"{_rate(timing.calls_per_second)} calls/s"
    return calls if timing.items_per_second is None else f"{calls}, {_rate(timing.items_per_second)} items/s"


def _measured(timing: Timing) -> str:
    calls = f"{count_text(timing.calls)} calls"
    if timing.calls_per_sample > 1:
        calls += f", {timing.calls_per_sample:,} timed at once"
    steady = "" if timing.is_steady else ", not steady by then"
    return f"{calls} after {count_text(timing.warmup_calls)} of warm-up{steady}"


def _time(duration_ns: float) -> str:
    return time_text(duration_ns) or "0ns"


def _rate(value: float) -> str:
    return count_text(round(value)) if value >= 100 else f"{value:.3g}"

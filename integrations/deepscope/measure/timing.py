"""How long a call takes: warm-up until it is steady, samples, and what they tell. Knows no torch."""

from __future__ import annotations

import html
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from itertools import accumulate
from operator import itemgetter
from timeit import Timer
from typing import Any, NamedTuple

import msgspec
import numpy as np
import torch
from torch.profiler import ProfilerActivity, profile

from deepscope.capture import torch_compat
from deepscope.errors import OptionError
from deepscope.measure.counting import module_of, name_of, tensors_in
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


class TimedCalls(NamedTuple):
    """What was measured of one function."""

    latencies_ns: list[float]
    """Of one call each, from its begin until its work was done."""
    calls_per_sample: int
    warmup_calls: int
    is_steady: bool
    host_ns: float
    """Median time until the call returned."""
    calls_per_second: float


def measured(
    call: Callable[[], object], clock: Clock, seconds: float, *, host_clock: Clock | None = None
) -> TimedCalls:
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
    return TimedCalls(
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
    measured: TimedCalls, *, name: str, device: str, batch_size: int | None = None, peak_bytes: int | None = None
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


def benchmark(
    function: Callable[..., Any],
    /,
    *inputs: Any,
    batch_size: int | None = None,
    seconds: float = 1.0,
    device: str | torch.device | None = None,
    **keywords: Any,
) -> Timing:
    """Time calls `function(*inputs, **keywords)`: latency, throughput, peak of memory.

    Calls are made until they are steady (the medians of five calls and of the five before differ by a twentieth at
    most; three seconds at most). Then each is timed from its begin until the device has done its work, without garbage
    collection. On a device as many are made in a row, without waiting, for the throughput. One more call shows the
    memory.

    Args:
        function: a module, or any other function.
        inputs: as it takes them.
        batch_size: how many items a call works on, for `items_per_second`.
        seconds: how long calls are timed; ten calls at least.
        device: whose work is waited for; None for the device of the tensors in the inputs and the module, and where
            these tell none, for the accelerator in use.
        keywords: as the function takes them.

    Raises:
        OptionError: an option has a value that cannot be used.
    """
    if not callable(function):
        raise OptionError("function", function, "must be a function or a module")
    if batch_size is not None and (isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1):
        raise OptionError("batch_size", batch_size, "must be an integer, 1 or more")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < float("inf"):
        raise OptionError("seconds", seconds, "must be a number above 0")
    used = _device(device, function, inputs, keywords)
    call = partial(function, *inputs, **keywords)
    is_host = used.type in {"cpu", "meta"}
    found = measured(call, clock_of(used), seconds, host_clock=None if is_host else time.perf_counter)
    return timing_of(
        found,
        name=name_of(function),
        device=str(used),
        batch_size=batch_size,
        peak_bytes=peak_bytes(call, used) if used.type != "meta" else None,
    )


def _device(given: str | torch.device | None, function: Any, inputs: Any, keywords: Any) -> torch.device:
    if given is not None:
        try:
            chosen = torch.device(given)
        except (RuntimeError, TypeError) as error:
            raise OptionError("device", given, str(error).splitlines()[0]) from None
        is_there = chosen.type in {"cpu", "meta"} or getattr(torch, chosen.type, None) is not None
        if not is_there or (chosen.type == "cuda" and not torch.cuda.is_available()):
            raise OptionError("device", given, "there is no such device")
        return chosen
    module = module_of(function)
    held = [*module.parameters(), *module.buffers()] if module is not None else []
    devices = {one.device for one in (*held, *tensors_in((inputs, keywords)))}
    on_device = sorted((one for one in devices if one.type != "cpu"), key=str)
    if on_device:
        return on_device[0]
    return torch.device("cpu") if devices else _in_use()


def _in_use() -> torch.device:
    """The accelerator, if this process has used it; else the CPU."""
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        return torch.device("cuda", torch.cuda.current_device())
    accelerator = getattr(torch, "accelerator", None)
    if accelerator is not None and accelerator.is_available():
        current = accelerator.current_accelerator()
        if current is not None and current.type != "cuda":
            return torch.device(current.type, accelerator.current_device_index())
    return torch.device("cpu")


def clock_of(device: torch.device) -> Clock:
    """Waits until a device has done its work, and tells the time in seconds."""
    if device.type in {"cpu", "meta"}:
        return time.perf_counter
    module = getattr(torch, device.type)  # torch.cuda, torch.xpu, torch.mps, …
    wait = module.synchronize if device.type == "mps" else partial(module.synchronize, device)

    def seconds() -> float:
        wait()
        return time.perf_counter()

    return seconds


def peak_bytes(call: Callable[[], object], device: torch.device) -> int | None:
    """The most memory that a call has on the device above what was allocated before; None where torch cannot tell."""
    if device.type == "cpu":
        return _cpu_peak_bytes(call)
    module = getattr(torch, device.type)
    if not all(hasattr(module, name) for name in ("reset_peak_memory_stats", "max_memory_allocated")):
        return None
    module.synchronize(device)
    before = int(module.memory_allocated(device))
    module.reset_peak_memory_stats(device)
    call()
    module.synchronize(device)
    return max(0, int(module.max_memory_allocated(device)) - before)


def _cpu_peak_bytes(call: Callable[[], object]) -> int | None:
    """What torch allocates on this thread and on autograd's; None while another recording is under way."""
    if torch_compat.is_taken():
        call()
        return None
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recording:
        call()
    events = torch_compat.memory_events(recording)
    if events is None:
        return None
    return max(accumulate((size_bytes for _, size_bytes in sorted(events, key=itemgetter(0))), initial=0))

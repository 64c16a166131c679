"""What a benchmark found, shown: as text and HTML."""

from __future__ import annotations

import html
from collections.abc import Iterator

from deepscope.measure.timing import Timing
from deepscope.printable import printable
from deepscope.quantities import bytes_text, count_text, time_text


def timing_text(timing: Timing) -> str:
    """A line for each figure; ends in a newline."""
    return "".join(f"{title:<11}  {text}\n" for title, text in _entries(timing))


def timing_html(timing: Timing) -> str:
    """The same for a notebook; the name is escaped."""
    rows = "".join(
        f'<tr><th style="text-align:left">{html.escape(title)}</th><td>{html.escape(text)}</td></tr>'
        for title, text in _entries(timing)
    )
    return f"<table>{rows}</table>"


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

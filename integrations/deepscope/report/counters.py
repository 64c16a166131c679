"""The columns of the table of counters, and the words about what could not be counted."""

from __future__ import annotations

from collections.abc import Iterator

from deepscope.printable import printable
from deepscope.quantities import bytes_text, time_text
from deepscope.records import CounterSeries, Profile
from deepscope.report.table_column import ColumnOf, field

_BARS = "▁▂▃▄▅▆▇█"
_MOST_BARS = 32
_LEAST_BARS = 2
_MOST_MISSING = 40
"""Sensors that are named."""


def _level(field: str, title: str, explained: str, rank: int = 0) -> ColumnOf:
    def value(row: CounterSeries) -> str:
        return level_text(getattr(row, field), row.unit)

    return ColumnOf(field, title, "text", value, explained, rank, is_numeric=True)


COUNTER_COLUMNS = (
    ColumnOf("counter", "counter", "text", lambda row: row.counter, least=12, is_once=True),
    ColumnOf("series", "of", "text", lambda row: row.series, least=8),
    _level("mean", "mean", "Weighted by time."),
    _level("largest", "peak", "The largest value."),
    _level("smallest", "least", "The smallest value.", 2),
    field("samples", "samples", "count", "That the trace has.", 3, shows_zero=True),
)
"""A row a series: its mean and its extremes."""


def counter_columns(profile: Profile) -> list[ColumnOf]:
    """The same, and how each series went from step to step, as bars."""
    block = "step" if profile.steps_per_block == 1 else f"{profile.steps_per_block} steps"
    return [*COUNTER_COLUMNS, ColumnOf("curve", f"by {block}", "text", _curve, rank=1)]


def _curve(row: CounterSeries) -> str:
    """Means as bars; those of percent stand in a hundred of them, others in the largest."""
    means = [block.mean for block in row.blocks][:_MOST_BARS]
    top = max([100.0 if row.unit == "%" else 0.0, *means])
    if len(means) < _LEAST_BARS or top <= 0:
        return ""
    return "".join(_BARS[min(int(max(mean, 0) / top * len(_BARS)), len(_BARS) - 1)] for mean in means)


def level_text(value: float, unit: str) -> str:
    """A level with its unit: `45.2%`, `1.50GiB`, `12.0MiB/s`, `312 W`; zero, too."""
    if unit == "%":
        return f"{value:.1f}%"
    if unit in ("B", "B/s"):
        return (bytes_text(value) or "0B") + unit[1:]
    if unit == "1/s":
        return f"{_plain(value)}/s"
    return f"{_plain(value)} {unit}".rstrip()


def _plain(value: float) -> str:
    size = abs(value)
    if size >= 1e7:
        return f"{value:.3g}"
    if size >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.1f}" if size >= 10 else f"{value:.2f}" if size >= 0.01 else f"{value:.1g}"


def counter_words(profile: Profile) -> Iterator[str]:
    """How it was sampled, and what could not be counted, each with its reason."""
    account = profile.trace.recording.get("counters")
    if not isinstance(account, dict):
        return
    interval, samples, cost = (account.get(key, 0) for key in ("interval_ns", "samples", "cost_ns"))
    if samples:
        yield (
            f"{samples:,} samples, one each {time_text(interval)}, cost {time_text(cost)} of CPU time "
            "beside the training thread"
        )
    missing = [
        f"{sensor} ({reason})" if reason else sensor for sensor, reason in account.get("missing", [])[:_MOST_MISSING]
    ]
    if missing:
        yield printable("not counted here: " + "; ".join(missing))

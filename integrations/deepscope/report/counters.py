"""The columns of the table of counters, what could not be counted, and how much of the machine was used."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from deepscope.printable import printable
from deepscope.quantities import bytes_text, time_text
from deepscope.records import CounterSeries, Profile, TraceInfo
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
    if not account:
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


_LEAST_TAKEN = 0.05
"""If others take at least this part of the time, the machine is called busy."""
_OTHERS = 0.1
"""Other processes that used a smaller part of the cores were not what took them."""
_RATIOS = ("core_wait_ratio", "throttled_ratio", "stolen_ratio")


def busy_words(info: TraceInfo) -> str:
    """`the machine was busy: …`; "" where it was not, or where that is not known."""
    use = info.recording.get("machine")
    reasons = list(_reasons(use)) if use else []
    return f"the machine was busy: {'; '.join(reasons)}" if reasons else ""


def busy_ratio(info: TraceInfo) -> float:
    """The largest part of the time that others took; 0 where the machine was not busy, or where that is not known."""
    use = info.recording.get("machine")
    ratios = [use.get(name) or 0.0 for name in _RATIOS] if use else []
    return max((ratio for ratio in ratios if ratio >= _LEAST_TAKEN), default=0.0)


def _reasons(use: dict[str, Any]) -> Iterator[str]:
    cores, quota, others = (use.get(name) or 0.0 for name in ("cores", "quota_cores", "others_cores"))
    waited, throttled, stolen = (use.get(name) or 0.0 for name in _RATIOS)
    if waited >= _LEAST_TAKEN:
        who = (
            f"other processes used {others:.1f} of {cores:.0f} cores"
            if others >= _OTHERS * cores > 0
            else "it ran more threads than there are cores"
        )
        yield f"the program waited for a core {waited:.0%} of the time that it could run; {who}"
    if throttled >= _LEAST_TAKEN:
        yield f"the container's quota of {quota:g} cores was used up in {throttled:.0%} of its periods"
    if stolen >= _LEAST_TAKEN:
        yield f"its host gave {stolen:.0%} of its cores' time to other machines"

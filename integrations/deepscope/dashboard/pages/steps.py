"""The steps page: how long steps are, what made the slow ones slow, and the threads, streams and counters meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from deepscope.dashboard.library import Library
from deepscope.dashboard.page_answer import (
    Choice,
    CounterUnit,
    Figure,
    PageAnswer,
    Table,
    place_words,
    table_of,
    unit_named,
    word,
)
from deepscope.dashboard.pages.overview import StepBar, serving_phases, step_bars
from deepscope.records import PHASES, CounterSeries, Profile, Step
from deepscope.report.columns import STREAM_COLUMNS, thread_columns
from deepscope.report.counters import COUNTER_COLUMNS
from deepscope.report.step_table import PERCENTILES, serving_step_columns, step_columns, step_times
from deepscope.report.table_column import ColumnOf, field
from deepscope.trace.format.counters import TRACKS

_SLOW = 5
"""Steps of which it is said what made them slow."""


class SlowStep(PageAnswer):
    """One of the longest steps."""

    number: int
    duration_ns: float
    over_ns: float
    """Over the median of the steps."""
    file: str
    """The line on which its training thread was longer than in other steps, by the most; "" for none."""
    line: int
    place: str
    function: str
    excess_ns: int
    """Its time on that line over the median of the steps."""


class Steps(PageAnswer):
    """Durations are means of the ranks."""

    figures: list[Figure]
    phase_names: list[str]
    bars: list[StepBar]
    slow: list[SlowStep]
    """Longer than the median, the longest first."""
    table: Table
    serving: Table | None
    """The steps of a server of models; None for other programs."""
    serving_phases: Table | None
    threads: Table
    streams: Table
    counter_charts: list[CounterChart]
    """What the machine did meanwhile, by step; empty for several ranks."""
    counters: Table


def steps(library: Library, question: Choice) -> Steps:
    """How long the steps are, and the threads and streams."""
    profile = library.profile(question)
    return Steps(
        figures=_figures(profile),
        phase_names=list(PHASES),
        bars=step_bars(profile),
        slow=_slow(profile),
        table=table_of(
            "steps",
            "Steps",
            _step_columns(profile),
            profile.steps,
            keys=lambda row: str(row.number),
            place=lambda row: (row.slow_file, row.slow_line),
        ),
        serving=table_of(
            "serving_steps",
            "Steps of the server",
            serving_step_columns(profile),
            profile.serving_steps,
            keys=lambda row: str(row.number),
        )
        if profile.serving_steps
        else None,
        serving_phases=serving_phases(profile),
        threads=table_of("threads", "Threads of the CPU", thread_columns(profile), profile.threads),
        streams=table_of("streams", "Streams of the devices", [_STREAM, *STREAM_COLUMNS], profile.streams),
        counter_charts=counter_charts(profile),
        counters=counter_rows(profile),
    )


def _figures(profile: Profile) -> list[Figure]:
    times = step_times(profile)
    if times is None:
        return []
    named = {
        "mean": times.mean_ns,
        "shortest": times.min_ns,
        "median": times.p50_ns,
        **{f"p{one}": getattr(times, f"p{one}_ns") for one in PERCENTILES if one != 50},
        "longest": times.max_ns,
    }
    helps = {f"p{one}": f"{one} % of the steps are not longer." for one in PERCENTILES}
    return [
        Figure("steps", times.count, "count", "That were recorded."),
        *(Figure(name, value, "time", helps.get(name, "")) for name, value in named.items()),
    ]


def _slow(profile: Profile) -> list[SlowStep]:
    times = step_times(profile)
    if times is None:
        return []
    ranks = max(profile.totals.ranks, 1)
    root = profile.trace.project_root
    longest = sorted(profile.steps, key=lambda step: -step.duration_ns)[:_SLOW]
    return [
        SlowStep(
            number=step.number,
            duration_ns=step.duration_ns / ranks,
            over_ns=step.duration_ns / ranks - times.p50_ns,
            file=step.slow_file,
            line=step.slow_line,
            place=place_words(step.slow_file, step.slow_line, root),
            function=word(step.slow_function),
            excess_ns=step.slow_ns,
        )
        for step in longest
        if step.duration_ns / ranks > times.p50_ns
    ]


def _step_columns(profile: Profile) -> list[ColumnOf]:
    root = profile.trace.project_root

    def slow_place(row: Step) -> str:
        return place_words(row.slow_file, row.slow_line, root) if row.slow_ns else ""

    return [
        *step_columns(profile),
        ColumnOf(
            "slow_place",
            "longer than usual at",
            "place",
            slow_place,
            "The line on which the training thread was longer than in other steps, by the most.",
            12,
        ),
        field("slow_ns", "by", "time", "Over the median of the steps.", 12),
    ]


_STREAM = ColumnOf("name", "stream", "text", lambda row: f"device {row.device}, stream {row.stream}")


MOST_LINES = 4
"""Of a chart: the series that are largest in the mean."""


class CounterLine(PageAnswer):
    """One series of a counter."""

    label: str
    values: list[float | None]
    """The mean in each block of steps."""


class CounterChart(PageAnswer):
    """A counter over the steps."""

    title: str
    help: str
    unit: CounterUnit
    steps: list[int]
    """The first step of each block."""
    end: int
    """The step behind the last block."""
    lines: list[CounterLine]
    left_out: int
    """Series that are not drawn."""


def counter_charts(profile: Profile) -> list[CounterChart]:
    """DeepScope's own counters that are known in several steps."""
    own = (row for row in profile.counters if row.is_own)
    grouped = [(title, list(rows)) for title, rows in groupby(own, key=lambda row: row.counter)]
    grouped = [(title, rows) for title, rows in grouped if any(len(row.blocks) > 1 for row in rows)]
    return [_chart(title, rows, profile.steps_per_block) for title, rows in grouped]


def _chart(title: str, rows: Sequence[CounterSeries], per_block: int) -> CounterChart:
    told = (row for row in rows if len(row.blocks) > 1)
    shown = sorted(told, key=lambda row: -row.mean)[:MOST_LINES]
    blocks = sorted({block.block for row in shown for block in row.blocks})
    found = [{block.block: block.mean for block in row.blocks} for row in shown]
    return CounterChart(
        title=word(title),
        help=TRACKS[title].what if title in TRACKS else "",
        unit=unit_named(rows[0].unit),
        steps=[block * per_block for block in blocks],
        end=(blocks[-1] + 1) * per_block,
        lines=[
            CounterLine(label=word(row.series), values=[means.get(block) for block in blocks])
            for row, means in zip(shown, found, strict=True)
        ],
        left_out=len(rows) - len(shown),
    )


def counter_rows(profile: Profile) -> Table:
    """All counters with their means and peaks."""
    return table_of("counters", "The machine meanwhile", COUNTER_COLUMNS, profile.counters, place=lambda _: ("", 0))

"""What the machine did meanwhile: counters by step as small charts, and all of them as a table."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from deepscope.dashboard.answer import PageAnswer, Table
from deepscope.dashboard.pages.tables import table_of
from deepscope.dashboard.pages.words import word
from deepscope.dashboard.units import Unit, unit_named
from deepscope.records import CounterSeries, Profile
from deepscope.report.counters import COUNTER_COLUMNS
from deepscope.trace.format.counters import TRACKS

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
    unit: Unit
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

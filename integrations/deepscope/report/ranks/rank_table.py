"""The table by rank: its numbers, the slowest ranks first, and what is usual below them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

from deepscope.ranks.results import RankRow, RanksReport
from deepscope.report.layout import Column, Style
from deepscope.report.ranks.heat_map import LEVELS, level
from deepscope.report.ranks.tables import rank_numbers
from deepscope.report.style import Styles
from deepscope.report.table_column import ColumnOf, cell_text, text_column

MARK = "▸"


def slowest_first(report: RanksReport) -> list[RankRow]:
    """The ranks by their own time, as `slowest` has them."""
    return sorted(report.ranks, key=lambda row: (-row.own_ns, row.rank))


def rank_columns(report: RanksReport, rows: Sequence[RankRow], styles: Styles) -> list[Column]:
    """The rows, and the median, the least and the most of all ranks below them where some are left out."""
    extra = _summaries(report, is_cut=len(rows) < len(report.ranks))
    marks = report.slowest if len(report.ranks) > len(report.slowest) else []
    titles = [f"{MARK if row.rank in marks else ' '} {row.rank}" if marks else str(row.rank) for row in rows]
    own = median(row.own_ns for row in report.ranks)
    columns = [Column("rank", titles + [name for name, _ in extra])]
    for number in rank_numbers(report):
        known = [value for row in report.ranks if (value := number.value(row)) is not None]
        if any(known):
            below = [_summary(number, function, known) for _, function in extra]
            heat = [_heat(row, own, styles) for row in rows] + [None] * len(extra) if number.key == "own_ns" else None
            column = text_column(number, rows, styles)
            columns.append(replace(column, cells=[*column.cells, *below], styles=heat))
    return columns


_Of = Callable[[Sequence[float]], float]


def _summaries(report: RanksReport, *, is_cut: bool) -> list[tuple[str, _Of]]:
    if len(report.ranks) < 3:
        return []
    return [("median", median), *([("min", min), ("max", max)] if is_cut else [])]


def _summary(number: ColumnOf, function: _Of, known: Sequence[Any]) -> str:
    if number.kind == "text":
        return ""
    value = function(known)
    return cell_text(number, round(value) if number.kind == "count" else value)


def _heat(row: RankRow, own: float, styles: Styles) -> Style | None:
    shade = level(row.own_ns, own)
    shades = [one for _, one in LEVELS]
    return None if shade not in shades else styles.hot if shades.index(shade) < 2 else styles.warm

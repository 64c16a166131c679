"""One column of a table, defined once: terminal, CSV, JSON and dashboard render it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

from deepscope.printable import printable
from deepscope.quantities import bytes_text, count_text, share_text, time_text
from deepscope.report.bars import share
from deepscope.report.layout import Column, cut_end
from deepscope.report.style import Styles
from deepscope.report.wording import per_second_text

Unit = Literal["text", "place", "time", "bytes", "count", "share", "flops", "rate", "bandwidth"]
"""How a value is shown: times in nanoseconds, shares from 0 to 1, rates in FLOP/s, bandwidths in B/s."""


class ColumnOf(NamedTuple):
    """A column, and how a record fills it."""

    key: str
    title: str
    kind: Unit
    value: Callable[[Any], str | int | float | None]
    help: str = ""
    rank: int = 0
    """0 for what is always shown; where there is little room, those with the largest leave first."""
    is_sum: bool = True
    """Whether the numbers of several rows add up; totals overlap."""
    least: int = 0
    """Of a text that a terminal may cut, the cells that it keeps; 0 for a text that is shown whole."""


def text_columns(columns: Sequence[ColumnOf], rows: Sequence[Any], styles: Styles) -> list[Column]:
    """The columns for a terminal, where the texts that name a row, its first ones, stand last."""
    names = next((at for at, one in enumerate(columns) if one.kind != "text"), 0)
    return [text_column(one, rows, styles) for one in (*columns[names:], *columns[:names])]


def text_column(column: ColumnOf, rows: Sequence[Any], styles: Styles) -> Column:
    """One column for a terminal."""
    values = [column.value(row) for row in rows]
    if column.key == "share":
        return share([float(value or 0) for value in values], 1, styles)
    texts = [_text(column.kind, value) for value in values]
    is_text = column.kind in {"text", "place"}
    cut = cut_end if column.least else None
    return Column(column.title, texts, rank=column.rank, right=not is_text, min_width=column.least, cut=cut)


def _text(kind: Unit, value: str | float | None) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return printable(value)
    if kind == "share":
        return share_text(value, 1) or "0%"
    words: dict[Unit, Callable[[Any], str]] = {"time": time_text, "bytes": bytes_text}
    if kind in {"rate", "bandwidth"}:
        return per_second_text(value)
    return words.get(kind, count_text)(value)

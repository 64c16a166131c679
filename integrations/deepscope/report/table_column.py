"""One column of a table, defined once: terminal, CSV, JSON and dashboard render it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, Literal, NamedTuple

from deepscope.printable import printable
from deepscope.quantities import bytes_text, count_text, number_text, rate_text, share_text, time_text
from deepscope.records import Function, Line, Profile
from deepscope.records.lines import NO_LINE
from deepscope.records.source_files import short_place
from deepscope.report.terminal import Style, Styles, TextColumn, cut_end, cut_start

Unit = Literal["text", "place", "time", "bytes", "count", "share", "flops", "rate", "bandwidth"]
"""How a value is shown: times in nanoseconds, shares from 0 to 1, rates in FLOP/s, bandwidths in B/s."""
Heat = Literal["hot", "warm", "good", ""]
"""How a cell stands out in a terminal."""


class ColumnOf(NamedTuple):
    """A column, and how a record fills it."""

    key: str
    title: str
    """Empty for what a terminal alone shows."""
    kind: Unit
    value: Callable[[Any], str | int | float | None]
    help: str = ""
    rank: int = 0
    """0 for what is always shown; where there is little room, those with the largest leave first."""
    is_sum: bool = True
    """Whether the numbers of several rows add up; totals overlap."""
    least: int = 0
    """Of a text that may be cut, the cells that a terminal keeps; 0 for a text that is shown whole."""
    short: str = ""
    """The title in a terminal, where it is shorter; a blank for none."""
    is_numeric: bool = False
    """Whether a text consists of numbers: it stands right in a terminal, and pages have a blank before its units."""
    shows_zero: bool = False
    """Whether a terminal shows 0, where its cell is empty for other numbers."""
    is_name: bool = False
    """Whether a number is a name: 0 is one, too, and thousands are not set apart."""
    is_signed: bool = False
    """Whether a number is a difference: a terminal shows 0, and a plus before more."""
    is_once: bool = False
    """Whether a terminal leaves out what the row above has, too."""
    none: str = ""
    """What a terminal shows for no value."""
    heat: Callable[[Any], Heat] | None = None


_CUT_CELLS = 8


def field(key: str, title: str, kind: Unit, explained: str = "", rank: int = 0, **more: Any) -> ColumnOf:
    """The column of a record's field; texts may be cut."""
    least = {"least": _CUT_CELLS} if kind == "text" else {}
    return ColumnOf(key, title, kind, attrgetter(key), explained, rank, **(least | more))


def text_columns(columns: Sequence[ColumnOf], rows: Sequence[Any], styles: Styles) -> list[TextColumn]:
    """The columns for a terminal, where texts that may be cut, such as a row's name, stand last."""
    return [text_column(one, rows, styles) for one in sorted(columns, key=lambda one: one.least > 0)]


def in_order(columns: Sequence[ColumnOf], rows: Sequence[Any], styles: Styles) -> list[TextColumn]:
    """The columns for a terminal as they stand."""
    return [text_column(one, rows, styles) for one in columns]


def text_column(column: ColumnOf, rows: Sequence[Any], styles: Styles) -> TextColumn:
    """One column for a terminal."""
    values = [column.value(row) for row in rows]
    if column.key == "share":
        return share([float(value or 0) for value in values], 1, styles)
    cells = [cell_text(column, value) for value in values]
    if column.is_once:
        cells = ["" if above == cell else cell for above, cell in zip(["", *cells], cells, strict=False)]
    is_text = column.kind in {"text", "place"} and not column.is_numeric
    return TextColumn(
        column.short or column.title,
        cells,
        rank=column.rank,
        right=not is_text,
        min_width=column.least,
        cut=(cut_start if column.kind == "place" else cut_end) if column.least else None,
        styles=None if column.heat is None else [_style(column.heat(row), styles) for row in rows],
    )


def _style(heat: Heat, styles: Styles) -> Style | None:
    return getattr(styles, heat) if heat else None


def cell_text(column: ColumnOf, value: str | float | None) -> str:
    """A value as a terminal shows it."""
    if value is None:
        return column.none
    if isinstance(value, str) or column.is_name:
        return printable(str(value))
    if column.kind == "share":
        return number_text(value, "share")
    if column.kind in {"rate", "bandwidth"}:
        text = rate_text(round(value * 1000), 10**12, "B/s")
        return text.removesuffix("B/s").replace(" ", "") if column.title.endswith("/s") else text
    words: dict[Unit, Callable[[Any], str]] = {"time": time_text, "bytes": bytes_text}
    text = words.get(column.kind, count_text)(value) or ("0" if column.shows_zero or column.is_signed else "")
    return f"+{text}" if column.is_signed and value > 0 else text


def share_column(field: str, whole: int, explained: str) -> ColumnOf:
    """The column of a field's part of a whole; the part of nothing is none."""
    return ColumnOf("share", "share", "share", lambda row: getattr(row, field) / whole if whole else None, explained)


def place_column(
    profile: Profile, none: Callable[[Any], str] = lambda _: NO_LINE, rank: int = 0, least: int = 12
) -> ColumnOf:
    """The column of rows' lines: `net.py:42`; `none` names what has no line."""
    root = profile.trace.project_root

    def place(row: Any) -> str:
        if getattr(row, "file", ""):
            return short_place(row.file, row.line, root)
        # A damaged trace may have lines and functions of no file.
        return row.function or NO_LINE if isinstance(row, (Line, Function)) else none(row)

    return ColumnOf("place", "line", "place", place, "", rank, least=least)


_EIGHTHS = " ▏▎▍▌▋▊▉"
_WIDTHS = ((140, 12), (100, 8), (0, 4))
"""From this width of the table on, so many cells."""


def share(values: Sequence[float], whole: float, styles: Styles) -> TextColumn:
    """The parts of a whole in percent; the large ones stand out."""
    return TextColumn("share", [share_text(value, whole) for value in values], styles=_heat(values, whole, styles))


def shares(values: Sequence[int], whole: int, width: int, styles: Styles) -> list[TextColumn]:
    """The parts of a whole in percent, and as bars of which the longest fills its cells."""
    cells = next(cells for least, cells in _WIDTHS if width >= least)
    largest = max(values, default=0)
    texts = [bar(value, largest, cells) for value in values] if whole and len(values) > 1 else [""] * len(values)
    bars = TextColumn("", texts, rank=1, right=False, styles=_heat(values, whole, styles))
    return [share(values, whole, styles), bars]


def bar(value: int, largest: int, cells: int) -> str:
    """`███▌`: so many eighths of `cells`; nothing for less than half an eighth."""
    eighths = round(8 * cells * value / largest) if value > 0 and largest > 0 else 0
    full, rest = divmod(eighths, 8)
    return "█" * full + _EIGHTHS[rest].strip()


def _heat(values: Sequence[float], whole: float, styles: Styles) -> list[Style | None]:
    return [
        styles.hot if whole and value >= whole / 5 else styles.warm if whole and value >= whole / 20 else None
        for value in values
    ]

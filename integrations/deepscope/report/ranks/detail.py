"""One rank in detail, for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from deepscope.printable import printable
from deepscope.quantities import number_text, time_text
from deepscope.ranks.rank_detail import NumberComparison, RankDetail
from deepscope.ranks.ranks_report import RanksReport
from deepscope.records.source_files import short_path
from deepscope.report.event_names import readable
from deepscope.report.ranks.sentences import above_text, collective_name, late_entries, step_unit
from deepscope.report.ranks.tables import CLOCK_COLUMNS, COLLECTIVE_COLUMNS, FROM_TO, PAIR_COLUMNS, RANK, line_column
from deepscope.report.ranks.text import more_lines, titled
from deepscope.report.table_column import ColumnOf, Heat, field, in_order
from deepscope.report.terminal import MIN_WIDTH, Styles, cut_start, entries_text, render

ROWS = 10
NUMBERS = {
    "step_ns": "step",
    "own_ns": "own time",
    "compute_ns": "compute",
    "communication_ns": "communication",
    "exposed_ns": "  exposed",
    "overlapped_ns": "  overlapped",
    "idle_ns": "device idle",
    "data_ns": "data",
    "sync_ns": "waiting for the device",
    "waited_ns": "waiting for other ranks",
    "last": "collectives it was last to",
    "matched": "collectives matched",
    "steps": "steps recorded",
    "peak_bytes": "peak memory",
}
"""Words for fields of `RankRow`; a number that is part of the one before it stands further right."""
_MARKED_FROM = 0.05
"""Differences from this share of a step on are marked."""


def rank_text(
    detail: RankDetail, report: RanksReport, *, limit: int | None = None, width: int = 80, color: bool = False
) -> str:
    """The rank beside the median of the others, for a terminal `width` cells wide; ends in a newline.

    Args:
        detail: of one rank.
        report: what it is part of.
        limit: rows of each table, 0 for all; None for what fits a screen.
        width: in terminal cells.
        color: with escape sequences of a terminal.
    """
    styles, width = Styles(color), max(MIN_WIDTH, width)
    size = ROWS if limit is None else limit
    lines = list(entries_text(_head(detail, report, width), width, styles))
    for title, about, section in _sections(detail, report, size, width, styles):
        lines += ["", titled(title, about, width, styles), *section]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _head(detail: RankDetail, report: RanksReport, width: int) -> Iterator[tuple[str, str]]:
    row = detail.row
    yield "rank", f"{row.rank} of {report.world_size:,}" + (f" on {printable(row.host)}" if row.host else "")
    yield "trace", cut_start(printable(short_path(detail.path)), width - 8)
    if row.device:
        yield "device", printable(row.device)
    yield "here", rank_sentence(detail, report)


def rank_sentence(detail: RankDetail, report: RanksReport) -> str:
    """How long its step is without communication, beside the others."""
    own = detail.row.own_ns
    if not detail.others:
        return "the only rank: there is nothing to hold it beside"
    typical = next((one.typical for one in detail.numbers if one.name == "own_ns"), None) or 0
    above = above_text(own, typical)
    beside = "the other rank's" if detail.others == 1 else f"the median of the {detail.others:,} others"
    middle = f"{beside} is {time_text(typical) or '0'}"
    words = f"{time_text(own) or '0'}{step_unit(report)} without communication; {middle}"
    return f"{words} ({above})" if above else words


_Section = tuple[str, str, list[str]]


def _sections(detail: RankDetail, report: RanksReport, size: int, width: int, styles: Styles) -> Iterator[_Section]:
    unit = f"times{step_unit(report)}"
    yield (
        "Numbers",
        f"{unit}; beside the median of the others" if detail.others else unit,
        _table(_numbers(detail), detail.numbers, width, styles),
    )
    if detail.straggler is not None:
        yield "Why it is late", "", list(entries_text(late_entries(report, detail.straggler), width, styles))

    def section(columns: Sequence[ColumnOf], rows: Sequence[Any]) -> list[str]:
        shown = rows[:size] if size else rows
        more = more_lines(len(shown), len(rows), "-n 0 shows all", styles)
        return [*_table(columns, shown, width, styles), *more]

    if detail.lines:
        *columns, source = lines_beside(detail)
        columns.append(source._replace(value=lambda row: row.text or row.function))
        yield "Critical path", f"{unit}, without communication", section(columns, detail.lines)
    if detail.collectives:
        yield "Its collectives", unit, section(collectives_beside(detail), detail.collectives)
    if detail.late:
        yield "Where it comes last", "more often than any other rank", section(COLLECTIVE_COLUMNS, detail.late)
    if detail.pairs:
        yield "Its messages", "of all steps", section((*FROM_TO, *PAIR_COLUMNS), detail.pairs)
    if detail.work:
        which = "those that differ most" if detail.others else "the largest"
        yield "Operators and kernels", f"{unit}; {which}", section(work_beside(detail), detail.work)
    if detail.clock is not None:
        yield "Its clock", "", _table((RANK, *CLOCK_COLUMNS), [detail.clock], width, styles)
    if detail.failures:
        entries = [("trace", printable(f"{one.path}: {one.message}")) for one in detail.failures]
        yield "Left out", "", list(entries_text(entries, width, styles))


def _table(columns: Sequence[ColumnOf], rows: Sequence[Any], width: int, styles: Styles) -> list[str]:
    return render(in_order(columns, rows, styles), width, title_style=styles.title)


def _numbers(detail: RankDetail) -> list[ColumnOf]:
    def text(field: str) -> Callable[[NumberComparison], str]:
        def value(row: NumberComparison) -> str:
            found = getattr(row, field)
            return "" if found is None else number_text(found, row.kind)

        return value

    def name(row: NumberComparison) -> str:
        return NUMBERS.get(row.name) or row.name.replace("part: ", "  ")

    def more(row: NumberComparison) -> str:
        change = _more(row)
        return "" if change is None else ("+" if change > 0 else "") + number_text(change, row.kind)

    return [
        ColumnOf("name", "number", "text", name, least=16),
        ColumnOf("value", f"rank {detail.row.rank}", "text", text("value"), is_numeric=True),
        ColumnOf("typical", "others", "text", text("typical"), is_numeric=True),
        ColumnOf("more", "more", "text", more, rank=1, is_numeric=True,
                 heat=lambda row: _heat(row, detail.row.step_ns) if row.kind == "time" else ""),
        _ABOVE,
    ]  # fmt: skip


def lines_beside(detail: RankDetail) -> list[ColumnOf]:
    """Lines of the critical path, and their texts."""
    source = field("text", "source", "text", rank=3, least=16)
    return [line_column(detail.project_root), *_beside(detail, detail.row.step_ns), source]


def collectives_beside(detail: RankDetail) -> list[ColumnOf]:
    """Collectives by kind, group, type and size."""
    return [
        ColumnOf("kind", "collective", "text", lambda row: collective_name(row.kind), least=14),
        field("group", "group", "text", rank=5),
        field("dtype", "type", "text", rank=7),
        ColumnOf("size", "size", "bytes", lambda row: row.size_class_bytes, "Of a message, at least.", 6),
        *_beside(detail),
        *_calls(detail),
    ]


def work_beside(detail: RankDetail) -> list[ColumnOf]:
    """Operators and kernels."""
    name = ColumnOf("name", "operator or kernel", "text", lambda row: readable(row.name), least=16)
    return [name, *_beside(detail), *_calls(detail)]


def _beside(detail: RankDetail, step_ns: int = 0) -> list[ColumnOf]:
    here = ColumnOf("value_ns", "here", "time", lambda row: row.value, "A step.", shows_zero=True)
    if not detail.others:
        return [here]
    return [
        here,
        ColumnOf("typical_ns", "others", "time", lambda row: row.typical, "Their median, a step.", shows_zero=True),
        ColumnOf("more_ns", "more", "time", _more, "Than the median of the others.", 1, is_signed=True,
                 heat=lambda row: _heat(row, step_ns)),
        _ABOVE,
    ]  # fmt: skip


def _calls(detail: RankDetail) -> list[ColumnOf]:
    calls = field("calls", "calls", "count", "A step.", 2, shows_zero=True)
    if not detail.others:
        return [calls]
    return [
        calls,
        ColumnOf(
            "typical_calls",
            "their calls",
            "count",
            lambda row: row.typical_calls if row.typical_calls != row.calls else None,
            "The median of the others, a step, where it differs.",
            4,
            short="others'",
            shows_zero=True,
        ),
    ]


def _more(row: Any) -> int | None:
    return None if row.value is None or row.typical is None else row.value - row.typical


def _heat(row: Any, step_ns: int) -> Heat:
    return "hot" if step_ns and (_more(row) or 0) > _MARKED_FROM * step_ns else ""


def _above(row: Any) -> str:
    return above_text(row.value, row.typical) if row.value is not None and row.typical else ""


_ABOVE = ColumnOf("above", "", "text", _above, rank=2, is_numeric=True)

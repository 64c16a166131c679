"""One rank in detail, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from deepscope.printable import printable
from deepscope.quantities import bytes_text, count_text, time_text
from deepscope.ranks.detail import CollectiveBeside, LineBeside, NumberBeside, RankDetail, WorkBeside
from deepscope.ranks.results import RanksReport
from deepscope.records.places import short_path, short_place
from deepscope.report.event_names import readable
from deepscope.report.layout import Column, Style, cut_end, cut_start, render
from deepscope.report.ranks.tables import COLLECTIVE_COLUMNS, clock_texts, in_order, pair_texts
from deepscope.report.ranks.words import above_text, collective_name, late_entries, step_unit
from deepscope.report.style import Styles
from deepscope.report.text import MIN_WIDTH, entries_text

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
_WORTH = 0.05
"""A difference of less of a step is not marked."""


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
    for title, told, section in _sections(detail, report, size, width, styles):
        lines += ["", styles.heading(title) + (f"  {styles.quiet(told)}" if told else ""), *section]
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
    told = f"{time_text(own) or '0'}{step_unit(report)} without communication; {middle}"
    return f"{told} ({above})" if above else told


_Row = TypeVar("_Row")
_Section = tuple[str, str, list[str]]


def _sections(detail: RankDetail, report: RanksReport, size: int, width: int, styles: Styles) -> Iterator[_Section]:
    unit = f"times{step_unit(report)}"
    numbers = detail.numbers
    yield (
        "Numbers",
        f"{unit}; beside the median of the others" if detail.others else unit,
        _table(_numbers(numbers, detail, styles), width, styles),
    )
    if detail.straggler is not None:
        yield "Why it is late", "", list(entries_text(late_entries(report, detail.straggler), width, styles))
    if lines := _cut(detail.lines, size):
        yield "Critical path", f"{unit}, without communication", _table(_lines(lines, detail, styles), width, styles)
    if collectives := _cut(detail.collectives, size):
        yield "Its collectives", unit, _table(_collectives(collectives, detail, styles), width, styles)
    if late := _cut(detail.late, size):
        yield (
            "Where it comes last",
            "more often than any other rank",
            _table(in_order(COLLECTIVE_COLUMNS, late, styles), width, styles),
        )
    if pairs := _cut(detail.pairs, size):
        yield "Its messages", "of all steps", _table(pair_texts(pairs, styles), width, styles)
    if work := _cut(detail.work, size):
        which = "those that differ most" if detail.others else "the largest"
        yield "Operators and kernels", f"{unit}; {which}", _table(_work(work, detail, styles), width, styles)
    if detail.clock is not None:
        yield "Its clock", "", _table(clock_texts([detail.clock], styles), width, styles)
    if detail.failures:
        entries = [("trace", printable(f"{one.path}: {one.message}")) for one in detail.failures]
        yield "Left out", "", list(entries_text(entries, width, styles))


def _cut(rows: Sequence[_Row], size: int) -> Sequence[_Row]:
    return rows[:size] if size else rows


def _table(columns: Sequence[Column], width: int, styles: Styles) -> list[str]:
    return render(columns, width, title_style=styles.title)


def _numbers(rows: Sequence[NumberBeside], detail: RankDetail, styles: Styles) -> list[Column]:
    words = [NUMBERS.get(row.name) or printable(row.name.replace("part: ", "  ")) for row in rows]
    return [
        Column("number", words, right=False, min_width=16, cut=cut_end),
        Column(f"rank {detail.row.rank}", [_number(row.value, row.kind) for row in rows]),
        Column("others", [_number(row.typical, row.kind) for row in rows]),
        *_differences(
            [(row.value, row.typical) for row in rows],
            [row.kind for row in rows],
            detail.row.step_ns,
            styles,
        ),
    ]


def _lines(rows: Sequence[LineBeside], detail: RankDetail, styles: Styles) -> list[Column]:
    places = [printable(short_place(row.file, row.line, detail.project_root)) for row in rows]
    return [
        Column("line", places, right=False, min_width=16, cut=cut_start),
        *_beside(rows, styles, detail, detail.row.step_ns),
        Column("source", [printable(row.text or row.function) for row in rows], right=False, rank=3, min_width=16,
               cut=cut_end),
    ]  # fmt: skip


def _collectives(rows: Sequence[CollectiveBeside], detail: RankDetail, styles: Styles) -> list[Column]:
    return [
        Column("collective", [collective_name(row.kind) for row in rows], right=False, min_width=14, cut=cut_end),
        Column("group", [printable(row.group) for row in rows], right=False, rank=5, min_width=8, cut=cut_end),
        Column("type", [printable(row.dtype) for row in rows], right=False, rank=7, min_width=8, cut=cut_end),
        Column("size", [bytes_text(row.size_class_bytes) for row in rows], rank=6),
        *_beside(rows, styles, detail),
        *_calls(rows, detail),
    ]


def _work(rows: Sequence[WorkBeside], detail: RankDetail, styles: Styles) -> list[Column]:
    return [
        Column("operator or kernel", [printable(readable(row.name)) for row in rows], right=False, min_width=16,
               cut=cut_end),
        *_beside(rows, styles, detail),
        *_calls(rows, detail),
    ]  # fmt: skip


def _beside(
    rows: Sequence[LineBeside | CollectiveBeside | WorkBeside], styles: Styles, detail: RankDetail, step_ns: int = 0
) -> list[Column]:
    pairs: list[tuple[float | None, float | None]] = [(row.value, row.typical) for row in rows]
    here = Column("here", [time_text(row.value) or "0" for row in rows])
    if not detail.others:
        return [here]
    return [
        here,
        Column("others", [time_text(row.typical) or "0" for row in rows]),
        *_differences(pairs, ["time"] * len(rows), step_ns, styles),
    ]


def _calls(rows: Sequence[CollectiveBeside | WorkBeside], detail: RankDetail) -> list[Column]:
    calls = Column("calls", [count_text(row.calls) or "0" for row in rows], rank=2)
    if not detail.others:
        return [calls]
    return [
        calls,
        Column(
            "others'",
            [(count_text(row.typical_calls) or "0") if row.typical_calls != row.calls else "" for row in rows],
            rank=4,
        ),
    ]


def _differences(
    pairs: Sequence[tuple[float | None, float | None]], kinds: Sequence[str], step_ns: int, styles: Styles
) -> list[Column]:
    changes = [None if one is None or other is None else one - other for one, other in pairs]
    heat: list[Style | None] = [
        styles.hot if kind == "time" and change is not None and step_ns and change > _WORTH * step_ns else None
        for change, kind in zip(changes, kinds, strict=True)
    ]
    texts = ["" if change is None else _signed(change, kind) for change, kind in zip(changes, kinds, strict=True)]
    shares = [above_text(one, other) if one is not None and other else "" for one, other in pairs]
    return [Column("more", texts, rank=1, styles=heat), Column("", shares, rank=2)]


def _number(value: float | None, kind: str) -> str:
    if value is None:
        return ""
    words = {"time": time_text, "bytes": bytes_text}.get(kind)
    return (words(value) if words else count_text(round(value))) or "0"


def _signed(change: float, kind: str) -> str:
    return ("+" if change > 0 else "") + _number(change, kind)

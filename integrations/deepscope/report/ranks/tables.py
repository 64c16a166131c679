"""Columns of the tables across ranks, but that by rank: groups, collectives, pairs, clocks, operators, late ranks."""

from __future__ import annotations

from collections.abc import Sequence

from deepscope.printable import printable
from deepscope.quantities import bytes_text, count_text, rate_text, time_text
from deepscope.ranks.results import (
    Clock,
    CollectiveRow,
    GroupRow,
    PairRow,
    RanksReport,
    Straggler,
    VaryingLine,
    VaryingRow,
)
from deepscope.records.places import short_place
from deepscope.report.column_kinds import counts, names, sizes, times
from deepscope.report.event_names import readable
from deepscope.report.layout import Column, cut_end, cut_start
from deepscope.report.ranks.words import CAUSES, collective_name, group_name, line_place
from deepscope.report.style import Styles

_SHORT = 8
_RANKS = 12


def group_columns(rows: Sequence[GroupRow], styles: Styles) -> list[Column]:
    """Process groups; times are sums over their calls and ranks."""
    del styles
    return [
        _text("group", [group_name(row.name, row.description) for row in rows], least=12),
        _text("for", [row.role for row in rows]),
        _text("ranks", [printable(row.ranks) for row in rows], least=_RANKS),
        counts("size", [row.size for row in rows], rank=6),
        Column("here", [str(row.here) if row.here < row.size else "" for row in rows], rank=5),
        counts("calls", [row.calls for row in rows], rank=4),
        times("time", [row.time_ns for row in rows]),
        times("exposed", [row.exposed_ns for row in rows], rank=3),
        Column("waited", [_known(row.wait_ns) for row in rows], rank=1),
        sizes("bytes", [row.bytes for row in rows], rank=2),
    ]


def collective_columns(rows: Sequence[CollectiveRow], styles: Styles) -> list[Column]:
    """Collectives; the rank that is last to most calls stands at the end."""
    del styles
    return [
        _text("collective", [collective_name(row.kind) for row in rows], least=14),
        _text("group", [row.role or group_name(row.group, "") for row in rows], rank=5),
        _text("ranks", [printable(row.group_ranks) for row in rows], rank=7),
        _text("type", [printable(row.dtype) for row in rows], rank=8),
        Column("message", [bytes_text(row.bytes // row.calls) if row.calls else "" for row in rows], rank=4),
        counts("calls", [row.calls for row in rows], rank=3),
        Column("matched", [count_text(row.matched) or "0" for row in rows], rank=9),
        times("time", [row.time_ns for row in rows]),
        Column("transfer", [_known(row.transfer_ns) for row in rows], rank=1),
        Column("waited", [_known(row.wait_ns) for row in rows], rank=1),
        Column("spread", [_known(row.spread_ns) for row in rows], rank=2),
        Column("most", [_known(row.max_spread_ns) for row in rows], rank=10),
        Column("bus", [_rate(row.bus_bytes_per_s) for row in rows], rank=3),
        Column("last", [_last(row) for row in rows], rank=2, right=False),
    ]


def pair_columns(rows: Sequence[PairRow], styles: Styles) -> list[Column]:
    """Messages from one rank to another, the largest time first."""
    del styles
    return [
        Column("from", [str(row.source) for row in rows]),
        Column("to", [str(row.target) for row in rows]),
        counts("messages", [row.messages for row in rows], rank=1),
        sizes("bytes", [row.bytes for row in rows]),
        times("time", [row.time_ns for row in rows]),
        Column("transfer", [_known(row.transfer_ns) for row in rows], rank=2),
        Column("rate", [_rate(row.bytes_per_s) for row in rows], rank=3),
    ]


def clock_columns(rows: Sequence[Clock], styles: Styles) -> list[Column]:
    """What is added to each rank's times, and how far matched calls lie apart after that."""
    del styles
    offsets = ["unknown" if row.offset_ns is None else _signed(row.offset_ns) for row in rows]
    return [
        Column("rank", [str(row.rank) for row in rows]),
        Column("offset", offsets),
        Column("residual", ["" if row.offset_ns is None else _known(row.residual_ns) for row in rows]),
        counts("calls", [row.calls for row in rows]),
    ]


def varying_columns(rows: Sequence[VaryingRow], styles: Styles) -> list[Column]:
    """Operators and kernels by how much they differ over the ranks."""
    del styles
    return [
        names("operator or kernel", [readable(row.name) for row in rows]),
        *_over_ranks(rows),
        Column("calls", ["differ" if row.calls_differ else "" for row in rows], rank=4, right=False),
    ]


def line_columns(report: RanksReport, rows: Sequence[VaryingLine], styles: Styles) -> list[Column]:
    """Lines by how much their own time differs over the ranks."""
    del styles
    places = [printable(short_place(row.file, row.line, report.project_root)) for row in rows]
    return [
        Column("line", places, right=False, min_width=16, cut=cut_start),
        *_over_ranks(rows),
        _text("function", [printable(row.function) for row in rows], rank=5),
    ]


def _over_ranks(rows: Sequence[VaryingRow | VaryingLine]) -> list[Column]:
    return [
        Column("median", [_known(row.median_ns) for row in rows], rank=1),
        Column("least", [_known(row.min_ns) for row in rows], rank=2),
        Column("on", [f"rank {row.min_rank}" for row in rows], rank=3, right=False),
        Column("most", [_known(row.max_ns) for row in rows]),
        Column("on", [f"rank {row.max_rank}" for row in rows], right=False),
    ]


def straggler_columns(report: RanksReport, rows: Sequence[Straggler], styles: Styles) -> list[Column]:
    """Late ranks, the worst first, with the line that made each late."""
    return [
        Column("rank", [str(row.rank) for row in rows], styles=[styles.hot] * len(rows)),
        Column("late", [_known(row.excess_ns) for row in rows]),
        Column("held up", [_known(row.held_ns) for row in rows], rank=2),
        Column("last", [_of(row.late_calls, row.calls) for row in rows], rank=3),
        Column("by", [CAUSES[row.cause] for row in rows], rank=1, right=False),
        Column("part", [printable(row.part) for row in rows], rank=5, right=False),
        Column("line", [line_place(row, report.project_root) if row.file else "" for row in rows], right=False,
               min_width=12, cut=cut_start),
        Column("longer", [time_text(row.line_ns) if row.file else "" for row in rows], rank=3),
        _text("source", [printable(row.text) for row in rows], rank=4, least=16),
    ]  # fmt: skip


def _last(row: CollectiveRow) -> str:
    return "" if row.last_rank is None else f"rank {row.last_rank} ({_of(row.last_calls, row.matched)})"


def _of(part: int, whole: int) -> str:
    return f"{part:,} of {whole:,}" if whole else ""


def _known(value: int | None) -> str:
    return "" if value is None else time_text(value) or "0"


def _rate(bytes_per_s: int | None) -> str:
    return rate_text(bytes_per_s, 10**9, "B/s") if bytes_per_s else ""


def _signed(value: int) -> str:
    return ("+" if value > 0 else "") + (time_text(value) or "0")


def _text(title: str, texts: Sequence[str], rank: int = 0, least: int = _SHORT) -> Column:
    return Column(title, texts, rank=rank, right=False, min_width=least, cut=cut_end)

"""Columns of tables across ranks: ranks, groups, collectives, pairs, clocks, operators, lines, late ranks, Ascend's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

from deepscope.ranks.ranks_report import CollectiveRow, LinkRow, RankRow, RanksReport
from deepscope.records.source_files import short_place
from deepscope.report.event_names import readable
from deepscope.report.ranks.heat_map import LEVELS, level
from deepscope.report.ranks.sentences import CAUSES, collective_name, group_name, median_own
from deepscope.report.table_column import ColumnOf, cell_text, field, text_column
from deepscope.report.terminal import Style, Styles, TextColumn

_SHORT = 8


def rank_numbers(report: RanksReport) -> list[ColumnOf]:
    """The numbers of a rank, then where it ran, where ranks differ in that."""
    numbers = [
        field("own_ns", "own", "time", "The step without the part in which only communication runs."),
        field("step_ns", "step", "time", "Mean length of a step."),
        field("compute_ns", "compute", "time", "Work that is no collective; without a device operators' own time.", 1),
        field("communication_ns", "communication", "time", "In collectives, summed.", 1, short="comm."),
        ColumnOf(
            "overlap",
            "overlap",
            "share",
            lambda row: row.overlapped_ns / row.communication_ns if row.communication_ns else None,
            "The part of communication that computation overlaps.",
            4,
        ),
        field("idle_ns", "device idle", "time", "When no stream of a device works.", 3, short="idle"),
        field("data_ns", "data", "time", "Loading data, on the training thread.", 5),
        field(
            "waited_ns",
            "waiting for others",
            "time",
            "In collectives, until the last rank has come.",
            2,
            short="waited",
        ),
        field("last", "came last", "count", "Calls of collectives that this rank came to last.", 2, short="last"),
        field("exposed_ns", "exposed", "time", "The part of communication that no computation overlaps.", 6),
        field("sync_ns", "waiting for device", "time", "CPU time in calls that wait for the device.", 7, short="sync"),
        field("peak_bytes", "peak memory", "bytes", "The most that was allocated at once.", 8, short="memory"),
        field("steps", "steps", "count", "Recorded steps.", 11),
    ]
    places = [field("host", "host", "text", rank=9), field("device", "device", "text", rank=10)]
    differing = [one for one in places if len({one.value(row) for row in report.ranks}) > 1]
    return [*(one._replace(shows_zero=True) for one in numbers), *differing]


def _last(row: CollectiveRow) -> str:
    return "" if row.last_rank is None else f"rank {row.last_rank} ({_of(row.last_calls, row.matched)})"


def _of(part: int, whole: int) -> str:
    return f"{part:,} of {whole:,}" if whole else ""


GROUP_COLUMNS = (
    ColumnOf("group", "group", "text", lambda row: group_name(row.name, row.description) or "unnamed", least=12),
    field("role", "for", "text", "What the group is for, where it can be told."),
    field("ranks", "ranks", "text", least=12),
    field("size", "size", "count", rank=6),
    ColumnOf(
        "here",
        "here",
        "count",
        lambda row: row.here if row.here < row.size else None,
        "Ranks of it of which there is a trace, where not all have one.",
        5,
        is_name=True,
    ),
    field("calls", "calls", "count", rank=4),
    field("time_ns", "time", "time", "Of all calls and ranks."),
    field("exposed_ns", "exposed", "time", "Of it, what no computation overlaps.", 3),
    field("wait_ns", "waited", "time", "Of it, waiting for the last rank to come.", 1, shows_zero=True),
    field("bytes", "bytes", "bytes", "Of all messages.", 2),
)
"""Process groups; times are sums over their calls and ranks."""

COLLECTIVE_COLUMNS = (
    ColumnOf("kind", "collective", "text", lambda row: collective_name(row.kind), least=14),
    ColumnOf("group", "group", "text", lambda row: row.role or group_name(row.group, ""), rank=5, least=_SHORT),
    field("group_ranks", "ranks", "text", rank=7),
    field("dtype", "type", "text", rank=8),
    ColumnOf(
        "message_bytes",
        "message",
        "bytes",
        lambda row: row.bytes // row.calls if row.calls and row.bytes else None,
        "Size of a message: the larger of what goes into a rank and what comes out.",
        4,
    ),
    field("calls", "calls", "count", "Of one rank.", 3),
    field("matched", "matched", "count", "Calls found on every rank of the group.", 9, shows_zero=True),
    field("ranks", "here", "count", "Ranks in this row.", 11),
    field("time_ns", "time", "time", "Of all calls and ranks."),
    field(
        "transfer_ns",
        "transfer",
        "time",
        "Of matched calls, the shortest over the ranks: nobody waits on the rank that comes last.",
        1,
        shows_zero=True,
    ),
    field("wait_ns", "waited", "time", "Of matched calls and all ranks, what is longer than that.", 1, shows_zero=True),
    field(
        "spread_ns",
        "arrival spread",
        "time",
        "From the first rank's coming to the last one's, the mean over the matched calls.",
        2,
        short="spread",
        shows_zero=True,
    ),
    field("max_spread_ns", "largest spread", "time", "Of a single call.", 10, short="most", shows_zero=True),
    field(
        "bus_bytes_per_s",
        "bus bandwidth",
        "bandwidth",
        "What each link must have carried in the transfer time, as nccl-tests counts.",
        3,
        short="bus",
    ),
    ColumnOf("late", "last to come", "text", _last, "The rank that came last to most calls.", 2, short="last"),
)
"""Collectives; the rank that is last to most calls stands at the end."""

RANK = field("rank", "rank", "count", is_name=True)
FROM_TO = (field("source", "from", "count", is_name=True), field("target", "to", "count", is_name=True))
"""Of what goes from one rank to another."""

PAIR_COLUMNS = (
    field("messages", "messages", "count", rank=1),
    field("bytes", "bytes", "bytes"),
    field("time_ns", "time", "time", "Of the receiving calls, else of the sending ones."),
    field("transfer_ns", "transfer", "time", "The shorter call of both sides, summed.", 2, shows_zero=True),
    field(
        "bytes_per_s",
        "rate",
        "bandwidth",
        "Of messages found on both sides, by the transfer time; else by the time.",
        3,
    ),
)
"""Messages from one rank to another, behind `FROM_TO`."""

CLOCK_COLUMNS = (
    field("offset_ns", "offset", "time", "Added to its times, to be on one clock.", is_signed=True, none="unknown"),
    ColumnOf(
        "residual_ns",
        "residual",
        "time",
        lambda row: None if row.offset_ns is None else row.residual_ns,
        "How far the ends of matched calls still lie apart: the median.",
        shows_zero=True,
    ),
    field("calls", "calls", "count", "By which it is known."),
)
"""What is added to each rank's times, and how far matched calls lie apart after that; behind the rank."""

_OVER_RANKS = (
    ColumnOf(
        "range_ns",
        "difference",
        "time",
        lambda row: row.max_ns - row.min_ns,
        "Between the ranks with the most and the least of it, in a step.",
        6,
    ),
    field("median_ns", "median", "time", "Of the ranks, in a step.", 1, shows_zero=True),
    field("min_ns", "least", "time", "In a step.", 2, shows_zero=True),
    ColumnOf("min_rank", "least on", "text", lambda row: f"rank {row.min_rank}", rank=3, short="on"),
    field("max_ns", "most", "time", "In a step.", shows_zero=True),
    ColumnOf("max_rank", "most on", "text", lambda row: f"rank {row.max_rank}", short="on"),
)

VARYING_COLUMNS = (
    ColumnOf("name", "operator or kernel", "text", lambda row: readable(row.name), least=16),
    *_OVER_RANKS,
    ColumnOf(
        "calls",
        "calls",
        "text",
        lambda row: "differ" if row.calls_differ else "",
        "Whether ranks call it a different number of times a step.",
        4,
    ),
)
"""Operators and kernels by how much they differ over the ranks."""


def line_columns(report: RanksReport) -> list[ColumnOf]:
    """Lines by how much their own time differs over the ranks."""
    return [line_column(report.project_root), *_OVER_RANKS, field("function", "function", "text", rank=5)]


def line_column(root: str) -> ColumnOf:
    """Where a row's line stands."""

    def place(row: Any) -> str:
        return short_place(row.file, row.line, root) if row.file else ""

    return ColumnOf("place", "line", "place", place, least=16)


def straggler_columns(report: RanksReport) -> list[ColumnOf]:
    """Late ranks, with the line that made each late."""
    return [
        RANK._replace(heat=lambda _: "hot"),
        field("excess_ns", "late", "time", shows_zero=True),
        field("held_ns", "held up", "time", rank=2, shows_zero=True),
        ColumnOf("late_calls", "last", "text", lambda row: _of(row.late_calls, row.calls), rank=3, is_numeric=True),
        ColumnOf("cause", "by", "text", lambda row: CAUSES[row.cause], rank=1),
        ColumnOf("part", "part", "text", lambda row: row.part, rank=5),
        line_column(report.project_root)._replace(least=12),
        ColumnOf("line_ns", "longer", "time", lambda row: row.line_ns if row.file else None, rank=3),
        field("text", "source", "text", rank=4, least=16),
    ]


MARK = "▸"


def slowest_first(report: RanksReport) -> list[RankRow]:
    """The ranks by their own time, as `slowest` has them."""
    return sorted(report.ranks, key=lambda row: (-row.own_ns, row.rank))


def rank_columns(report: RanksReport, rows: Sequence[RankRow], styles: Styles) -> list[TextColumn]:
    """The rows, and the median, the least and the most of all ranks below them where some are left out."""
    extra = _summaries(report, is_cut=len(rows) < len(report.ranks))
    marks = report.slowest if len(report.ranks) > len(report.slowest) else []
    titles = [f"{MARK if row.rank in marks else ' '} {row.rank}" if marks else str(row.rank) for row in rows]
    own = median_own(report)
    columns = [TextColumn("rank", titles + [name for name, _ in extra])]
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


_SLOW = 0.8
"""A link below this part of its transport's median is marked."""


def is_slow(row: LinkRow) -> bool:
    """Whether a link is slow beside others of its transport."""
    return row.bytes_per_s is not None and row.bytes_per_s < _SLOW * (row.typical_bytes_per_s or 0)


DOMAIN_COLUMNS = (
    ColumnOf("domain", "domain", "text", lambda row: row.domain or row.role or row.group, least=6),
    field("role", "for", "text", "What the group is for, where its name tells.", 7),
    field("ranks", "ranks", "text"),
    ColumnOf(
        "here",
        "here",
        "text",
        lambda row: f"{row.here} of {row.size}" if row.here < row.size else "",
        "Ranks of it that have a table.",
        8,
        is_numeric=True,
    ),
    ColumnOf("kind", "collective", "text", lambda row: collective_name(row.kind), rank=4, least=10),
    field("calls", "calls", "count", "Of all ranks.", 5),
    field("elapsed_ns", "time", "time", "Transit, waiting and idle."),
    field("transit_ns", "transit", "time", "Data moves."),
    field("wait_ns", "waited", "time", "For the other side.", shows_zero=True),
    ColumnOf(
        "share",
        "share",
        "share",
        lambda row: row.wait_ns / row.elapsed_ns if row.elapsed_ns else None,
        "Of the time, what is waited.",
        3,
    ),
    field(
        "synchronization_ns",
        "sync",
        "time",
        "Of the waiting, what is before the first transfer: a late rank causes it.",
        2,
    ),
    field("idle_ns", "idle", "time", "Between pieces of a call nothing was queued.", 6),
    ColumnOf(
        "awaited",
        "awaits",
        "text",
        lambda row: "" if row.awaited_rank is None else f"rank {row.awaited_rank}",
        "The rank that waits least: the others wait for it.",
        1,
    ),
)
"""Process groups by what they are for; times are sums over their calls and ranks."""

LINK_COLUMNS = (
    field("transport", "over", "text", "HCCS, PCIE, SIO and SDMA are within a node.", least=4),
    ColumnOf("domains", "domain", "text", lambda row: ", ".join(row.domains), rank=3, least=6),
    field("bytes", "bytes", "bytes", rank=1),
    field("time_ns", "time", "time"),
    field("bytes_per_s", "rate", "bandwidth", "Bytes over time.", heat=lambda row: "hot" if is_slow(row) else ""),
    field("typical_bytes_per_s", "median", "bandwidth", "Of the rates of all links over this transport.", 2),
    ColumnOf("slow", "note", "text", lambda row: "slow" if is_slow(row) else "", "Less than 80 % of the median.", 4),
)
"""Links, behind `FROM_TO`."""

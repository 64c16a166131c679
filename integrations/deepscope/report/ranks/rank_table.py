"""The table by rank: its numbers, the slowest ranks first, and what is usual below them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from deepscope.printable import printable
from deepscope.quantities import bytes_text, count_text, share_text, time_text
from deepscope.ranks.results import RankRow, RanksReport
from deepscope.report.layout import Column, Style, cut_end
from deepscope.report.ranks.heat_map import LEVELS, level
from deepscope.report.style import Styles

MARK = "▸"


@dataclass(frozen=True, slots=True)
class RankNumber:
    """A number of a rank, and how it is shown."""

    title: str
    value: Callable[[RankRow], float | None]
    """None where it is not known."""
    text: Callable[[float], str]
    rank: int
    """As `Column.rank`."""


def _share(value: float) -> str:
    return share_text(value, 1)


NUMBERS = (
    RankNumber("own", lambda row: row.own_ns, time_text, 0),
    RankNumber("step", lambda row: row.step_ns, time_text, 0),
    RankNumber("compute", lambda row: row.compute_ns, time_text, 1),
    RankNumber("comm.", lambda row: row.communication_ns, time_text, 1),
    RankNumber(
        "overlap",
        lambda row: row.overlapped_ns / row.communication_ns if row.communication_ns else None,
        _share,
        4,
    ),
    RankNumber("idle", lambda row: row.idle_ns, time_text, 3),
    RankNumber("data", lambda row: row.data_ns, time_text, 5),
    RankNumber("waited", lambda row: row.waited_ns, time_text, 2),
    RankNumber("last", lambda row: row.last, lambda value: count_text(round(value)), 2),
    RankNumber("exposed", lambda row: row.exposed_ns, time_text, 6),
    RankNumber("sync", lambda row: row.sync_ns, time_text, 7),
    RankNumber("memory", lambda row: row.peak_bytes, bytes_text, 8),
)


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
    for number in NUMBERS:
        known = [value for row in report.ranks if (value := number.value(row)) is not None]
        if not any(known):
            continue
        cells = [_text(number, number.value(row)) for row in rows]
        cells += [_text(number, function(known)) for _, function in extra]
        heat = [_heat(row, own, styles) for row in rows] + [None] * len(extra) if number.title == "own" else None
        columns.append(Column(number.title, cells, rank=number.rank, styles=heat))
    if len({row.host for row in report.ranks}) > 1:
        hosts = [printable(row.host) for row in rows] + [""] * len(extra)
        columns.append(Column("host", hosts, rank=9, right=False, min_width=8, cut=cut_end))
    if len({row.device for row in report.ranks}) > 1:
        devices = [printable(row.device) for row in rows] + [""] * len(extra)
        columns.append(Column("device", devices, rank=10, right=False, min_width=8, cut=cut_end))
    return columns


_Of = Callable[[Sequence[float]], float]


def _summaries(report: RanksReport, *, is_cut: bool) -> list[tuple[str, _Of]]:
    if len(report.ranks) < 3:
        return []
    return [("median", median), *([("min", min), ("max", max)] if is_cut else [])]


def _text(number: RankNumber, value: float | None) -> str:
    return "" if value is None else number.text(value) or "0"


def _heat(row: RankRow, own: float, styles: Styles) -> Style | None:
    shade = level(row.own_ns, own)
    shades = [one for _, one in LEVELS]
    return None if shade not in shades else styles.hot if shades.index(shade) < 2 else styles.warm

"""Tables across ranks, for the pages."""

from __future__ import annotations

from collections.abc import Sequence

from deepscope.dashboard.answer import Table
from deepscope.dashboard.pages.tables import table_of
from deepscope.ranks.results import (
    CollectiveRow,
    DomainRow,
    GroupRow,
    LinkRow,
    PairRow,
    RankClock,
    RanksReport,
    VaryingRow,
)
from deepscope.report.ranks.tables import (
    CLOCK_COLUMNS,
    COLLECTIVE_COLUMNS,
    DOMAIN_COLUMNS,
    GROUP_COLUMNS,
    LINK_COLUMNS,
    PAIR_COLUMNS,
    VARYING_COLUMNS,
    line_columns,
    rank_numbers,
)
from deepscope.report.table_column import ColumnOf

PAIRS = 500
_EVERY = 1 << 20
_RANK = ColumnOf("rank", "rank", "text", lambda row: f"rank {row.rank}")


def _from_to(key: str) -> ColumnOf:
    return ColumnOf(key, "from, to", "text", lambda row: f"rank {row.source} → rank {row.target}")


def ranks_table(report: RanksReport) -> Table:
    """The ranks by their numbers."""
    columns = [_RANK, *rank_numbers(report)]
    return table_of("ranks", "Ranks", columns, report.ranks, keys=lambda row: str(row.rank), limit=_EVERY)


def groups_table(rows: Sequence[GroupRow]) -> Table:
    """Process groups; times are sums over their calls and ranks."""
    return table_of("rank_groups", "Process groups", GROUP_COLUMNS, rows)


def collectives_table(rows: Sequence[CollectiveRow], name: str = "rank_collectives") -> Table:
    """Collectives. On a page each table has a name of its own."""
    return table_of(name, "Collectives", COLLECTIVE_COLUMNS, rows)


def pairs_table(rows: Sequence[PairRow], name: str = "rank_pairs", *, left_out: int = 0) -> Table:
    """Messages from one rank to another."""
    table = table_of(name, "Point to point", [_from_to("pair"), *PAIR_COLUMNS], rows)
    table.left_out += left_out
    return table


def domains_table(rows: Sequence[DomainRow]) -> Table:
    """Process groups by what they are for, as Ascend's tables have them."""
    return table_of("rank_domains", "Communication by domain", DOMAIN_COLUMNS, rows)


def links_table(rows: Sequence[LinkRow]) -> Table:
    """Transfers from rank to rank by transport, as Ascend's tables have them."""
    return table_of("rank_links", "Links", [_from_to("link"), *LINK_COLUMNS], rows)


def clocks_table(rows: Sequence[RankClock]) -> Table:
    """What is added to each rank's times, and how far matched calls lie apart after that."""
    state = ColumnOf(
        "state",
        "note",
        "text",
        lambda row: "not aligned: no collective leads to it" if row.offset_ns is None else "",
        rank=2,
    )
    return table_of("rank_clocks", "Clocks", [_RANK, *CLOCK_COLUMNS, state], rows, limit=_EVERY)


def varying_table(rows: Sequence[VaryingRow]) -> Table:
    """Operators and kernels by how much they differ over the ranks; times a step."""
    return table_of("rank_varying", "What varies over the ranks", VARYING_COLUMNS, rows)


def lines_table(report: RanksReport) -> Table:
    """Lines by how much their own time differs over the ranks; times a step."""
    return table_of("spread_lines", "Lines that differ between ranks", line_columns(report), report.lines)

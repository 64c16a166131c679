"""Ranks side by side as JSON and CSV; docs/ranks.md describes both."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec

from deepscope.errors import OptionError
from deepscope.ranks.rank_detail import (
    CollectiveComparison,
    LineComparison,
    NumberComparison,
    RankDetail,
    WorkComparison,
)
from deepscope.ranks.ranks_report import (
    CollectiveRow,
    DomainRow,
    GroupRow,
    LinkRow,
    PairRow,
    RankClock,
    RankRow,
    RanksReport,
    Straggler,
    VaryingLine,
    VaryingRow,
)
from deepscope.report.json_csv import csv_text

RANKS_FORMAT = 1
"""Raised when a key changes its meaning or goes; new keys may come at any time."""
_TABLES: dict[str, tuple[str, type[msgspec.Struct]]] = {
    "rank": ("ranks", RankRow),
    "collective": ("collectives", CollectiveRow),
    "group": ("groups", GroupRow),
    "pair": ("pairs", PairRow),
    "operator": ("varying", VaryingRow),
    "line": ("lines", VaryingLine),
    "straggler": ("stragglers", Straggler),
    "clock": ("clocks", RankClock),
    "domain": ("domains", DomainRow),
    "link": ("links", LinkRow),
}
BY = tuple(_TABLES)
"""Words of `--by`."""


def rows_of(report: RanksReport, by: str) -> Sequence[Any]:
    """The rows of a table, in the report's order."""
    return getattr(report, _TABLES[by][0])  # type: ignore[no-any-return]


def ranks_json(report: RanksReport, *, limit: int = 0) -> str:
    """The report whole as JSON text, in ASCII; with a limit each table has so many rows at most."""
    content: dict[str, Any] = {"format": RANKS_FORMAT, **msgspec.to_builtins(report)}
    return _cut(content, [key for key, _ in _TABLES.values()], limit)


def _cut(content: dict[str, Any], tables: Sequence[str], limit: int) -> str:
    """JSON text with so many rows of each of the tables at most; `counts` says how many there are."""
    counts = {key: len(content[key]) for key in tables}
    if limit:
        content |= {key: content[key][:limit] for key in tables}
    return json.dumps(content | {"counts": counts}, indent=1) + "\n"


def ranks_csv(report: RanksReport, *, by: str = "rank", limit: int = 0) -> str:
    """One table as CSV with a header row: the fields as in JSON; a rank's parts have a column each.

    Lists and tables within a row are JSON.
    """
    record = _TABLES[by][1]
    rows = rows_of(report, by)
    fields = [name for name in record.__struct_fields__ if name != "parts"]
    parts = report.part_names if by == "rank" else []
    return csv_text(
        (*fields, *(f"part_{name.replace(' ', '_')}_ns" for name in parts)),
        (
            [*(getattr(row, name) for name in fields), *(row.parts.get(name, 0) for name in parts)]
            for row in (rows[:limit] if limit else rows)
        ),
    )


_DETAILS: dict[str, tuple[str, type[msgspec.Struct]]] = {
    "rank": ("numbers", NumberComparison),
    "line": ("lines", LineComparison),
    "collective": ("collectives", CollectiveComparison),
    "pair": ("pairs", PairRow),
    "operator": ("work", WorkComparison),
}


def rank_json(detail: RankDetail, *, limit: int = 0) -> str:
    """One rank in detail as JSON text, in ASCII; with a limit each table has so many rows at most."""
    content: dict[str, Any] = {"format": RANKS_FORMAT, **msgspec.to_builtins(detail)}
    return _cut(content, [key for key, _ in _DETAILS.values() if key != "numbers"], limit)


def rank_csv(detail: RankDetail, *, by: str = "rank", limit: int = 0) -> str:
    """One table of a rank in detail as CSV.

    Raises:
        OptionError: one rank has no such table.
    """
    check_detail(by)
    key, record = _DETAILS[by]
    rows = getattr(detail, key)
    return csv_text(record.__struct_fields__, map(msgspec.structs.astuple, rows[:limit] if limit else rows))


def check_detail(by: str) -> None:
    """Raises OptionError where one rank has no such table."""
    if by not in _DETAILS:
        raise OptionError("by", by, f"one rank has no such table; it has: {', '.join(_DETAILS)}")

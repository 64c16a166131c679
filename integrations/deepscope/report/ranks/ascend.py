"""Columns of the tables that Ascend's profiler itself tells: calls by process group, and links."""

from __future__ import annotations

from collections.abc import Sequence

from deepscope.printable import printable
from deepscope.quantities import rate_text, share_text, time_text
from deepscope.ranks.results import DomainRow, LinkRow
from deepscope.report.column_kinds import counts, sizes, times
from deepscope.report.layout import Column, cut_end
from deepscope.report.ranks.words import collective_name
from deepscope.report.style import Styles

_SLOW = 0.8
"""A link below this part of its transport's median is marked."""


def domain_columns(rows: Sequence[DomainRow], styles: Styles) -> list[Column]:
    """Process groups by what they are for; times are sums over their calls and ranks."""
    del styles
    return [
        _text("domain", [printable(row.domain) or row.role or printable(row.group) for row in rows], least=6),
        _text("for", [row.role for row in rows], rank=7),
        _text("ranks", [printable(row.ranks) for row in rows], least=8),
        Column("here", [f"{row.here} of {row.size}" if row.here < row.size else "" for row in rows], rank=8),
        _text("collective", [collective_name(row.kind) for row in rows], rank=4, least=10),
        counts("calls", [row.calls for row in rows], rank=5),
        times("time", [row.elapsed_ns for row in rows]),
        times("transit", [row.transit_ns for row in rows]),
        Column("waited", [time_text(row.wait_ns) or "0" for row in rows]),
        Column("share", [share_text(row.wait_ns, row.elapsed_ns) for row in rows], rank=3),
        times("sync", [row.synchronization_ns for row in rows], rank=2),
        times("idle", [row.idle_ns for row in rows], rank=6),
        Column("awaits", ["" if row.awaited_rank is None else f"rank {row.awaited_rank}" for row in rows], rank=1,
               right=False),
    ]  # fmt: skip


def link_columns(rows: Sequence[LinkRow], styles: Styles) -> list[Column]:
    """Links, the longest time first; one that is slow beside others of its transport stands out."""
    slow = [is_slow(row) for row in rows]
    return [
        Column("from", [str(row.source) for row in rows]),
        Column("to", [str(row.target) for row in rows]),
        _text("over", [printable(row.transport) for row in rows], least=4),
        _text("domain", [printable(", ".join(row.domains)) for row in rows], rank=3, least=6),
        sizes("bytes", [row.bytes for row in rows], rank=1),
        times("time", [row.time_ns for row in rows]),
        Column("rate", [_rate(row.bytes_per_s) for row in rows],
               styles=[styles.hot if one else None for one in slow]),
        Column("median", [_rate(row.typical_bytes_per_s) for row in rows], rank=2),
        Column("", ["slow" if one else "" for one in slow], rank=4, right=False),
    ]  # fmt: skip


def is_slow(row: LinkRow) -> bool:
    """Whether a link is slow beside others of its transport."""
    return row.bytes_per_s is not None and row.bytes_per_s < _SLOW * (row.typical_bytes_per_s or 0)


def _rate(bytes_per_s: int | None) -> str:
    return rate_text(bytes_per_s, 10**9, "B/s") if bytes_per_s else ""


def _text(title: str, texts: Sequence[str], rank: int = 0, least: int = 8) -> Column:
    return Column(title, texts, rank=rank, right=False, min_width=least, cut=cut_end)

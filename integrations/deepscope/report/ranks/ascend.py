"""Columns of the tables that Ascend's profiler itself tells: calls by process group, and links."""

from __future__ import annotations

from deepscope.ranks.results import LinkRow
from deepscope.report.ranks.forms import collective_name
from deepscope.report.table_column import ColumnOf, field

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
    field(
        "bytes_per_s",
        "rate",
        "bandwidth",
        "Bytes over time.",
        heat=lambda row: "hot" if is_slow(row) else "",
    ),
    field("typical_bytes_per_s", "median", "bandwidth", "Of the rates of all links over this transport.", 2),
    ColumnOf("slow", "note", "text", lambda row: "slow" if is_slow(row) else "", "Less than 80 % of the median.", 4),
)
"""Links, behind `FROM_TO`."""

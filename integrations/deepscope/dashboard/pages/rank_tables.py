"""Tables across ranks, for the pages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from deepscope.dashboard.answer import Table
from deepscope.dashboard.pages.tables import table_of
from deepscope.dashboard.pages.words import place_words
from deepscope.ranks.results import Clock, CollectiveRow, DomainRow, GroupRow, LinkRow, PairRow, RanksReport, VaryingRow
from deepscope.report.event_names import readable
from deepscope.report.ranks.ascend import is_slow
from deepscope.report.ranks.words import collective_name
from deepscope.report.table_column import ColumnOf

PAIRS = 500


def _field(name: str) -> Callable[[Any], Any]:
    return lambda row: getattr(row, name)


def ranks_table(report: RanksReport) -> Table:
    """The ranks by their numbers."""
    columns = [
        ColumnOf("rank", "rank", "text", lambda row: f"rank {row.rank}"),
        ColumnOf("step_ns", "step", "time", _field("step_ns"), "Mean length of a step.", rank=0),
        ColumnOf(
            "own_ns", "own", "time", _field("own_ns"),
            "The step without the part in which only communication runs.", rank=1,
        ),
        ColumnOf(
            "compute_ns", "compute", "time", _field("compute_ns"),
            "Work that is no collective; without a device operators' own time.", rank=2,
        ),
        ColumnOf(
            "communication_ns", "communication", "time", _field("communication_ns"), "In collectives, summed.", rank=3
        ),
        ColumnOf(
            "exposed_ns", "exposed", "time", _field("exposed_ns"),
            "The part of communication that no computation overlaps.", rank=4,
        ),
        ColumnOf(
            "waited_ns", "waiting for others", "time", _field("waited_ns"),
            "In collectives, until the last rank has come.", rank=5,
        ),
        ColumnOf(
            "last", "came last", "count", _field("last"), "Calls of collectives that this rank came to last.", rank=6
        ),
        ColumnOf(
            "idle_ns", "device idle", "time", _field("idle_ns"), "When no stream of a device works.", rank=7
        ),
        ColumnOf("data_ns", "data", "time", _field("data_ns"), "Loading data, on the training thread.", rank=8),
        ColumnOf(
            "sync_ns", "waiting for device", "time", _field("sync_ns"),
            "CPU time in calls that wait for the device.", rank=9,
        ),
        ColumnOf(
            "peak_bytes", "peak memory", "bytes", _field("peak_bytes"), "The most that was allocated at once.", rank=10
        ),
        ColumnOf("steps", "steps", "count", _field("steps"), "Recorded steps.", rank=12),
    ]  # fmt: skip
    if len({row.host for row in report.ranks}) > 1:
        columns.append(ColumnOf("host", "host", "text", _field("host"), rank=11))
    if len({row.device for row in report.ranks}) > 1:
        columns.append(ColumnOf("device", "device", "text", _field("device"), rank=13))
    return table_of("ranks", "Ranks", columns, report.ranks, keys=lambda row: str(row.rank), limit=1 << 20)


def groups_table(rows: Sequence[GroupRow]) -> Table:
    """Process groups; times are sums over their calls and ranks."""
    columns = [
        ColumnOf("group", "group", "text", lambda row: row.description or row.name or "unnamed"),
        ColumnOf("role", "for", "text", _field("role"), "What the group is for, where it can be told.", rank=1),
        ColumnOf("ranks", "ranks", "text", _field("ranks"), rank=2),
        ColumnOf("size", "size", "count", _field("size"), rank=6),
        ColumnOf("here", "here", "count", _field("here"), "Ranks of it of which there is a trace.", rank=7),
        ColumnOf("calls", "calls", "count", _field("calls"), rank=4),
        ColumnOf("time_ns", "time", "time", _field("time_ns"), "Of all calls and ranks."),
        ColumnOf("exposed_ns", "exposed", "time", _field("exposed_ns"), "Of it, what no computation overlaps.", rank=3),
        ColumnOf("wait_ns", "waiting", "time", _field("wait_ns"), "Of it, waiting for the last rank to come.", rank=2),
        ColumnOf("bytes", "bytes", "bytes", _field("bytes"), "Of all messages.", rank=5),
    ]
    return table_of("rank_groups", "Process groups", columns, rows)


def collectives_table(rows: Sequence[CollectiveRow], name: str = "rank_collectives") -> Table:
    """Collectives; `late` is the rank that is last to most calls. On a page each table has a name of its own."""
    columns = [
        ColumnOf("kind", "collective", "text", lambda row: row.kind or "unknown"),
        ColumnOf("group", "group", "text", _group, rank=4),
        ColumnOf("dtype", "type", "text", _field("dtype"), rank=7),
        ColumnOf("ranks", "ranks", "count", _field("ranks"), "Ranks in this row.", rank=6),
        ColumnOf("calls", "calls", "count", _field("calls"), "Of one rank.", rank=3),
        ColumnOf("matched", "matched", "count", _field("matched"), "Calls found on every rank of the group.", rank=9),
        ColumnOf(
            "message_bytes", "message", "bytes",
            lambda row: row.bytes // row.calls if row.calls and row.bytes else None,
            "Size of a message: the larger of what goes into a rank and what comes out.", rank=5,
        ),
        ColumnOf("time_ns", "time", "time", _field("time_ns"), "Of all calls and ranks."),
        ColumnOf(
            "transfer_ns", "transfer", "time", _field("transfer_ns"),
            "Of matched calls, the shortest over the ranks: nobody waits on the rank that comes last.", rank=1,
        ),
        ColumnOf(
            "wait_ns", "waiting", "time", _field("wait_ns"),
            "Of matched calls and all ranks, what is longer than that.", rank=2,
        ),
        ColumnOf(
            "spread_ns", "arrival spread", "time", _field("spread_ns"),
            "From the first rank's coming to the last one's, the mean over the matched calls.", rank=2,
        ),
        ColumnOf("max_spread_ns", "largest spread", "time", _field("max_spread_ns"), "Of a single call.", rank=8),
        ColumnOf(
            "bus_bytes_per_s", "bus bandwidth", "bandwidth", _field("bus_bytes_per_s"),
            "What each link must have carried in the transfer time, as nccl-tests counts.", rank=4,
        ),
        ColumnOf("late", "last to come", "text", _late, "The rank that came last to most calls.", rank=3),
    ]  # fmt: skip
    return table_of(name, "Collectives", columns, rows)


def pairs_table(rows: Sequence[PairRow], name: str = "rank_pairs", *, left_out: int = 0) -> Table:
    """Messages from one rank to another."""
    columns = [
        ColumnOf("pair", "from, to", "text", lambda row: f"rank {row.source} → rank {row.target}"),
        ColumnOf("messages", "messages", "count", _field("messages"), rank=3),
        ColumnOf("bytes", "bytes", "bytes", _field("bytes")),
        ColumnOf("time_ns", "time", "time", _field("time_ns"), "Of the receiving calls, else of the sending ones."),
        ColumnOf(
            "transfer_ns", "transfer", "time", _field("transfer_ns"), "The shorter call of both sides, summed.", rank=1
        ),
        ColumnOf(
            "bytes_per_s", "rate", "bandwidth", _field("bytes_per_s"),
            "Of messages found on both sides, by the transfer time; else by the time.", rank=2,
        ),
    ]  # fmt: skip
    table = table_of(name, "Point to point", columns, rows)
    table.left_out += left_out
    return table


def domains_table(rows: Sequence[DomainRow]) -> Table:
    """Process groups by what they are for, as Ascend's tables have them; times are sums over calls and ranks."""
    columns = [
        ColumnOf("domain", "domain", "text", lambda row: row.domain or row.role or row.group),
        ColumnOf("role", "for", "text", _field("role"), "What the group is for, where its name tells.", rank=7),
        ColumnOf("ranks", "ranks", "text", _field("ranks")),
        ColumnOf(
            "here", "here", "text", lambda row: f"{row.here} of {row.size}" if row.here < row.size else "",
            "Ranks of it that have a table.", rank=8,
        ),
        ColumnOf("kind", "collective", "text", lambda row: collective_name(row.kind), rank=4),
        ColumnOf("calls", "calls", "count", _field("calls"), "Of all ranks.", rank=5),
        ColumnOf("elapsed_ns", "time", "time", _field("elapsed_ns"), "Transit, waiting and idle."),
        ColumnOf("transit_ns", "transit", "time", _field("transit_ns"), "Data moves.", rank=2),
        ColumnOf("wait_ns", "waited", "time", _field("wait_ns"), "For the other side.", rank=1),
        ColumnOf(
            "share", "share", "share", lambda row: row.wait_ns / row.elapsed_ns if row.elapsed_ns else None,
            "Of the time, what is waited.", rank=3,
        ),
        ColumnOf(
            "synchronization_ns", "sync", "time", _field("synchronization_ns"),
            "Of the waiting, what is before the first transfer: a late rank causes it.", rank=2,
        ),
        ColumnOf("idle_ns", "idle", "time", _field("idle_ns"), "Between pieces of a call nothing was queued.", rank=6),
        ColumnOf(
            "awaited", "awaits", "text",
            lambda row: "" if row.awaited_rank is None else f"rank {row.awaited_rank}",
            "The rank that waits least: the others wait for it.", rank=2,
        ),
    ]  # fmt: skip
    return table_of("rank_domains", "Communication by domain", columns, rows)


def links_table(rows: Sequence[LinkRow]) -> Table:
    """Transfers from rank to rank by transport, as Ascend's tables have them."""
    columns = [
        ColumnOf("link", "from, to", "text", lambda row: f"rank {row.source} → rank {row.target}"),
        ColumnOf(
            "transport", "over", "text", _field("transport"),
            "HCCS, PCIE, SIO and SDMA are within a node.", rank=2
        ),
        ColumnOf("domains", "domain", "text", lambda row: ", ".join(row.domains), rank=4),
        ColumnOf("bytes", "bytes", "bytes", _field("bytes"), rank=3),
        ColumnOf("time_ns", "time", "time", _field("time_ns"), rank=1),
        ColumnOf("bytes_per_s", "rate", "bandwidth", _field("bytes_per_s"), "Bytes over time."),
        ColumnOf(
            "typical_bytes_per_s", "median", "bandwidth", _field("typical_bytes_per_s"),
            "Of the rates of all links over this transport.", rank=3,
        ),
        ColumnOf(
            "slow", "note", "text", lambda row: "slow" if is_slow(row) else "",
            "Less than 80 % of the median.", rank=1,
        ),
    ]  # fmt: skip
    return table_of("rank_links", "Links", columns, rows)


def clocks_table(rows: Sequence[Clock]) -> Table:
    """What is added to each rank's times, and how far matched calls lie apart after that."""
    columns = [
        ColumnOf("rank", "rank", "text", lambda row: f"rank {row.rank}"),
        ColumnOf("offset_ns", "offset", "time", _field("offset_ns"), "Added to its times, to be on one clock.", rank=0),
        ColumnOf(
            "residual_ns", "residual", "time",
            lambda row: None if row.offset_ns is None else row.residual_ns,
            "How far the ends of matched calls still lie apart: the median.", rank=0,
        ),
        ColumnOf("calls", "calls", "count", _field("calls"), "By which it is known.", rank=1),
        ColumnOf(
            "state", "note", "text",
            lambda row: "not aligned: no collective leads to it" if row.offset_ns is None else "", rank=2,
        ),
    ]  # fmt: skip
    return table_of("rank_clocks", "Clocks", columns, rows, limit=1 << 20)


def varying_table(rows: Sequence[VaryingRow]) -> Table:
    """Operators and kernels by how much they differ over the ranks; times a step."""
    columns = [
        ColumnOf("name", "operator or kernel", "text", lambda row: readable(row.name)),
        ColumnOf(
            "range_ns", "difference", "time", lambda row: row.max_ns - row.min_ns,
            "Between the ranks with the most and the least of it, in a step.",
        ),
        *_over_ranks(),
        ColumnOf(
            "calls", "calls", "text", lambda row: "differ" if row.calls_differ else "",
            "Whether ranks call it a different number of times a step.", rank=4,
        ),
    ]  # fmt: skip
    return table_of("rank_varying", "What varies over the ranks", columns, rows)


def lines_table(report: RanksReport) -> Table:
    """Lines by how much their own time differs over the ranks; times a step."""
    root = report.project_root
    columns = [
        ColumnOf("place", "line", "place", lambda row: place_words(row.file, row.line, root)),
        ColumnOf("function", "function", "text", _field("function"), rank=4),
        ColumnOf(
            "range_ns", "difference", "time", lambda row: row.max_ns - row.min_ns,
            "Between the ranks with the most and the least of it, in a step.",
        ),
        *_over_ranks(),
    ]  # fmt: skip
    return table_of("spread_lines", "Lines that differ between ranks", columns, report.lines)


def _over_ranks() -> list[ColumnOf]:
    return [
        ColumnOf("median_ns", "median", "time", _field("median_ns"), "Of the ranks, in a step.", rank=5),
        ColumnOf("min_ns", "least", "time", _field("min_ns"), "In a step.", rank=3),
        ColumnOf("min_rank", "least on rank", "text", lambda row: str(row.min_rank), rank=3),
        ColumnOf("max_ns", "most", "time", _field("max_ns"), "In a step.", rank=2),
        ColumnOf("max_rank", "most on rank", "text", lambda row: str(row.max_rank), rank=1),
    ]


def _group(row: CollectiveRow) -> str:
    return ", ".join(filter(None, (row.role or row.group, f"ranks {row.group_ranks}" if row.group_ranks else "")))


def _late(row: CollectiveRow) -> str | None:
    return None if row.last_rank is None else f"rank {row.last_rank} ({row.last_calls} of {row.matched})"

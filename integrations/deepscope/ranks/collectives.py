"""Collectives over the ranks, by row and by process group: how far apart they come to a call, and who waits."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np

from deepscope.analysis.numbers.collective_calls import bus_factor
from deepscope.ranks.arrivals import Arrivals
from deepscope.ranks.calls import MESSAGES, RowKey, distinct_pairs, key_of
from deepscope.ranks.matching import MatchedCalls
from deepscope.ranks.results import CollectiveRow, GroupRow, RankRow, Role
from deepscope.ranks.summary import RankSummary
from deepscope.records.ranges import listed
from deepscope.trace.model import Int64


def collective_rows(summaries: Sequence[RankSummary], matches: MatchedCalls, arrivals: Arrivals) -> list[CollectiveRow]:
    """A row for each kind, group, type and size, the largest time first; point-to-point messages left out."""
    keys = matches.calls.rows
    row, calls, time, size = _by_rank(summaries, matches)
    order = np.argsort(matches.row, kind="stable")
    bounds = np.searchsorted(matches.row[order], np.arange(len(keys) + 1))
    found = []
    for number, key in enumerate(keys):
        here = np.flatnonzero((row == number) & (calls > 0))
        if not len(here) or key.kind in MESSAGES:
            continue
        result = CollectiveRow(
            kind=key.kind,
            library=key.library,
            group=key.group,
            group_ranks=key.ranks,
            dtype=key.dtype,
            size_class_bytes=key.size_class_bytes,
            on_device=key.on_device,
            ranks=len(here),
            calls=int(calls[here].max()),
            bytes=int(size[here].max()),
            time_ns=int(time[here].sum()),
        )
        _add_matched(result, key, matches, arrivals, order[bounds[number] : bounds[number + 1]])
        found.append(result)
    return sorted(found, key=lambda one: -one.time_ns)


def _by_rank(summaries: Sequence[RankSummary], matches: MatchedCalls) -> tuple[Int64, Int64, Int64, Int64]:
    """By row and rank: the row, calls, time, bytes. A matched call stands in the row of its largest message."""
    calls, keys = matches.calls, {key: number for number, key in enumerate(matches.calls.rows)}
    table = np.array(
        [
            (keys[key_of(row)], one.rank, row.calls, row.time_ns, row.bytes)
            for one in summaries
            for row in one.collectives
        ],
        np.int64,
    ).reshape(-1, 5)
    moved = np.flatnonzero(matches.match >= 0)
    moved = moved[calls.row[moved] != matches.row[matches.match[moved]]]
    ones = np.ones(len(moved), np.int64)
    what = np.stack((calls.rank[moved], ones, calls.time_ns[moved], calls.size_bytes[moved]), axis=1)
    taken, given = what * (1, -1, -1, -1), what
    table = np.concatenate((
        table,
        np.column_stack((calls.row[moved], taken)),
        np.column_stack((matches.row[matches.match[moved]], given)),
    ))  # fmt: skip
    row, _, place = distinct_pairs(table[:, 0], table[:, 1])
    sums = np.zeros((len(row), 3), np.int64)
    np.add.at(sums, place, table[:, 2:])
    return row, sums[:, 0], sums[:, 1], sums[:, 2]


def _add_matched(row: CollectiveRow, key: RowKey, matches: MatchedCalls, arrivals: Arrivals, own: Int64) -> None:
    """What the matched calls of a row tell."""
    row.matched = len(own)
    if not len(own):
        return
    row.by_sequence = bool(matches.by_sequence[own].all())
    spread = arrivals.spread_ns[own]
    if (spread >= 0).all():
        row.spread_ns, row.max_spread_ns = int(spread.mean()), int(spread.max())
        ranks, counts = np.unique(arrivals.last_rank[own], return_counts=True)
        counts[ranks < 0] = 0
        most = int(np.argmax(counts))
        if counts[most]:
            row.last_rank, row.last_calls = int(ranks[most]), int(counts[most])
    if not arrivals.waits_known[own].all():
        return
    row.wait_ns = int(matches.time_ns[own].sum() - (arrivals.shortest_ns[own] * matches.ranks[own]).sum())
    if not matches.is_complete[own].all():
        return
    row.transfer_ns = int(arrivals.shortest_ns[own].sum())
    factor = bus_factor(key.kind, int(matches.ranks[own[0]]))
    size = int(matches.size_bytes[own].sum())
    if row.transfer_ns and factor and size:
        row.bus_bytes_per_s = round(size * factor * 10**9 / row.transfer_ns)


def fill_waits(
    rows: Sequence[RankRow], summaries: Sequence[RankSummary], matches: MatchedCalls, arrivals: Arrivals
) -> None:
    """Of each rank what it waits for others, and how often it is the last one; nothing where no call is matched.

    The calls that are kept of a rank may be those of its first steps alone: the others are taken to wait as long.
    """
    calls = matches.calls
    all_calls = {one.rank: sum(row.calls for row in one.collectives) for one in summaries}
    is_recorded = np.zeros(len(calls.rank), np.bool_)
    matched = matches.match >= 0
    is_recorded[matched] = arrivals.waits_known[matches.match[matched]]
    for row in rows:
        own = calls.by_rank.get(row.rank, slice(0, 0))
        row.matched = int(matched[own].sum())
        if is_recorded[own].any():
            kept = own.stop - own.start
            waited_ns = int(arrivals.waited_ns[own].sum()) * max(all_calls[row.rank], kept) // kept
            row.waited_ns = waited_ns // max(row.steps, 1)
            row.last = int((arrivals.last_rank == row.rank).sum())


# torch's DeviceMesh calls a group `mesh_` and its dimension; dimensions are of torchtitan (dp_replicate, dp_shard,
# dp_shard_cp, dp_shard_mod_ep, efsdp, cp, tp, etp, pp, ep), Lightning (data_parallel, tensor_parallel), torch's docs
# (dp, fsdp, replicate, shard). Megatron-LM (core/parallel_state.py): TENSOR_MODEL_PARALLEL_GROUP,
# EXPERT_MODEL_PARALLEL_GROUP, DATA_PARALLEL_GROUP_WITH_CP, EXPERT_DATA_PARALLEL_GROUP, TENSOR_AND_DATA_PARALLEL_GROUP.
_WORDS: dict[str, Role] = {
    **dict.fromkeys(("dp", "ddp", "fsdp", "efsdp", "hsdp", "edp", "data", "replicate", "shard"), "data"),
    **dict.fromkeys(("tp", "etp", "tensor"), "tensor"),
    **dict.fromkeys(("pp", "pipe", "pipeline"), "pipeline"),
    **dict.fromkeys(("ep", "expert", "experts", "moe"), "expert"),
    **dict.fromkeys(("cp", "context"), "context"),
    **dict.fromkeys(("sp", "sequence", "ulysses"), "sequence"),
    "world": "world",
}
_SPLIT = re.compile(r"[^a-z]+")


def role_of(description: str, ranks: str = "", world_size: int = 0) -> Role:
    """By the description that a group's maker gave it; "" where it names no role, or several.

    What is split of experts is named by the split (`EXPERT_DATA_PARALLEL_GROUP`: data). Gradients are reduced over data
    and context together. The default group is the world, and so is one without a role that has all ranks.
    """
    words = [word for word in _SPLIT.split(description.lower()) if word]
    roles = {_WORDS[word] for word in words if word in _WORDS}
    if "and" in words:
        return ""
    if roles:
        return role_among(roles)
    is_world = description == "default_pg" or (world_size > 1 and len(listed(ranks)) == world_size)
    return "world" if is_world else ""


def role_among(roles: Iterable[Role]) -> Role:
    """The one that a group has whose name names these; "" where they are several."""
    left = set(roles)
    if len(left) > 1:
        left.discard("expert")
    if "data" in left:
        left -= {"context", "sequence"}
    return left.pop() if len(left) == 1 else ""


def group_rows(
    summaries: Sequence[RankSummary], matches: MatchedCalls, arrivals: Arrivals, world_size: int
) -> list[GroupRow]:
    """A row for each process group that the calls tell of, the largest time first."""
    rows: dict[tuple[str, str, str, int], GroupRow] = {}
    seen: dict[tuple[str, str, str, int], set[int]] = {}
    there = {one.rank for one in summaries}
    for one in summaries:
        for call in one.collectives:
            key = (call.group, call.group_description, call.group_ranks, call.group_size)
            if key == ("", "", "", 0):
                continue
            row = rows.get(key)
            if row is None:
                row = rows[key] = GroupRow(
                    name=call.group,
                    description=call.group_description,
                    role=role_of(call.group_description, call.group_ranks, world_size),
                    ranks=call.group_ranks,
                    size=call.group_size,
                )
            seen.setdefault(key, set()).add(one.rank)
            row.calls += call.calls
            row.time_ns += call.time_ns
            row.exposed_ns += call.exposed_ns
            row.bytes += call.bytes
    for key, row in rows.items():
        row.here = len(there & set(listed(row.ranks))) if row.ranks else len(seen[key])
    _add_waits(rows, matches, arrivals)
    return sorted(rows.values(), key=lambda row: -row.time_ns)


def _add_waits(rows: dict[tuple[str, str, str, int], GroupRow], matches: MatchedCalls, arrivals: Arrivals) -> None:
    keys = matches.calls.rows
    wait = matches.time_ns - arrivals.shortest_ns * matches.ranks
    known = arrivals.waits_known
    sums = np.zeros(len(keys), np.int64)
    np.add.at(sums, matches.row[known], wait[known])
    for number in np.unique(matches.row[known]).tolist():
        key = keys[number]
        row = rows.get((key.group, key.description, key.ranks, key.group_size))
        if row is not None:
            row.wait_ns = (row.wait_ns or 0) + int(sums[number])


def set_roles(rows: Sequence[CollectiveRow], groups: Sequence[GroupRow]) -> None:
    """The roles of collectives are those of their groups."""
    roles = {(one.name, one.ranks): one.role for one in groups}
    for row in rows:
        row.role = roles.get((row.group, row.group_ranks), "")

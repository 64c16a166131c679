"""Collectives and messages over the ranks, by row, process group and pair: when each rank comes, and who waits.

All ranks leave a call at one time where each needs the data of each, so that its length tells when a rank has come.
Where one rank sends to all or takes from all, the others may leave earlier: of these calls aligned clocks tell when
each has come, and nothing tells waiting from moving data.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from deepscope.analysis.array_ops.selection import Mask
from deepscope.analysis.tables.messages import bus_factor
from deepscope.quantities import listed
from deepscope.ranks.call_matching import Aligner, CallSequence, MatchedCalls
from deepscope.ranks.collective_calls import MESSAGES, Calls, RowKey, distinct_pairs, key_of
from deepscope.ranks.rank_summary import RankSummary
from deepscope.ranks.ranks_report import CollectiveRow, GroupRow, PairRow, RankRow, Role
from deepscope.records.collectives import TOGETHER
from deepscope.trace.model import Int64


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Matched calls by their ranks' arrivals; arrays of shape (m,) but for `waited_ns`."""

    waits_known: Mask
    """Whether all ranks leave together, so that waiting is told from moving data."""
    shortest_ns: Int64
    """The time on the rank that came last, where `waits_known`; else 0."""
    spread_ns: Int64
    """From the first rank's arrival to the last one's; -1 where it is not known."""
    last_rank: Int64
    """The rank that came last; -1 where several came at one time, where there is one alone, or it is not known."""
    waited_ns: Int64
    """Of each call, how much longer it is than on the rank that came last; shape (c,), 0 where it is not known."""


def arrivals_of(matches: MatchedCalls, start_ns: Int64 | None = None) -> Arrivals:
    """Who comes when.

    Args:
        matches: calls found on several ranks.
        start_ns: of each call its start on a clock that all ranks have in common, -1 where there is none; shape (c,).
    """
    calls, match, count = matches.calls, matches.match, len(matches)
    together = np.array([row.kind in TOGETHER for row in calls.rows], np.bool_)[matches.row]
    rows = np.flatnonzero(match >= 0)
    of, time = match[rows], calls.time_ns[rows]
    shortest, longest, last = _extremes(-time, of, calls.rank[rows], count)
    shortest, longest = -longest, -shortest
    waited = np.zeros(len(match), np.int64)
    waited[rows] = np.where(together[of], time - shortest[of], 0)
    spread = np.where(together, longest - shortest, -1)
    last = np.where(together, last, -1)
    if start_ns is not None and not together.all():
        rows = rows[~together[of]]
        of = match[rows]
        known = np.ones(count, np.bool_)
        known[of[start_ns[rows] < 0]] = False
        known &= ~together
        first, latest, came_last = _extremes(start_ns[rows], of, calls.rank[rows], count)
        spread = np.where(known, latest - first, spread)
        last = np.where(known, came_last, last)
    last = np.where(matches.ranks > 1, last, -1)
    return Arrivals(together, np.where(together, shortest, 0), spread, last, waited)


def _extremes(value: Int64, of: Int64, rank: Int64, count: int) -> tuple[Int64, Int64, Int64]:
    """The least and the largest value of each match, and the rank of the largest, -1 where several have it."""
    bound = np.iinfo(np.int64).max
    low, high = np.full(count, bound), np.full(count, -bound)
    np.minimum.at(low, of, value)
    np.maximum.at(high, of, value)
    top = value == high[of]
    ranks = np.full(count, -1, np.int64)
    ranks[of[top]] = rank[top]
    ranks[np.bincount(of[top], minlength=count) != 1] = -1
    return low, high, ranks


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
ROLE_WORDS: dict[str, Role] = {
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
    roles = {ROLE_WORDS[word] for word in words if word in ROLE_WORDS}
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


Aligned = Callable[[Int64, Int64], Int64]


def pair_rows(calls: Calls, aligned_ns: Aligned) -> list[PairRow]:
    """A row for each pair with messages from the one to the other, the largest time first.

    `aligned_ns` has times of ranks on a clock that they have in common, -1 where there is none.
    """
    kinds = np.array([row.kind for row in calls.rows])[calls.row] if len(calls.row) else np.zeros(0, "U1")
    known = calls.peer >= 0
    sends = _by_pair(calls, np.flatnonzero(known & (kinds == "send")))
    received_by = _by_pair(calls, np.flatnonzero(known & (kinds == "recv")))
    receives = {(source, target, group): rows for (target, source, group), rows in received_by.items()}
    found: dict[tuple[int, int], PairRow] = {}
    recorded_bytes: dict[tuple[int, int], int] = defaultdict(int)
    matched_bytes: dict[tuple[int, int], int] = defaultdict(int)
    for source, target, group in sorted({*sends, *receives}):
        sent = sends.get((source, target, group), _NONE)
        received = receives.get((source, target, group), _NONE)
        row = found.setdefault((source, target), PairRow(source=source, target=target))
        recorded = received if len(received) else sent
        row.messages += max(len(sent), len(received))
        row.bytes += int(max(calls.size_bytes[sent].sum(), calls.size_bytes[received].sum()))
        row.time_ns += int(calls.time_ns[recorded].sum())
        recorded_bytes[source, target] += int(calls.size_bytes[recorded].sum())
        ours, theirs = _same_messages(calls, sent, received, aligned_ns)
        if len(ours):
            shorter = np.minimum(calls.time_ns[ours], calls.time_ns[theirs])
            row.transfer_ns = (row.transfer_ns or 0) + int(shorter.sum())
            matched_bytes[source, target] += int(calls.size_bytes[theirs].sum())
    for pair, row in found.items():
        size, time_ns = (
            (matched_bytes[pair], row.transfer_ns) if row.transfer_ns else (recorded_bytes[pair], row.time_ns)
        )
        row.bytes_per_s = round(size / time_ns * 10**9) if size and time_ns else None
    return sorted(found.values(), key=lambda row: (-row.time_ns, row.source, row.target))


_NONE = np.zeros(0, np.int64)


def _by_pair(calls: Calls, rows: Int64) -> dict[tuple[int, int, str], Int64]:
    """Calls of each rank with each other one in each group, in order."""
    found: dict[tuple[int, int, str], list[int]] = defaultdict(list)
    groups = [row.group for row in calls.rows]
    for row, rank, peer, key in zip(
        rows.tolist(), calls.rank[rows].tolist(), calls.peer[rows].tolist(), calls.row[rows].tolist(), strict=True
    ):
        found[rank, peer, groups[key]].append(row)
    return {pair: np.array(own, np.int64) for pair, own in found.items()}


def _same_messages(calls: Calls, sent: Int64, received: Int64, aligned_ns: Aligned) -> tuple[Int64, Int64]:
    """The sends and the receives of the same messages."""
    if not len(sent) or not len(received):
        return _NONE, _NONE
    first, second = _message_sequence(calls, sent, aligned_ns), _message_sequence(calls, received, aligned_ns)
    found = Aligner(first).align(second)
    return (_NONE, _NONE) if found is None else (sent[found.ours], received[found.theirs])


def _message_sequence(calls: Calls, rows: Int64, aligned_ns: Aligned) -> CallSequence:
    start, end = (aligned_ns(calls.rank[rows], times[rows]) for times in (calls.start_ns, calls.end_ns))
    known = bool((start >= 0).all()) and bool((end >= 0).all())
    return CallSequence(
        token=calls.size_bytes[rows],
        step=calls.step[rows],
        start_ns=start if known else calls.start_ns[rows],
        end_ns=end if known else calls.end_ns[rows],
    )

"""Collectives over the ranks, by row and by process group: how far apart they come to a call, and who waits.

All ranks leave a call at one time where each needs the data of each, so that its length tells when a rank has come.
Where one rank sends to all or takes from all, the others may leave earlier: of these calls aligned clocks tell when
each has come, and nothing tells waiting from moving data.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

import numpy as np

from deepscope.analysis.array_ops.selection import Mask
from deepscope.analysis.tables.messages import bus_factor
from deepscope.ranks.calls import MESSAGES, RowKey, distinct_pairs, key_of
from deepscope.ranks.matching import MatchedCalls
from deepscope.ranks.own_table import LineKey, file_on_all_ranks
from deepscope.ranks.results import CollectiveRow, GroupRow, RankRow, Role, VaryingLine, VaryingRow
from deepscope.ranks.summary import RankSummary, RankWork
from deepscope.records.places_of_work import TOGETHER
from deepscope.records.ranges import listed
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


ROWS = 100
"""At most: of lines, and of operators and kernels together."""
DIFFER = 0.005
"""Calls a step that differ by less are the same: windows may begin and end at other events."""


def varying_rows(summaries: Sequence[RankSummary]) -> list[VaryingRow]:
    """By the difference of the ranks with the most and the least of it; what waits for other ranks is left out."""
    if len(summaries) < 2:
        return []
    found = [
        *_rows(summaries, "operator", lambda one: one.operators),
        *_rows(summaries, "kernel", lambda one: one.kernels),
    ]
    found.sort(key=lambda row: (row.min_ns - row.max_ns, row.kind, row.name))
    return found[:ROWS]


def _rows(
    summaries: Sequence[RankSummary],
    kind: Literal["operator", "kernel"],
    works: Callable[[RankSummary], Sequence[RankWork]],
) -> list[VaryingRow]:
    """Those whose time differs; a rank without it has 0."""
    names: dict[str, int] = {}
    cells: list[tuple[int, int, float, float]] = []
    for rank, one in enumerate(summaries):
        steps = max(one.totals.steps, 1)
        cells += [
            (rank, names.setdefault(row.name, len(names)), row.device_ns / steps, row.calls / steps)
            for row in works(one)
            if not row.collective
        ]
    if not cells:
        return []
    found = np.array(cells)
    place = found[:, 0].astype(np.int64), found[:, 1].astype(np.int64)
    table = np.zeros((2, len(summaries), len(names)))
    np.add.at(table[0], place, found[:, 2])
    np.add.at(table[1], place, found[:, 3])
    times, counts = table
    low, high, middle = times.argmin(axis=0), times.argmax(axis=0), np.median(times, axis=0)
    least, most = times.min(axis=0), times.max(axis=0)
    differ = counts.max(axis=0) - counts.min(axis=0) > DIFFER * counts.max(axis=0)
    return [
        VaryingRow(
            kind=kind,
            name=text,
            median_ns=int(middle[at]),
            min_ns=int(least[at]),
            min_rank=summaries[low[at]].rank,
            max_ns=int(most[at]),
            max_rank=summaries[high[at]].rank,
            calls_differ=bool(differ[at]),
        )
        for text, at in names.items()
        if int(most[at]) > int(least[at])
    ]


def own_lines(one: RankSummary) -> dict[LineKey, tuple[str, float]]:
    """The lines of one rank: each one's file, and its own time a step, which is its critical path less collectives."""
    steps = max(one.totals.steps, 1)
    found: dict[LineKey, tuple[str, float]] = {}
    for line in one.critical.lines:
        key = file_on_all_ranks(line.file, one.project_root), line.line, line.function
        before_ns = found[key][1] if key in found else 0.0
        found[key] = line.file, before_ns + (line.critical_ns - line.communication_ns) / steps
    return found


def varying_lines(summaries: Sequence[RankSummary]) -> list[VaryingLine]:
    """Those that differ at all, the largest difference first; a rank without a line counts as 0."""
    if len(summaries) < 2:
        return []
    found: dict[LineKey, dict[int, int]] = defaultdict(dict)
    files: dict[LineKey, str] = {}
    for one in summaries:
        for key, (file, time_ns) in own_lines(one).items():
            files.setdefault(key, file)
            found[key][one.rank] = round(time_ns)
    ranks = [one.rank for one in summaries]
    differ = [
        (key, times) for key, times in found.items() if len(set(times.values())) > 1 or len(times) < len(summaries)
    ]
    rows = [row for key, times in differ if (row := _row(files[key], key, times, ranks)).max_ns > row.min_ns]
    return sorted(rows, key=lambda row: (row.min_ns - row.max_ns, row.file, row.line, row.function))[:ROWS]


def _row(file: str, key: LineKey, times: dict[int, int], ranks: Sequence[int]) -> VaryingLine:
    of = [(times.get(rank, 0), rank) for rank in ranks]
    least, most = min(of), max(of, key=lambda one: (one[0], -one[1]))
    return VaryingLine(
        file=file,
        line=key[1],
        function=key[2],
        median_ns=int(median(time for time, _ in of)),
        min_ns=least[0],
        min_rank=least[1],
        max_ns=most[0],
        max_rank=most[1],
    )


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

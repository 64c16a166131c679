"""What process groups are for: told by what their makers call them, and by being all ranks; never guessed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np

from deepscope.ranks.arrivals import Arrivals
from deepscope.ranks.matching import MatchedCalls
from deepscope.ranks.results import CollectiveRow, GroupRow, Role
from deepscope.ranks.summary import RankSummary
from deepscope.records.ranges import listed

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

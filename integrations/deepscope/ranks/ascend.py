"""Tables of Ascend's profiler, of all ranks: process groups by what they are for, and links."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from statistics import median

from deepscope.quantities import ranges
from deepscope.ranks.collectives import ROLE_WORDS, role_among
from deepscope.ranks.rank_summary import AscendCalls, AscendGroup, AscendLink, AscendRank, RankSummary
from deepscope.ranks.ranks_report import DomainRow, LinkRow, RankRow, Role

# Megatron-LM's and MindSpeed's names (core/parallel_state.py). Their `mp` is tensor and pipeline together, and
# `cp_ulysses` the ranks among which MindSpeed's context parallelism works by heads.
_ROLES: dict[str, Role] = ROLE_WORDS | {"exp": "expert", "default": "world", "ulysses": "context"}
_LOCAL = "LOCAL"


def with_step_times(row: RankRow, rank: AscendRank | None) -> RankRow:
    """A rank with the times of its `step_trace_time`, where no trace tells them; any other as it is.

    A trace without a trace of communication is none: HCCL's calls stand in a process of their own in it, which does not
    count as work.
    """
    if rank is None or not rank.steps:
        return row
    if row.step_ns and (row.communication_ns or not any(one.communication_ns for one in rank.steps)):
        return row
    count = len(rank.steps)

    def mean(field: str) -> int:
        return int(sum(getattr(one, field) for one in rank.steps)) // count

    row.steps = row.steps or sum(one.step >= 0 for one in rank.steps)
    row.compute_ns, row.communication_ns = mean("computing_ns"), mean("communication_ns")
    row.exposed_ns, row.overlapped_ns, row.idle_ns = mean("exposed_ns"), mean("overlapped_ns"), mean("free_ns")
    row.step_ns = row.compute_ns + row.exposed_ns + row.idle_ns
    row.own_ns = row.compute_ns + row.idle_ns
    row.parts = {"kernel": row.compute_ns, "communication": row.exposed_ns, "other": row.idle_ns}
    return row


def domain_rows(summaries: Sequence[RankSummary]) -> list[DomainRow]:
    """A row for each process group and kind of call, the longest first."""
    known = _groups(summaries)
    calls: dict[tuple[str, str], list[tuple[int, AscendCalls]]] = defaultdict(list)
    for one in summaries:
        for call in one.ascend.calls if one.ascend is not None else ():
            calls[call.group, call.kind].append((one.rank, call))
    rows = []
    for (key, kind), ours in calls.items():
        group = known.get(key) or AscendGroup(key=key)
        here = sorted({rank for rank, _ in ours})
        waits = [(call.wait_ns, rank) for rank, call in ours]
        rows.append(
            DomainRow(
                domain=group.name,
                role=_role(group.name),
                group=key,
                ranks=ranges(group.ranks or here),
                size=len(group.ranks) or len(here),
                here=len(here),
                kind=kind,
                calls=sum(call.calls for _, call in ours),
                elapsed_ns=sum(call.elapsed_ns for _, call in ours),
                transit_ns=sum(call.transit_ns for _, call in ours),
                wait_ns=sum(call.wait_ns for _, call in ours),
                synchronization_ns=sum(call.synchronization_ns for _, call in ours),
                idle_ns=sum(call.idle_ns for _, call in ours),
                awaited_rank=min(waits)[1] if len(here) > 1 and max(waits)[0] > min(waits)[0] else None,
            )
        )
    return sorted(rows, key=lambda row: (-row.elapsed_ns, row.domain, row.group, row.kind))


def link_rows(summaries: Sequence[RankSummary]) -> list[LinkRow]:
    """A row for each pair of ranks and transport, the longest first; transfers within a device are left out."""
    known = _groups(summaries)
    places = _places(summaries)
    sums: dict[tuple[int, int, str], LinkRow] = {}
    domains: dict[tuple[int, int, str], set[str]] = defaultdict(set)
    for one in summaries:
        for link in one.ascend.links if one.ascend is not None else ():
            group = known.get(link.group)
            ends = _global(link, group, places.get(link.group, {}))
            if ends is None or link.transport == _LOCAL or ends[0] == ends[1]:
                continue
            key = (*ends, link.transport)
            row = sums.setdefault(key, LinkRow(source=ends[0], target=ends[1], transport=link.transport))
            row.bytes += link.bytes
            row.time_ns += link.time_ns
            if group is not None and group.name:
                domains[key].add(group.name)
    speeds = defaultdict(list)
    for key, row in sums.items():
        row.domains = sorted(domains[key])
        row.bytes_per_s = _speed(row.bytes, row.time_ns)
        if row.bytes_per_s is not None:
            speeds[row.transport].append(row.bytes_per_s)
    for row in sums.values():
        row.typical_bytes_per_s = round(median(speeds[row.transport])) if speeds[row.transport] else None
    return sorted(sums.values(), key=lambda row: (-row.time_ns, row.source, row.target, row.transport))


def _groups(summaries: Sequence[RankSummary]) -> dict[str, AscendGroup]:
    """By key, as the ranks' metadata tell; one that has a name before one without."""
    found: dict[str, AscendGroup] = {}
    for one in summaries:
        for group in one.ascend.groups if one.ascend is not None else ():
            if group.key not in found or (group.name and not found[group.key].name):
                found[group.key] = group
    return found


def _places(summaries: Sequence[RankSummary]) -> dict[str, dict[int, int]]:
    """Of each group, rank in the group → rank in the run, by the transfers of each rank within its own device."""
    found: dict[str, dict[int, int]] = defaultdict(dict)
    for one in summaries:
        for link in one.ascend.links if one.ascend is not None else ():
            if link.source == link.target < 0:
                found[link.group].setdefault(-1 - link.source, one.rank)
    return found


def _global(link: AscendLink, group: AscendGroup | None, places: dict[int, int]) -> tuple[int, int] | None:
    """A link's ends by number in the run; None where they cannot be told."""
    ends = []
    for end in (link.source, link.target):
        if end >= 0:
            ends.append(end)
            continue
        place = -1 - end
        if group is not None and group.ranks:
            member = group.ranks[place] if place < len(group.ranks) else None
        else:
            member = places.get(place)
        if member is None:
            return None
        ends.append(member)
    return ends[0], ends[1]


def _role(name: str) -> Role:
    """By the words of the name: `tp`, `dp_cp`, `default_group`; none of two together (`tp_dp_cp`)."""
    words = name.lower().replace("-", "_").split("_")
    return role_among(_ROLES[word] for word in words if word in _ROLES)


def _speed(size: int, time_ns: int) -> int | None:
    return round(size / time_ns * 10**9) if size > 0 and time_ns > 0 else None

"""All that is found of ranks side by side, from what was kept of each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import count

import msgspec
import numpy as np

from deepscope.ranks.ascend import domain_rows, link_rows, with_step_times
from deepscope.ranks.calls import Calls, RowKey, gather, key_of
from deepscope.ranks.clocks import align_clocks
from deepscope.ranks.collectives import (
    Arrivals,
    arrivals_of,
    collective_rows,
    fill_waits,
    group_rows,
    set_roles,
    varying_lines,
    varying_rows,
)
from deepscope.ranks.ended import end_sentences, find_ends, leave_out_waiting, world_of
from deepscope.ranks.finding import straggler_findings
from deepscope.ranks.matching import Aligner, CallSequence, MatchedCalls, match
from deepscope.ranks.results import Failure, PairRow, RankRow, RanksReport
from deepscope.ranks.stragglers import find_stragglers
from deepscope.ranks.summary import RankSummary, summary_of
from deepscope.records import Profile
from deepscope.records.profile import add_findings
from deepscope.trace.model import Int64

_SLOWEST = 5


def rank_rows(summaries: Sequence[RankSummary]) -> list[RankRow]:
    """By rank; what is told by other ranks is left unknown."""
    return [with_step_times(_row(one), one.ascend) for one in sorted(summaries, key=lambda one: one.rank)]


def _slowest_ranks(rows: Sequence[RankRow]) -> list[int]:
    """The ranks with the longest own time, the longest first; none of a single rank."""
    if len(rows) < 2:
        return []
    return [row.rank for row in sorted(rows, key=lambda row: (-row.own_ns, row.rank))[:_SLOWEST]]


def _row(one: RankSummary) -> RankRow:
    totals = one.totals
    steps = max(totals.steps, 1)
    parts = {row.name: row.time_ns // max(row.steps, 1) for row in one.overview if row.section == "step"}
    step_ns = totals.wall_ns // steps
    working_ns = sum(parts.values()) or step_ns  # to the end of the last work that was launched in it
    communication, exposed = one.communication_ns // steps, one.exposed_ns // steps
    return RankRow(
        rank=one.rank,
        host=one.hostname,
        device=one.device,
        path=one.path,
        steps=totals.steps,
        serving_steps=one.serving_steps,
        step_ns=step_ns,
        own_ns=working_ns - parts.get("communication", 0),
        parts=parts,
        compute_ns=(one.computing_ns if one.metric == "device" else totals.device_ns) // steps,
        communication_ns=communication,
        exposed_ns=exposed,
        overlapped_ns=communication - exposed,
        idle_ns=totals.idle_ns // steps,
        data_ns=sum(phase.wall_ns for phase in one.phases if phase.name == "data") // steps,
        sync_ns=one.wait_ns // steps,
        peak_bytes=totals.peak_bytes,
    )


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
        ours, theirs = _same(calls, sent, received, aligned_ns)
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


def _same(calls: Calls, sent: Int64, received: Int64, aligned_ns: Aligned) -> tuple[Int64, Int64]:
    """The sends and the receives of the same messages."""
    if not len(sent) or not len(received):
        return _NONE, _NONE
    first, second = _sequence(calls, sent, aligned_ns), _sequence(calls, received, aligned_ns)
    found = Aligner(first).align(second)
    return (_NONE, _NONE) if found is None else (sent[found.ours], received[found.theirs])


def _sequence(calls: Calls, rows: Int64, aligned_ns: Aligned) -> CallSequence:
    start, end = (aligned_ns(calls.rank[rows], times[rows]) for times in (calls.start_ns, calls.end_ns))
    known = bool((start >= 0).all()) and bool((end >= 0).all())
    return CallSequence(
        token=calls.size_bytes[rows],
        step=calls.step[rows],
        start_ns=start if known else calls.start_ns[rows],
        end_ns=end if known else calls.end_ns[rows],
    )


def side_by_side(summaries: Sequence[RankSummary], failures: Sequence[Failure] = (), path: str = "") -> RanksReport:
    """Ranks of one run, each read alone.

    Raises:
        ValueError: there is no rank.
    """
    if not summaries:
        raise ValueError("no rank to look at")
    named, doubled = numbered(summaries)
    rows = rank_rows(named)
    matches = match(gather(named))
    clocks = align_clocks(matches)
    arrivals = arrivals_of(matches, clocks.aligned_ns(matches.calls.rank, matches.calls.start_ns))
    fill_waits(rows, named, matches, arrivals)
    there = [row.rank for row in rows]
    world = world_of(named)
    ends = find_ends(named)
    leave_out_waiting(rows, named, ends)
    stragglers = find_stragglers(named, rows)
    collectives = collective_rows(named, matches, arrivals)
    groups = group_rows(named, matches, arrivals, world)
    set_roles(collectives, groups)
    return RanksReport(
        path=path,
        world_size=world,
        missing=ends.missing,
        project_root=named[0].project_root,
        failures=[*failures, *doubled],
        ended=ends.ended,
        missing_wait=ends.missing_wait,
        ranks=rows,
        part_names=_part_names(named, rows),
        slowest=_slowest_ranks(rows),
        stragglers=stragglers,
        varying=varying_rows(named),
        findings=straggler_findings(stragglers, named),
        lines=varying_lines(named),
        clocks=clocks.rows(there),
        groups=groups,
        collectives=collectives,
        calls_outside_steps=sum(row.outside_calls for one in named for row in one.collectives),
        pairs=pair_rows(matches.calls, clocks.aligned_ns),
        domains=domain_rows(named),
        links=link_rows(named),
    )


def numbered(summaries: Sequence[RankSummary]) -> tuple[list[RankSummary], list[Failure]]:
    """The ranks, each number once; those without one have the first that are free, in the order of the files.

    Of two files that claim one rank the first is taken, and the other told as a failure.
    """
    first: dict[int, RankSummary] = {}
    doubled = []
    for one in summaries:
        if one.rank < 0:
            continue
        if one.rank in first:
            problem = f"names itself rank {one.rank}, as {first[one.rank].path} does; it is left out"
            doubled.append(Failure(path=one.path, rank=one.rank, message=problem))
        else:
            first[one.rank] = one
    free = (rank for rank in count() if rank not in first)
    nameless = [one for one in summaries if one.rank < 0]
    given = [msgspec.structs.replace(one, rank=rank) for one, rank in zip(nameless, free, strict=False)]
    named = [*first.values(), *given]
    return sorted(named, key=lambda one: one.rank), doubled


def _part_names(summaries: Sequence[RankSummary], rows: Sequence[RankRow]) -> list[str]:
    """The parts of the split, of all ranks: one without a device has fewer, and one without a trace."""
    names = [row.name for one in summaries for row in one.overview if row.section == "step"]
    return list(dict.fromkeys([*names, *(name for row in rows for name in row.parts)]))


def add_what_ranks_tell(merged: Profile, profiles: Sequence[Profile]) -> None:
    """Adds what no rank tells alone: which rank ended early or is late, how long collectives take once all are there.

    Args:
        merged: of the profiles.
        profiles: of a rank each, of two or more.
    """
    named, _ = numbered([summary_of(profile) for profile in profiles])
    merged.trace.warnings = [*merged.trace.warnings, *end_sentences(find_ends(named), merged.trace.project_root)]
    matches = match(gather(named))
    arrivals = arrivals_of(matches)
    set_transfers(merged, matches, arrivals)
    if all(one.own is None for one in named):
        return
    rows = rank_rows(named)
    fill_waits(rows, named, matches, arrivals)
    add_findings(merged, straggler_findings(find_stragglers(named, rows), named))


def set_transfers(merged: Profile, matches: MatchedCalls, arrivals: Arrivals) -> None:
    """Sets `shortest_ns` of the merged profile's collectives: of rows whose every call is found on all ranks."""
    calls, shortest = matches.calls, defaultdict[RowKey, list[int]](list)
    counts = np.zeros(len(calls.rows), np.int64)
    rows = np.flatnonzero(matches.match >= 0)
    is_told = matches.is_complete & arrivals.waits_known
    rows = rows[is_told[matches.match[rows]]]
    np.add.at(counts, calls.row[rows], calls.row[rows] == matches.row[matches.match[rows]])
    for row, time in zip(matches.row[is_told].tolist(), arrivals.shortest_ns[is_told].tolist(), strict=True):
        shortest[calls.rows[row]].append(time)
    number = {key: place for place, key in enumerate(calls.rows)}
    for record in merged.collectives:
        key = key_of(record)
        is_whole = key in number and counts[number[key]] == record.calls
        record.shortest_ns = shortest[key] if is_whole and len(shortest[key]) * record.ranks == record.calls else []

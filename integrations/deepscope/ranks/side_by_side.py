"""All that is found of ranks side by side, from what was kept of each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import count
from statistics import median
from typing import Literal

import msgspec
import numpy as np

from deepscope.ranks.ascend import domain_rows, link_rows, with_step_times
from deepscope.ranks.call_matching import MatchedCalls, match
from deepscope.ranks.clocks import align_clocks
from deepscope.ranks.collective_calls import RowKey, gather, key_of
from deepscope.ranks.collectives import (
    Arrivals,
    arrivals_of,
    collective_rows,
    fill_waits,
    group_rows,
    pair_rows,
    set_roles,
)
from deepscope.ranks.ended_ranks import end_sentences, find_ends, leave_out_waiting, world_of
from deepscope.ranks.lateness import LineKey, file_on_all_ranks
from deepscope.ranks.rank_summary import RankSummary, RankWork, summary_of
from deepscope.ranks.ranks_report import Failure, RankRow, RanksReport, VaryingLine, VaryingRow
from deepscope.ranks.straggler_finding import straggler_findings
from deepscope.ranks.stragglers import find_stragglers
from deepscope.records import Profile
from deepscope.records.profile import add_findings

_SLOWEST = 5


def rank_rows(summaries: Sequence[RankSummary]) -> list[RankRow]:
    """By rank; what is told by other ranks is left unknown."""
    return [with_step_times(_rank_row(one), one.ascend) for one in sorted(summaries, key=lambda one: one.rank)]


def _slowest_ranks(rows: Sequence[RankRow]) -> list[int]:
    """The ranks with the longest own time, the longest first; none of a single rank."""
    if len(rows) < 2:
        return []
    return [row.rank for row in sorted(rows, key=lambda row: (-row.own_ns, row.rank))[:_SLOWEST]]


def _rank_row(one: RankSummary) -> RankRow:
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


ROWS = 100
"""At most: of lines, and of operators and kernels together."""
DIFFER = 0.005
"""Calls a step that differ by less are the same: windows may begin and end at other events."""


def varying_rows(summaries: Sequence[RankSummary]) -> list[VaryingRow]:
    """By the difference of the ranks with the most and the least of it; what waits for other ranks is left out."""
    if len(summaries) < 2:
        return []
    found = [
        *_varying_works(summaries, "operator", lambda one: one.operators),
        *_varying_works(summaries, "kernel", lambda one: one.kernels),
    ]
    found.sort(key=lambda row: (row.min_ns - row.max_ns, row.kind, row.name))
    return found[:ROWS]


def _varying_works(
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
    rows = [row for key, times in differ if (row := _varying_line(files[key], key, times, ranks)).max_ns > row.min_ns]
    return sorted(rows, key=lambda row: (row.min_ns - row.max_ns, row.file, row.line, row.function))[:ROWS]


def _varying_line(file: str, key: LineKey, times: dict[int, int], ranks: Sequence[int]) -> VaryingLine:
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

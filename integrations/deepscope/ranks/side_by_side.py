"""All that is found of ranks side by side, from what was kept of each."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

import msgspec

from deepscope.ranks.arrivals import arrivals_of
from deepscope.ranks.ascend import domain_rows, link_rows
from deepscope.ranks.calls import gather
from deepscope.ranks.clocks import align_clocks
from deepscope.ranks.collectives import collective_rows, fill_waits
from deepscope.ranks.ended import find_ends, leave_out_waiting, world_of
from deepscope.ranks.finding import straggler_findings
from deepscope.ranks.groups import group_rows, set_roles
from deepscope.ranks.matching import match
from deepscope.ranks.overview import rank_rows, slowest_ranks
from deepscope.ranks.pairs import pair_rows
from deepscope.ranks.results import Failure, RankRow, RanksReport
from deepscope.ranks.stragglers import find_stragglers
from deepscope.ranks.summary import RankSummary
from deepscope.ranks.variation import varying_lines, varying_rows


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
        slowest=slowest_ranks(rows),
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
            problem = f"claims to be rank {one.rank}, which {first[one.rank].path} is; left out"
            doubled.append(Failure(path=one.path, rank=one.rank, message=problem))
        else:
            first[one.rank] = one
    free = (rank for rank in count() if rank not in first)
    nameless = [one for one in summaries if one.rank < 0]
    named = [*first.values(), *(_with_rank(one, rank) for one, rank in zip(nameless, free, strict=False))]
    return sorted(named, key=lambda one: one.rank), doubled


def _with_rank(summary: RankSummary, rank: int) -> RankSummary:
    return msgspec.structs.replace(summary, rank=rank)


def _part_names(summaries: Sequence[RankSummary], rows: Sequence[RankRow]) -> list[str]:
    """The parts of the split, of all ranks: one without a device has fewer, and one without a trace."""
    names = [row.name for one in summaries for row in one.overview if row.section == "step"]
    return list(dict.fromkeys([*names, *(name for row in rows for name in row.parts)]))

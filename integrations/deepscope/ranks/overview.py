"""A row for each rank: what a step of it is spent on."""

from __future__ import annotations

from collections.abc import Sequence

from deepscope.ranks.ascend import with_step_times
from deepscope.ranks.results import RankRow
from deepscope.ranks.summary import RankSummary

SLOWEST = 5


def rank_rows(summaries: Sequence[RankSummary]) -> list[RankRow]:
    """By rank; what is told by other ranks is left unknown."""
    return [with_step_times(_row(one), one.ascend) for one in sorted(summaries, key=lambda one: one.rank)]


def slowest_ranks(rows: Sequence[RankRow]) -> list[int]:
    """The ranks with the longest own time, the longest first; none of a single rank."""
    if len(rows) < 2:
        return []
    return [row.rank for row in sorted(rows, key=lambda row: (-row.own_ns, row.rank))[:SLOWEST]]


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

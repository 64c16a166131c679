"""Ranks that ended before the others or have no trace, and what the others waited for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

import msgspec
import numpy as np

from deepscope.printable import printable
from deepscope.quantities import ranges, time_text
from deepscope.ranks.lateness import others_median
from deepscope.ranks.rank_summary import RankLine, RankSummary
from deepscope.ranks.ranks_report import EndedRank, MissingWait, RankRow, Waited
from deepscope.records.source_files import short_place

_WAITED = 0.5
"""Communication that is longer than usual by this part of a step was waiting for the rank that was gone."""
_WAITED_FOR_MISSING = 1.0
"""The same of a rank without a trace: nothing else tells that it is gone."""

_NAMED = 3
"""So many ranks that ended early are named one by one."""


class Ends(NamedTuple):
    """Which ranks were not there to the end."""

    missing: str
    """Ranks without a trace: `3, 8-15`."""
    ended: list[EndedRank]
    """The first to end first."""
    missing_wait: MissingWait | None
    """What the others waited at the end for a missing one."""


def find_ends(summaries: Sequence[RankSummary]) -> Ends:
    """Which of a run's ranks are missing or ended early, by the summaries of the others; each has its number."""
    missing = _missing(sorted(one.rank for one in summaries), world_of(summaries))
    return Ends(missing, ended_ranks(summaries), missing_wait(summaries) if missing else None)


def world_of(summaries: Sequence[RankSummary]) -> int:
    """How many ranks a run has, as its traces claim or their numbers show."""
    return max(max(one.world_size, one.rank + 1) for one in summaries)


def end_sentences(ends: Ends, root: str) -> Iterator[str]:
    """`Rank 3 ended after step 5, the others after step 8: ranks 0-2 waited for it, up to 9.98s, at train.py:30.`

    Args:
        ends: what was found.
        root: the project's folder, which files are named from.
    """
    for one in ends.ended[:_NAMED]:
        what = f"The trace of rank {one.rank} is cut" if one.is_cut else f"Rank {one.rank} ended"
        words = f"{what} after step {one.last_step}, the others after step {one.last_of_others}"
        if one.waiting:
            words += f": {_ranks(one.waiting)} waited for it, {_longest(one, root)}"
        yield printable(f"{words}.")
    if (waited := ends.missing_wait) is not None:
        whom, have = ("it", "has") if ends.missing.isdigit() else ("one of them", "have")
        yield printable(
            f"{_ranks(ends.missing).capitalize()} {have} no readable trace: {_ranks(waited.waiting)} waited for {whom} "
            f"in step {waited.step}, the last one, {_longest(waited, root)}."
        )


def ended_ranks(summaries: Sequence[RankSummary]) -> list[EndedRank]:
    """The ranks that lack the last steps of most ranks, the first to end first; none of ranks without steps.

    Windows that begin and end some steps later are no sign of it: such a rank has as many steps as the others.
    """
    there = [one for one in summaries if one.step_ns]
    if len(there) < 2:
        return []
    last, count = (np.array([of(one.step_ns) for one in there], np.float64) for of in (max, len))
    has_ended = (last < others_median(last)) & (count < others_median(count))
    found = [
        _ended(one, [other for other in there if max(other.step_ns) > max(one.step_ns)])
        for one, is_early in zip(there, has_ended.tolist(), strict=True)
        if is_early
    ]
    return sorted(found, key=lambda one: (one.last_step, one.rank))


def missing_wait(summaries: Sequence[RankSummary]) -> MissingWait | None:
    """What all of these ranks, of a run with others that have no trace, waited at the end for one of those; or None.

    One that was killed leaves no trace, and one that was cut may not be read. If a rank that is here were late, it
    would not wait itself.
    """
    steps = {max(one.step_ns, default=-1) for one in summaries}
    if len(steps) > 1 or min(steps) < 0:
        return None
    (step,) = steps
    for one in summaries:
        before = [time_ns for number, time_ns in one.step_ns.items() if number < step]
        if not before or sum(_waits(one, step - 1).values()) < _WAITED_FOR_MISSING * median(before):
            return None
    return MissingWait(step=step, **msgspec.structs.asdict(_waited(summaries, step - 1)))


def leave_out_waiting(rows: Iterable[RankRow], summaries: Sequence[RankSummary], ends: Ends) -> None:
    """Takes what ranks waited for one that was gone out of their times a step: no step has it."""
    gone_after = [one.last_step for one in ends.ended]
    if ends.missing_wait is not None:
        gone_after.append(ends.missing_wait.step - 1)
    if not gone_after:
        return
    after = min(gone_after)
    waited = {one.rank: sum(_waits(one, after).values()) for one in summaries}
    for row in rows:
        if (less_ns := waited.get(row.rank, 0) // max(row.steps, 1)) > 0:
            communication_ns = row.parts.get("communication", 0)
            less_ns = min(less_ns, communication_ns)
            row.parts = {**row.parts, "communication": communication_ns - less_ns} if row.parts else row.parts
            row.step_ns -= less_ns
            row.communication_ns = max(row.communication_ns - less_ns, 0)
            row.exposed_ns = max(row.exposed_ns - less_ns, 0)


def _ended(one: RankSummary, others: Sequence[RankSummary]) -> EndedRank:
    """What is known of a rank that ended while `others` went on."""
    step = max(one.step_ns)
    return EndedRank(
        rank=one.rank,
        last_step=step,
        last_of_others=max(max(other.step_ns) for other in others),
        is_cut=one.is_cut,
        **msgspec.structs.asdict(_waited(others, step)),
    )


def _waited(ranks: Sequence[RankSummary], after: int) -> Waited:
    """What ranks waited in the steps after that one, and where the one that waited longest did."""
    waits = {one.rank: sum(_waits(one, after).values()) for one in ranks}
    waiting = [one for one in ranks if waits[one.rank]]
    longest = max(waiting, key=lambda one: waits[one.rank], default=None)
    line = _line_of_longest_call(longest, after) if longest is not None else None
    return Waited(
        waiting=ranges(one.rank for one in waiting),
        waited_ns=sum(waits.values()),
        longest_ns=max(waits.values(), default=0),
        file=line.file if line is not None else "",
        line=line.line if line is not None else 0,
        function=line.function if line is not None else "",
    )


def _waits(one: RankSummary, after: int) -> dict[int, int]:
    """By block of steps after that one, by how much its communication is longer than usual, if by a good part."""
    own = one.own
    if own is None:
        return {}
    a_step = [time_ns / max(steps, 1) for time_ns, steps in zip(own.communication_ns, own.steps, strict=True)]
    blocks = [block * one.steps_per_block + one.steps_per_block - 1 for block in own.blocks]
    usual = median([time for time, last in zip(a_step, blocks, strict=True) if last <= after] or [0.0])
    step_ns = median(one.step_ns.values())
    found = {}
    for block, last, communication, steps in zip(own.blocks, blocks, own.communication_ns, own.steps, strict=True):
        more_ns = communication - usual * steps
        if last > after and more_ns >= _WAITED * step_ns:
            found[block] = round(more_ns)
    return found


def _line_of_longest_call(one: RankSummary, after: int) -> RankLine | None:
    """The line of the longest collective in the steps after that one; None where it is not known."""
    start, end, step, line = (one.calls.column(name) for name in ("start_ns", "end_ns", "step", "line"))
    calls = [(end[at] - start[at], line[at]) for at in range(len(start)) if step[at] > after and line[at] >= 0]
    place = one.line_of.get(max(calls)[1]) if calls else None
    return one.lines[place] if place is not None else None


def _missing(there: Sequence[int], world: int) -> str:
    """The gaps between sorted ranks, up to the size of the run: a trace may claim any size."""
    edges = [-1, *there, world]
    gaps = [(before + 1, after - 1) for before, after in pairwise(edges) if after - before > 1]
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in gaps)


def _ranks(numbers: str) -> str:
    return f"ranks {numbers}" if {"-", ","} & set(numbers) else f"rank {numbers}"


def _longest(one: Waited, root: str) -> str:
    where = f", at {short_place(one.file, one.line, root)}" if one.file else ""
    return f"up to {time_text(one.longest_ns)}{where}"

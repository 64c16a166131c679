"""Ranks that ended before the others or have no trace, and what the others waited for them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

import msgspec

from deepscope.ranks.results import EndedRank, MissingWait, RankRow, Waited
from deepscope.ranks.summary import RankLine, RankSummary
from deepscope.records.ranges import ranges

_WAITED = 0.5
"""Communication that is longer than usual by this part of a step was waiting for the rank that was gone."""
_WAITED_FOR_MISSING = 1.0
"""The same of a rank without a trace: nothing else tells that it is gone."""


def ended_ranks(summaries: Sequence[RankSummary]) -> list[EndedRank]:
    """The ranks that lack the last steps of most ranks, the first to end first; none of ranks without steps.

    Windows that begin and end some steps later are no sign of it: such a rank has as many steps as the others.
    """
    found = []
    for one in summaries:
        others = [other for other in summaries if other is not one and other.step_ns]
        if (
            one.step_ns
            and others
            and all(of(one.step_ns) < median(of(other.step_ns) for other in others) for of in (max, len))
        ):
            found.append(_ended(one, [other for other in others if max(other.step_ns) > max(one.step_ns)]))
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


def leave_out_waiting(rows: Iterable[RankRow], summaries: Sequence[RankSummary], after: int) -> None:
    """Takes what ranks waited after that step, for one that was gone, out of their times a step: no step has it."""
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

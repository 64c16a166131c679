"""Ranks that the others wait for: by how much, how often, why, and which line made them late (docs/ranks.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from deepscope.analysis.array_ops.selection import Floats
from deepscope.printable import printable
from deepscope.quantities import count_text, time_text
from deepscope.ranks.causes import (
    LATE,
    CauseShares,
    Lateness,
    Pace,
    Typical,
    agrees,
    figures_of,
    lateness,
    pace_of,
    steady_lateness,
    typical_work,
)
from deepscope.ranks.own_table import (
    PARTS,
    LineKey,
    OwnTable,
    above_others,
    key_of_line,
    others_median,
    own_table,
)
from deepscope.ranks.results import RankFigure, RankRow, Straggler
from deepscope.ranks.summary import RankLine, RankSummary
from deepscope.records.places import base_name

PART_OF_EXCESS = 0.2
"""A line, or a part of the step, is named if it has at least this share of the excess."""
OF_ONCE = 0.5
"""Of a rank that is late once one line has at least this share of the excess."""
OF_WAITING = 0.5
"""A line of loader workers is named if it has at least this share of the waiting for them."""
MAKES_IT_LATE = 0.05
"""Lines with less than this share of the excess say nothing of its cause."""
MORE = 1.05
"""A line runs more if it has so many times as many operators or launches."""
FEW_RANKS = 16
"""Among fewer ranks a rank is compared with the others alone; among more it changes no median."""


def find_stragglers(summaries: Sequence[RankSummary], rows: Sequence[RankRow]) -> list[Straggler]:
    """The ranks that are late beyond noise, the worst first.

    Args:
        summaries: of the ranks, each with its own number.
        rows: of the same ranks; with who waited for whom, where that is known.
    """
    table = own_table(summaries)
    if table is None:
        return []
    by_rank = {one.rank: one for one in summaries}
    late = lateness(table.own, table.weights, table.step_ns)
    lines = late_lines(table, list(late))
    late |= _by_lines(table, lines, set(late))
    if not late:
        return []
    others = _Others(table, lines, [by_rank[rank] for rank in table.ranks])
    row_of = {row.rank: row for row in rows}
    found = [_straggler(rank, one, others, row_of) for rank, one in late.items() if _is_told(rank, one, lines)]
    return sorted(found, key=lambda one: (-one.excess_ns, one.rank))


def _by_lines(table: OwnTable, lines: LateLines, but: set[int]) -> dict[int, Lateness]:
    """Other ranks that are late by lines. Stages of a pipeline have lines of their own, and are not: most of the ranks
    have such lines, or the rank as a whole is earlier than they say, beyond noise. Lines that all ranks run and that
    are longer on half of them tell of no single rank either. Lines of ranks that are late as a whole say nothing of
    the others."""
    alone = {rank for key, of in zip(lines.keys, lines.late, strict=True) for rank in of if table.runs_alone(rank, key)}
    alone -= but
    chosen = {rank for of in lines.late for rank in of} - but
    if 2 * len(alone) >= len(table.ranks) and len(alone) > 1:
        return {}
    if 2 * len(chosen) >= len(table.ranks):
        chosen = alone
    found = {}
    for rank in chosen:
        of_lines = lines.of_rank(rank).values()
        excess_ns = sum(one.excess_ns for one in of_lines)
        if agrees(table.own, table.weights, rank, excess_ns):
            late = np.logical_or.reduce([one.late for one in of_lines])
            found[rank] = Lateness(
                excess_ns, late, round(float(table.weights[late].sum())), round(float(table.weights.sum()))
            )
    return found


def _is_told(rank: int, late: Lateness, lines: LateLines) -> bool:
    """A rank that is late once is so by a line: else its process was interrupted."""
    if late.steps < 2 or late.late_steps > 1:
        return True
    above = (value for key, value in lines.above(rank, late.late).items() if key[1] > 0)
    return max(above, default=0.0) >= OF_ONCE * late.excess_ns


@dataclass(frozen=True)
class _Others:
    """All ranks, for one to be compared with."""

    table: OwnTable
    lines: LateLines
    summaries: list[RankSummary]

    @cached_property
    def _typical(self) -> dict[str, Typical]:
        return typical_work(self.summaries)

    @cached_property
    def lines_of(self) -> list[dict[LineKey, RankLine]]:
        """Of each rank its lines."""
        return [{key_of_line(line, one.project_root): line for line in one.lines} for one in self.summaries]

    def pace(self, rank: int) -> Pace:
        """How fast a rank's kernels are beside the others'."""
        own = self.summaries[rank]
        if len(self.summaries) > FEW_RANKS:
            return pace_of(own, self._typical)
        return pace_of(own, typical_work([one for one in self.summaries if one is not own]))

    def above(self, rank: int, key: LineKey, *fields: str) -> float:
        """By how much fields of a line, summed, are above the others' median, a step."""
        return float(above_others(self._numbers(key, *fields))[rank])

    def times_as_many(self, rank: int, key: LineKey) -> float:
        """How many times as many operators and launches a line has as on the others."""
        numbers = self._numbers(key, "operators", "launches")
        return _ratio(float(numbers[rank]), float(others_median(numbers)[rank]))

    def worker_line(self, rank: int, least_ns: float) -> tuple[LineKey, float] | None:
        """The line on which loader workers are longer than on the other ranks by most, if by so much."""
        of_rank = self.lines_of[rank]
        keys = sorted((key for key, line in of_rank.items() if line.worker_ns), key=lambda key: -of_rank[key].worker_ns)
        above = [(self.above(rank, key, "worker_ns"), key) for key in keys[:10]]
        most, key = max(above, default=(0.0, ("", 0, "")))
        return (key, most) if most >= least_ns > 0 else None

    def _numbers(self, key: LineKey, *fields: str) -> np.ndarray:
        return np.array(
            [
                sum(getattr(lines[key], field) for field in fields) / max(one.totals.steps, 1) if key in lines else 0.0
                for one, lines in zip(self.summaries, self.lines_of, strict=True)
            ]
        )


def _ratio(value: float, typical: float) -> float:
    return value / typical if typical > 0 else float("inf") if value > 0 else 1.0


def _straggler(rank: int, late: Lateness, others: _Others, rows: Mapping[int, RankRow]) -> Straggler:
    own = others.summaries[rank]
    above = others.lines.above(rank, late.late)
    pace = others.pace(rank)
    shares = _shares(rank, late, above, others, pace)
    parts = others.table.parts_of()
    is_device = own.metric == "device"
    figures = figures_of(shares.cause, pace, parts[rank], others_median(parts)[rank], is_device=is_device)
    key, line_ns = _line(rank, late, above, shares, others)
    line = others.lines_of[rank].get(key)
    part, part_ns = _part(own.rank, rows)
    is_part = part_ns >= PART_OF_EXCESS * late.excess_ns
    row = rows.get(own.rank) or RankRow(rank=own.rank)
    found = Straggler(
        rank=own.rank,
        late_calls=row.last or 0,
        calls=row.matched,
        late_steps=late.late_steps,
        steps=late.steps,
        excess_ns=round(late.excess_ns),
        held_ns=_held(own.rank, late.excess_ns, others, rows),
        cause=shares.cause,
        hardware_ns=round(shares.hardware_ns),
        work_ns=round(shares.work_ns),
        data_ns=round(shares.data_ns),
        host_ns=round(shares.host_ns),
        figures=figures,
        part=part if is_part else "",
        part_ns=part_ns if is_part else 0,
        file=line.file if line is not None else "",
        line=line.line if line is not None else 0,
        function=line.function if line is not None else "",
        text=line.text.strip() if line is not None else "",
        line_ns=round(line_ns) if line is not None else 0,
    )
    found.message = sentence(found, is_device=is_device)
    return found


def _shares(rank: int, late: Lateness, above: dict[LineKey, float], others: _Others, pace: Pace) -> CauseShares:
    """The excess by cause: that of the lines that make it, or of the whole rank where no few lines do."""
    chosen = {key for key, value in above.items() if value >= MAKES_IT_LATE * late.excess_ns}
    if sum(above[key] for key in chosen) < late.excess_ns / 2:
        as_many = _ratio(pace.calls, pace.typical_calls)
        return _divided(rank, None, others, pace, as_many=as_many, waited=0.0)
    total = np.zeros(4)
    for key in chosen:
        waited = max(others.above(rank, key, "loader_wait_ns"), 0.0)
        of_line = _divided(rank, key, others, pace, as_many=others.times_as_many(rank, key), waited=waited)
        total += (of_line.hardware_ns, of_line.work_ns, of_line.data_ns, of_line.host_ns)
    return CauseShares(*total.tolist())


def _divided(
    rank: int, key: LineKey | None, others: _Others, pace: Pace, *, as_many: float, waited: float
) -> CauseShares:
    """What a line (or all of them) takes longer than on the others, by cause."""
    parts = others.table.parts_of(key)
    longer = np.maximum(above_others(parts)[rank], 0)
    typical = others_median(parts)[rank]
    operators, python, data, device, delay = range(len(PARTS))
    is_device = others.summaries[rank].metric == "device"
    waited = min(waited, float(longer[python]))
    ran = float(longer[device] if is_device else longer[operators] + longer[device])
    rest = float(longer[python] + longer[delay]) - waited + (float(longer[operators]) if is_device else 0.0)
    slow = pace.hardware_share * ran
    hardware, work, loading = slow, ran - slow, float(longer[data]) + waited
    if as_many > MORE:  # what launches them takes longer by as much
        usual = float(typical[python] + typical[delay]) + (float(typical[operators]) if is_device else 0.0)
        launching = min(rest, usual * (as_many - 1)) if np.isfinite(as_many) else rest
        return CauseShares(hardware, work + launching, loading, rest - launching)
    if not is_device and pace.is_slow:  # a slow processor is slow in Python, too
        of_python = min(rest, float(typical[python]) * (pace.ratio - 1))
        return CauseShares(hardware + of_python, work, loading, rest - of_python)
    return CauseShares(hardware, work, loading, rest)


def _line(
    rank: int, late: Lateness, above: dict[LineKey, float], shares: CauseShares, others: _Others
) -> tuple[LineKey, float]:
    """The line that is above the others by most, and by how much; workers' own line where they were waited for."""
    named = {key: value for key, value in above.items() if key[1] > 0}
    key = max(named, key=named.__getitem__, default=("", 0, ""))
    most = named.get(key, 0.0)
    if most < PART_OF_EXCESS * late.excess_ns:
        return ("", 0, ""), 0.0
    if shares.cause == "data":
        of_workers = others.worker_line(rank, OF_WAITING * most)
        if of_workers is not None:
            return of_workers[0], most
    return key, most


def _part(rank: int, rows: Mapping[int, RankRow]) -> tuple[str, int]:
    """The part of the step, communication excepted, that is above the median of the others by most."""
    if rank not in rows or len(rows) < 2:
        return "", 0
    ranks = list(rows)
    names = [name for name in rows[rank].parts if name != "communication"]
    table = np.array([[rows[one].parts.get(name, 0) for name in names] for one in ranks], np.float64)
    if not names:
        return "", 0
    above = above_others(table)[ranks.index(rank)]
    place = int(above.argmax())
    return names[place], int(above[place])


def _held(rank: int, excess_ns: float, others: _Others, rows: Mapping[int, RankRow]) -> int:
    """What the others wait for a rank, a step: each no longer than the rank is late, and than it waits at all."""
    table = others.table
    held = 0.0
    for place, other in enumerate(table.ranks):
        if other != rank:
            row = rows.get(other)
            waits = row.waited_ns if row is not None else None
            if waits is None:
                own = others.summaries[place].own
                waits = sum(own.communication_ns) // max(sum(own.steps), 1) if own is not None else 0
            held += min(excess_ns, waits)
    return round(held)


_LOOKED_AT = 0.2
"""Of what makes a rank late: lines that are above the others on no rank by this share of it are not looked at by
step."""


@dataclass(frozen=True, slots=True)
class LateLines:
    """Lines by step on all ranks, those that are longer on some rank than on the others."""

    keys: list[LineKey]
    excess: Floats
    """Above the median of the others; shape (r, b, l)."""
    weights: Floats
    late: list[dict[int, Lateness]]
    """Of each line the ranks (places) on which it is longer beyond noise."""

    def of_rank(self, rank: int) -> dict[LineKey, Lateness]:
        """The lines that are longer on a rank beyond noise."""
        return {key: of[rank] for key, of in zip(self.keys, self.late, strict=True) if rank in of}

    def above(self, rank: int, during: npt.NDArray[np.bool_]) -> dict[LineKey, float]:
        """By how much each line is above the others' median in these blocks, summed, a step over all steps."""
        weights = np.where(during, self.weights, 0)
        found = weights @ self.excess[rank] / self.weights.sum()
        return dict(zip(self.keys, found.tolist(), strict=True))


def late_lines(table: OwnTable, also: Sequence[int] = ()) -> LateLines:
    """The lines that may have made ranks late; of the ranks (places) `also` the longest ones in any case."""
    above = above_others(table.lines)
    limit = _LOOKED_AT * LATE * table.step_ns
    chosen = set(np.flatnonzero(above.max(axis=0) >= limit).tolist())
    for rank in also:
        chosen |= set(np.argsort(-above[rank])[:10].tolist())
    keys = [table.keys[place] for place in sorted(chosen)]
    times = table.times_of(keys)
    excess = above_others(times)
    late = [steady_lateness(times[:, :, place], table.weights, table.step_ns) for place in range(len(keys))]
    return LateLines(keys, excess, table.weights, late)


_MORE_CALLS = 1.02
_HOST = {
    "Python": "code outside of operators takes",
    "operators": "calling operators takes",
    "delays": "delays before work take",
}


def sentence(one: Straggler, *, is_device: bool) -> str:
    """By how much it is late and how often, why, and by which line."""
    words = [f"Rank {one.rank} {_how_late(one)}"]
    why = cause_words(one, is_device=is_device)
    line = _line_words(one)
    if why or line:
        words.append(": " + "; ".join(filter(None, (why, line))))
    return "".join(words) + "."


def _how_late(one: Straggler) -> str:
    late_ns = time_text(one.excess_ns * _late_part(one))
    if one.steps <= 1:
        return f"comes {late_ns} a step later than the others"
    if one.late_steps == 1:
        return f"came {late_ns} later than the others in a single one of {one.steps} steps"
    if _is_seldom(one):
        return f"comes {late_ns} later than the others in {one.late_steps:,} of {one.steps:,} steps"
    return f"comes {late_ns} a step later than the others, in {one.late_steps:,} of {one.steps:,} steps"


def _is_seldom(one: Straggler) -> bool:
    return 0 < 2 * one.late_steps < one.steps or (one.late_steps == 1 < one.steps)


def _late_part(one: Straggler) -> float:
    """What makes a mean over all steps one over the steps that a sentence is about."""
    return one.steps / one.late_steps if _is_seldom(one) else 1.0


def cause_words(one: Straggler, *, is_device: bool) -> str:
    """Why it is late, with the figures; "" where that is not known."""
    what = "kernels" if is_device else "operators"
    above = [figure for figure in one.figures if figure.value > figure.typical]
    if not above:
        return ""
    if one.cause == "hardware":
        return f"the same {what} take {above[0].value:.2f} times as long"
    if one.cause == "work":
        calls = one.figures[0]
        if calls.value > _MORE_CALLS * calls.typical:
            return f"it runs {_count(calls.value)} {what} a step, the others {_count(calls.typical)}"
        return f"its {what} have more to do: {_times(above[-1])}" if above[-1] is not calls else ""
    if one.cause == "data":
        return f"it loads data for {_times(above[0])}"
    most = max(above, key=lambda figure: figure.value - figure.typical)
    return f"{_HOST.get(most.label, most.label)} it {_times(most)}"


def _line_words(one: Straggler) -> str:
    if not one.line:
        return ""
    name = printable(base_name(one.file))
    return f"{name}:{one.line} has {time_text(one.line_ns * _late_part(one))} of it"


def _times(figure: RankFigure) -> str:
    return f"{time_text(figure.value)} a step, the others {time_text(figure.typical) or 'not at all'}"


def _count(value: float) -> str:
    return count_text(round(value)) or "none"

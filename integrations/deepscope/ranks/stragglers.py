"""Ranks that the others wait for: by how much, how often, why, and which line made them late (docs/ranks.md).

The excess of a rank's own time is divided among hardware, work, data and the host.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from deepscope.analysis.array_ops.selection import Floats
from deepscope.ranks.lateness import (
    PARTS,
    LateLines,
    Lateness,
    LineKey,
    OwnTable,
    above_others,
    key_of_line,
    late_by_lines,
    late_lines,
    lateness,
    others_median,
    own_table,
)
from deepscope.ranks.pace import Pace, Typical, pace_of, typical_work
from deepscope.ranks.rank_summary import RankLine, RankSummary
from deepscope.ranks.ranks_report import Cause, RankFigure, RankRow, Straggler
from deepscope.ranks.straggler_finding import sentence

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
    late |= late_by_lines(table, lines, set(late))
    if not late:
        return []
    others = _Others(table, lines, [by_rank[rank] for rank in table.ranks])
    row_of = {row.rank: row for row in rows}
    found = [_straggler(rank, one, others, row_of) for rank, one in late.items() if _is_told(rank, one, lines)]
    return sorted(found, key=lambda one: (-one.excess_ns, one.rank))


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


_NO_LINE = RankLine(
    "", 0, "", exact=False, text="", cost_ns=0, collective_ns=0, self_device_ns=0, self_cpu_ns=0, calls=0, launches=0
)


def _straggler(rank: int, late: Lateness, others: _Others, rows: Mapping[int, RankRow]) -> Straggler:
    own = others.summaries[rank]
    above = others.lines.above(rank, late.late)
    pace = others.pace(rank)
    shares = _shares(rank, late, above, others, pace)
    parts = others.table.parts_of()
    is_device = own.metric == "device"
    figures = figures_of(shares.cause, pace, parts[rank], others_median(parts)[rank], is_device=is_device)
    key, line_ns = _line(rank, late, above, shares, others)
    line = others.lines_of[rank].get(key) or _NO_LINE
    part, part_ns = _part(own.rank, rows)
    if part_ns < PART_OF_EXCESS * late.excess_ns:
        part, part_ns = "", 0
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
        part=part,
        part_ns=part_ns,
        file=line.file,
        line=line.line,
        function=line.function,
        text=line.text.strip(),
        line_ns=round(line_ns) if line is not _NO_LINE else 0,
    )
    found.message = sentence(found, is_device=is_device)
    return found


class CauseShares(NamedTuple):
    """An excess divided among its causes; what is none of them is the rest."""

    hardware_ns: float = 0.0
    work_ns: float = 0.0
    data_ns: float = 0.0
    host_ns: float = 0.0

    @property
    def cause(self) -> Cause:
        """The one that has more than half; "" for none."""
        causes: tuple[Cause, ...] = ("hardware", "work", "data", "host")
        most, word = max(zip(self, causes, strict=True))
        whole = sum(max(value, 0.0) for value in self)
        return word if 2 * most > whole > 0 else ""


def _shares(rank: int, late: Lateness, above: dict[LineKey, float], others: _Others, pace: Pace) -> CauseShares:
    """The excess by cause: that of the lines that make it, or of the whole rank where no few lines do."""
    chosen = {key for key, value in above.items() if value >= MAKES_IT_LATE * late.excess_ns}
    if sum(above[key] for key in chosen) < late.excess_ns / 2:
        as_many = _ratio(pace.calls, pace.typical_calls)
        return _divided(rank, None, others, pace, as_many=as_many, waited=0.0)
    total = np.zeros(4)
    for key in chosen:
        waited = max(others.above(rank, key, "loader_wait_ns"), 0.0)
        total += _divided(rank, key, others, pace, as_many=others.times_as_many(rank, key), waited=waited)
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


def figures_of(cause: Cause, pace: Pace, parts: Floats, typical: Floats, *, is_device: bool) -> list[RankFigure]:
    """What the verdict rests on; `parts` are those of the rank's own time as `PARTS` has them, a step."""
    what = "kernels" if is_device else "operators"
    operators, python, data, device, delay = range(5)
    if cause == "hardware":
        return [RankFigure(label=f"{what}, times as long", kind="ratio", value=round(pace.ratio, 4), typical=1.0)]
    if cause == "work":
        index = device if is_device else operators
        return [
            RankFigure(label=f"calls of {what}", kind="count", value=pace.calls, typical=pace.typical_calls),
            RankFigure(label=f"time of {what}", kind="time", value=float(parts[index]), typical=float(typical[index])),
        ]
    if cause == "data":
        return [RankFigure(label="loading data", kind="time", value=float(parts[data]), typical=float(typical[data]))]
    if cause == "host":
        rows = [("Python", python), ("operators", operators), ("delays", delay)] if is_device else [("Python", python)]
        return [
            RankFigure(label=label, kind="time", value=float(parts[index]), typical=float(typical[index]))
            for label, index in rows
            if parts[index] > typical[index]
        ]
    return []

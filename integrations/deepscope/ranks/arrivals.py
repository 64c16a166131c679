"""Who comes when to the same call, who waits for whom, and how much that varies.

All ranks leave a call at one time where each needs the data of each, so that its length tells when a rank has come.
Where one rank sends to all or takes from all, the others may leave earlier: of these calls aligned clocks tell when
each has come, and nothing tells waiting from moving data.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

import numpy as np

from deepscope.analysis.array_ops.selection import Mask
from deepscope.ranks.matching import MatchedCalls
from deepscope.ranks.own_table import LineKey, file_on_all_ranks
from deepscope.ranks.results import VaryingLine, VaryingRow
from deepscope.ranks.summary import RankSummary, RankWork
from deepscope.records.places_of_work import TOGETHER
from deepscope.trace.model import Int64


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Matched calls by their ranks' arrivals; arrays of shape (m,) but for `waited_ns`."""

    waits_known: Mask
    """Whether all ranks leave together, so that waiting is told from moving data."""
    shortest_ns: Int64
    """The time on the rank that came last, where `waits_known`; else 0."""
    spread_ns: Int64
    """From the first rank's arrival to the last one's; -1 where it is not known."""
    last_rank: Int64
    """The rank that came last; -1 where several came at one time, where there is one alone, or it is not known."""
    waited_ns: Int64
    """Of each call, how much longer it is than on the rank that came last; shape (c,), 0 where it is not known."""


def arrivals_of(matches: MatchedCalls, start_ns: Int64 | None = None) -> Arrivals:
    """Who comes when.

    Args:
        matches: calls found on several ranks.
        start_ns: of each call its start on a clock that all ranks have in common, -1 where there is none; shape (c,).
    """
    calls, match, count = matches.calls, matches.match, len(matches)
    together = np.array([row.kind in TOGETHER for row in calls.rows], np.bool_)[matches.row]
    rows = np.flatnonzero(match >= 0)
    of, time = match[rows], calls.time_ns[rows]
    shortest, longest, last = _extremes(-time, of, calls.rank[rows], count)
    shortest, longest = -longest, -shortest
    waited = np.zeros(len(match), np.int64)
    waited[rows] = np.where(together[of], time - shortest[of], 0)
    spread = np.where(together, longest - shortest, -1)
    last = np.where(together, last, -1)
    if start_ns is not None and not together.all():
        rows = rows[~together[of]]
        of = match[rows]
        known = np.ones(count, np.bool_)
        known[of[start_ns[rows] < 0]] = False
        known &= ~together
        first, latest, came_last = _extremes(start_ns[rows], of, calls.rank[rows], count)
        spread = np.where(known, latest - first, spread)
        last = np.where(known, came_last, last)
    last = np.where(matches.ranks > 1, last, -1)
    return Arrivals(together, np.where(together, shortest, 0), spread, last, waited)


def _extremes(value: Int64, of: Int64, rank: Int64, count: int) -> tuple[Int64, Int64, Int64]:
    """The least and the largest value of each match, and the rank of the largest, -1 where several have it."""
    bound = np.iinfo(np.int64).max
    low, high = np.full(count, bound), np.full(count, -bound)
    np.minimum.at(low, of, value)
    np.maximum.at(high, of, value)
    top = value == high[of]
    ranks = np.full(count, -1, np.int64)
    ranks[of[top]] = rank[top]
    ranks[np.bincount(of[top], minlength=count) != 1] = -1
    return low, high, ranks


ROWS = 100
"""At most: of lines, and of operators and kernels together."""
DIFFER = 0.005
"""Calls a step that differ by less are the same: windows may begin and end at other events."""


def varying_rows(summaries: Sequence[RankSummary]) -> list[VaryingRow]:
    """By the difference of the ranks with the most and the least of it; what waits for other ranks is left out."""
    if len(summaries) < 2:
        return []
    found = [
        *_rows(summaries, "operator", lambda one: one.operators),
        *_rows(summaries, "kernel", lambda one: one.kernels),
    ]
    found.sort(key=lambda row: (row.min_ns - row.max_ns, row.kind, row.name))
    return found[:ROWS]


def _rows(
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
    rows = [row for key, times in differ if (row := _row(files[key], key, times, ranks)).max_ns > row.min_ns]
    return sorted(rows, key=lambda row: (row.min_ns - row.max_ns, row.file, row.line, row.function))[:ROWS]


def _row(file: str, key: LineKey, times: dict[int, int], ranks: Sequence[int]) -> VaryingLine:
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

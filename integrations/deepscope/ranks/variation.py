"""What varies most over the ranks: lines, operators and kernels."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from statistics import median
from typing import Literal

import numpy as np

from deepscope.ranks.own_table import LineKey, file_on_all_ranks
from deepscope.ranks.results import VaryingLine, VaryingRow
from deepscope.ranks.summary import RankSummary, RankWork

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

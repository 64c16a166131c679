"""Operators and kernels that vary most over the ranks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from deepscope.ranks.results import VaryingRow
from deepscope.ranks.summary import RankSummary, RankWork

ROWS = 100
"""Of operators and kernels together at most."""
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

"""Own times of all ranks, on the same steps and the same lines; each rank beside the median of the others."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deepscope.analysis.array_ops.selection import Floats
from deepscope.ranks.summary import RankLine, RankSummary
from deepscope.records import OwnLine

LineKey = tuple[str, int, str]
"""File below the project's root where it is there, line, function; ("", 0, "") for no line, ("", -1, "") for lines
without a row of their own."""

PARTS = ("operator_ns", "python_ns", "data_ns", "device_ns", "delay_ns")

_NO_LINE: LineKey = ("", 0, "")
_OTHERS: LineKey = ("", -1, "")


@dataclass(frozen=True, slots=True)
class OwnTable:
    """Own times a step; ranks are the first axis of all arrays."""

    ranks: list[int]
    weights: Floats
    """How many steps there are in each block that all ranks have; shape (b,)."""
    step_ns: float
    """The typical step: the median over the ranks of the median over their blocks."""
    own: Floats
    """Shape (r, b)."""
    keys: list[LineKey]
    lines: Floats
    """Mean over the blocks; shape (r, l)."""
    rows: list[dict[LineKey, list[tuple[float, OwnLine]]]]
    """Of each rank the rows of each line, each with the steps that it sums over."""
    blocks: list[list[int]]
    """Of each rank, for each of its own blocks the place among the common ones, -1 for none."""
    block_steps: Floats
    """Steps of each rank in each block; shape (r, b)."""

    def times_of(self, keys: Sequence[LineKey]) -> Floats:
        """Own times of lines; shape (r, b, l)."""
        found = np.zeros((len(self.ranks), len(self.weights), len(keys)))
        places = {key: place for place, key in enumerate(keys)}
        for rank, rows in enumerate(self.rows):
            into = np.array(self.blocks[rank], np.int64)
            for key, of_line in rows.items():
                place = places.get(key)
                if place is not None:
                    for _, row in of_line:
                        np.add.at(found[rank, :, place], into[into >= 0], np.array(row.times_ns)[into >= 0])
        return np.asarray(found / self.block_steps[:, :, None])

    def runs_alone(self, rank: int, key: LineKey) -> bool:
        """Whether a line of a rank (place) has no time on any other rank."""
        times = self.lines[:, self.keys.index(key)]
        return bool(times[rank] > 0 and times.sum() == times[rank])

    def parts_of(self, key: LineKey | None = None) -> Floats:
        """What own time is made of, of a line or of all of them; shape (r, 5)."""
        found = np.zeros((len(self.ranks), len(PARTS)))
        for rank, rows in enumerate(self.rows):
            for one, of_line in rows.items():
                if key is None or one == key:
                    for steps, row in of_line:
                        found[rank] += np.array([getattr(row, part) for part in PARTS]) / steps
        return found


def key_of_line(line: RankLine, root: str) -> LineKey:
    """What a line is called on all ranks."""
    return file_on_all_ranks(line.file, root), line.line, line.function


def file_on_all_ranks(file: str, root: str) -> str:
    """A file below the project's root, which may lie elsewhere on each host; any other as it is."""
    return file[len(root) + 1 :] if root and file.startswith(f"{root}/") else file


def own_table(summaries: Sequence[RankSummary]) -> OwnTable | None:
    """The own times of ranks that have some, and are counted as most are; None where fewer than two have.

    Times of a rank without a device, as one whose trace is cut before it, are not those of ranks with one.
    """
    chosen = [one for one in summaries if one.own is not None and one.own.blocks]
    for metric, _ in Counter(one.metric for one in chosen).most_common(1):
        chosen = [one for one in chosen if one.metric == metric]
    if len(chosen) < 2:
        return None
    blocks, common = _common_blocks(chosen)
    count = max(len(common), 1)
    steps = np.zeros((len(chosen), count))
    wall, own = steps.copy(), steps.copy()
    rows: list[dict[LineKey, list[tuple[float, OwnLine]]]] = []
    for rank, one in enumerate(chosen):
        times = one.own
        if times is None:
            continue
        into = np.array(blocks[rank], np.int64)
        kept = into >= 0
        busy = np.array(times.wall_ns, np.float64) - np.array(times.communication_ns, np.float64)
        for table, values in ((steps, times.steps), (wall, times.wall_ns), (own, busy)):
            np.add.at(table[rank], into[kept], np.array(values, np.float64)[kept])
        of_rank: dict[LineKey, list[tuple[float, OwnLine]]] = defaultdict(list)
        for row in times.lines:
            key = (
                key_of_line(one.lines[row.line], one.project_root)
                if row.line >= 0
                else (_NO_LINE, _OTHERS)[row.line == -2]
            )
            of_rank[key].append((float(max(sum(times.steps), 1)), row))
        rows.append(dict(of_rank))
    steps = np.maximum(steps, 1)
    keys = list(dict.fromkeys(key for of_rank in rows for key in of_rank))
    places = {key: place for place, key in enumerate(keys)}
    lines = np.zeros((len(chosen), len(keys)))
    for rank, of_rank in enumerate(rows):
        inside = np.array(blocks[rank], np.int64) >= 0
        for key, of_line in of_rank.items():
            lines[rank, places[key]] = sum(int(np.array(row.times_ns)[inside].sum()) for _, row in of_line)
    lines /= steps.sum(axis=1, keepdims=True)
    return OwnTable(
        ranks=[one.rank for one in chosen],
        weights=np.asarray(np.median(steps, axis=0)),
        step_ns=float(np.median(np.median(wall / steps, axis=1))),
        own=own / steps,
        keys=keys,
        lines=lines,
        rows=rows,
        blocks=blocks,
        block_steps=steps,
    )


def _common_blocks(chosen: Sequence[RankSummary]) -> tuple[list[list[int]], list[int]]:
    """The place of each rank's blocks among those that all have; where they have less than half, all are one."""
    length = max(one.steps_per_block for one in chosen)
    numbers = [[block * one.steps_per_block // length for block in one.own.blocks] if one.own else [] for one in chosen]
    common = sorted(set.intersection(*map(set, numbers)))
    if 2 * len(common) < np.median([len(set(one)) for one in numbers]):
        return [[0] * len(one) for one in numbers], [0]
    place = {block: at for at, block in enumerate(common)}
    return [[place.get(block, -1) for block in one] for one in numbers], common


_NORMAL = 1.4826
"""Of normal noise the standard deviation is so many times the median distance from the median."""


def others_median(values: Floats) -> Floats:
    """Of each rank the median over all the other ranks; ranks are the first axis, of at least two places."""
    count = len(values)
    order = np.argsort(values, axis=0, kind="stable")
    ordered = np.take_along_axis(values, order, axis=0)
    place = np.empty_like(order)
    np.put_along_axis(place, order, np.arange(count).reshape(-1, *[1] * (values.ndim - 1)), axis=0)

    def other(k: int) -> Floats:
        """The k-th smallest of the others."""
        return np.asarray(np.where(place <= k, ordered[k + 1], ordered[k]))

    low, high = (count - 2) // 2, (count - 1) // 2
    return np.asarray((other(low) + other(high)) / 2) if low != high else other(low)


def above_others(values: Floats) -> Floats:
    """By how much each rank is above the median of the others."""
    return np.asarray(values - others_median(values))


def scatter(values: Floats, axis: int) -> Floats:
    """A robust standard deviation along an axis: few values far off do not change it."""
    middle = np.median(values, axis=axis, keepdims=True)
    return np.asarray(_NORMAL * np.median(np.abs(values - middle), axis=axis))

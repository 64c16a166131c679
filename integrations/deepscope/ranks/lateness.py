"""Which ranks are late, beyond noise, as a whole or on a line: each rank beside the median of the others.

Own times of all ranks stand in one table, on the steps and the lines that all have.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from deepscope.analysis.array_ops.selection import Floats
from deepscope.ranks.rank_summary import RankLine, RankSummary
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


LATE = 0.05
"""A rank is late by at least this share of a typical step, over all steps."""
SELDOM = 0.1
"""The same of a rank that is late in fewer than half of the steps."""
ONCE = 1.0
"""In a single step it is late by at least so many: less can be the machine's doing."""
BEYOND = 3.0
"""So many standard deviations of the other steps' noise."""
SURE = 4.0
"""Where no step by itself stands out, the mean does by so many of its standard errors."""
BESIDE = 0.1
"""Of its worst block: one that is late by less is not late beside it."""
STEADY = 3.0
"""Of a line alone the mean is so many of its standard errors."""
FEW_FOR_NOISE = 5
"""Fewer ranks tell nothing of the noise between ranks."""


@dataclass(frozen=True, slots=True)
class Lateness:
    """By how much a rank is late, and when."""

    excess_ns: float
    """A step, over all steps."""
    late: npt.NDArray[np.bool_]
    """The blocks of steps in which it is; shape (b,)."""
    late_steps: int
    steps: int


def lateness(own: Floats, weights: Floats, step_ns: float) -> dict[int, Lateness]:
    """The ranks (places) that are late beyond noise.

    Args:
        own: time of each rank in each block of steps, a step; shape (r, b).
        weights: how many steps each block has; shape (b,).
        step_ns: the typical step.
    """
    limit = LATE * step_ns
    excess = above_others(own)
    mean = excess @ weights / weights.sum()
    if own.shape[1] == 1:
        between = float(scatter(mean, axis=0)) if len(own) >= FEW_FOR_NOISE else 0.0
        chosen = np.flatnonzero(mean >= max(limit, BEYOND * between))
        everywhere = np.ones(1, np.bool_)
        return {rank: _found(float(mean[rank]), everywhere, weights) for rank in chosen.tolist()}
    late, noise = _late(excess, limit)
    seldom = late & (excess >= _dip(excess))
    in_seldom = np.where(seldom, excess, 0) @ weights / weights.sum()
    found = {}
    for rank in np.flatnonzero((mean >= limit) | (in_seldom >= SELDOM * step_ns)).tolist():
        blocks = int(seldom[rank].sum())
        if mean[rank] >= limit and _usually(late[rank]):
            found[rank] = _found(float(mean[rank]), late[rank], weights)
        elif in_seldom[rank] >= SELDOM * step_ns and (
            blocks >= 2 or float((excess[rank] * weights)[seldom[rank]].sum()) >= ONCE * step_ns
        ):
            found[rank] = _found(float(in_seldom[rank]), seldom[rank], weights)
        elif mean[rank] >= limit and mean[rank] >= SURE * max(noise / np.sqrt(excess.shape[1]), _error(excess[rank])):
            found[rank] = _found(float(mean[rank]), np.asarray(excess[rank] > 0), weights)
    return found


def steady_lateness(own: Floats, weights: Floats, step_ns: float) -> dict[int, Lateness]:
    """The same of one line, which alone tells that a rank is late only where it is so usually and steadily."""
    if own.shape[1] < 2:
        return {}
    limit = LATE * step_ns
    excess = above_others(own)
    mean = excess @ weights / weights.sum()
    chosen = np.flatnonzero(mean >= limit).tolist()
    late = _late(excess, limit)[0] if chosen else np.zeros(0, np.bool_)
    return {
        rank: _found(float(mean[rank]), late[rank], weights)
        for rank in chosen
        if _usually(late[rank]) and mean[rank] >= STEADY * _error(excess[rank])
    }


def agrees(own: Floats, weights: Floats, rank: int, excess_ns: float) -> bool:
    """Whether a rank as a whole may be late by so much: noise explains what it is late by less."""
    excess = above_others(own)
    mean = float(excess[rank] @ weights / weights.sum())
    noise = float(np.median(scatter(excess, axis=1))) / np.sqrt(excess.shape[1])
    return bool(excess_ns - mean <= BEYOND * max(noise, _error(excess[rank])))


def _late(excess: Floats, limit: float) -> tuple[npt.NDArray[np.bool_], float]:
    """In which blocks each rank is late, and the noise."""
    noise = float(np.median(scatter(excess, axis=1)))
    # Where machines interrupt programs, noise has long tails: the others' worst blocks are no lateness either.
    tails = others_median(excess.max(axis=1))[:, None]
    late = excess >= np.maximum(tails, max(limit, BEYOND * noise))
    return np.asarray(late & (excess >= BESIDE * excess.max(axis=1, keepdims=True))), noise


def _dip(excess: Floats) -> float:
    """How far ranks are early at most, but for the hundredth part of the times: nobody means to be, so it is noise.

    A late rank changes no other's median where there are four ranks and more.
    """
    early = -excess[excess < 0]
    return float(np.quantile(early, 0.99)) if len(early) and len(excess) > 3 else 0.0


def _usually(late: npt.NDArray[np.bool_]) -> bool:
    blocks = int(late.sum())
    return blocks >= 2 and 2 * blocks >= len(late)


def _error(values: Floats) -> float:
    """The standard error of the mean."""
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def _found(excess_ns: float, late: npt.NDArray[np.bool_], weights: Floats) -> Lateness:
    return Lateness(excess_ns, late, round(float(weights[late].sum())), round(float(weights.sum())))


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


def late_by_lines(table: OwnTable, lines: LateLines, but: set[int]) -> dict[int, Lateness]:
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

"""Why a rank is late: the excess of its own time divided among hardware, work, data and the host.

Of a device's time (without a device, of operators') what other ranks' calls of the same kernels would have taken is
work; what each call takes longer is hardware where it is so across most kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from deepscope.analysis.array_ops.selection import Floats
from deepscope.ranks.own_table import above_others, others_median, scatter
from deepscope.ranks.results import Cause, RankFigure
from deepscope.ranks.summary import RankSummary, RankWork

SLOWER = 1.03
"""Kernels that take less than this many times as long are as fast."""
MOST = 2 / 3
"""Hardware is slow if at least this share of the time of the kernels, and half of the kernels, is longer by at least
half as much as the typical one."""
SAME_SIZE = 0.02
"""Sizes that differ by less are the same."""
LEAST = 1e-3
"""Kernels with less than this share of the time do not count among the kernels."""


@dataclass(frozen=True, slots=True)
class Typical:
    """A kernel or an operator on a typical rank."""

    calls: float
    """A step, the median over all ranks, of those without it too; and the time."""
    time_ns: float
    call_ns: float
    """A call, the median over the ranks that have it."""
    size: float
    """A call; 0 where it is not known."""


@dataclass(frozen=True, slots=True)
class Pace:
    """A rank's kernels (without a device: operators) beside typical ones, times a step."""

    ratio: float
    """How many times as long calls of the same size take: the median over the kernels, weighted by their time."""
    is_uniform: bool
    """Whether most kernels are longer, by about as much."""
    calls: float
    """A step, of all kernels."""
    typical_calls: float
    time_ns: float
    typical_ns: float

    @property
    def is_slow(self) -> bool:
        """Whether the device (or the processor) is slow."""
        return self.is_uniform and self.ratio >= SLOWER

    @property
    def hardware_share(self) -> float:
        """Of what the kernels take longer, how much is because each takes longer on this device."""
        if not self.is_slow:
            return 0.0
        longer = self.time_ns - self.typical_ns
        slower = self.time_ns * (1 - 1 / self.ratio)
        return min(1.0, slower / longer) if longer > 0 else 1.0


def works_of(one: RankSummary) -> list[RankWork]:
    """What tells how fast a rank is: kernels, without a device operators; collectives wait for others and do not."""
    rows = one.kernels if one.metric == "device" else one.operators
    return [row for row in rows if not row.collective]


def typical_work(summaries: Sequence[RankSummary]) -> dict[str, Typical]:
    """By name; summaries are at least one."""
    found: dict[str, list[tuple[float, float, float]]] = {}
    for one in summaries:
        steps = max(one.totals.steps, 1)
        for row in works_of(one):
            if row.calls:
                values = row.calls / steps, row.device_ns / steps, row.size / row.calls
                found.setdefault(row.name, []).append(values)
    typical = {}
    for name, rows in found.items():
        table = np.array(rows)
        without = np.zeros((len(summaries) - len(rows), 2))
        calls, time_ns = np.median(np.concatenate((table[:, :2], without)), axis=0).tolist()
        sizes = table[:, 2][table[:, 2] > 0]
        call_ns = float(np.median(table[:, 1] / table[:, 0]))
        typical[name] = Typical(calls, time_ns, call_ns, float(np.median(sizes)) if len(sizes) else 0.0)
    return typical


def pace_of(one: RankSummary, typical: dict[str, Typical]) -> Pace:
    """A rank beside what is typical of the others."""
    steps = max(one.totals.steps, 1)
    ratios, weights = [], []
    calls = time_ns = 0.0
    for row in works_of(one):
        calls += row.calls / steps
        time_ns += row.device_ns / steps
        usual = typical.get(row.name)
        if usual is None or not row.calls or usual.call_ns <= 0:
            continue
        size = row.size / row.calls / usual.size if row.size and usual.size else 1.0
        ratio = row.device_ns / row.calls / usual.call_ns
        if abs(size - 1) > SAME_SIZE:
            ratio /= max(size, 1e-9)
        ratios.append(ratio)
        weights.append(row.calls / steps * usual.call_ns)
    ratio, is_uniform = _uniform(np.array(ratios), np.array(weights))
    return Pace(
        ratio,
        is_uniform,
        calls,
        sum(one.calls for one in typical.values()),
        time_ns,
        sum(one.time_ns for one in typical.values()),
    )


def _uniform(ratios: Floats, weights: Floats) -> tuple[float, bool]:
    """The weighted median, and whether most are near to it or above."""
    if not len(ratios) or weights.sum() <= 0:
        return 1.0, False
    order = np.argsort(ratios)
    reach = np.cumsum(weights[order])
    ratio = float(ratios[order][np.searchsorted(reach, reach[-1] / 2)])
    longer = ratios >= 1 + (ratio - 1) / 2
    counted = weights >= LEAST * weights.sum()
    share = weights[longer].sum() / weights.sum()
    return ratio, bool(share >= MOST and longer[counted].mean() >= 0.5)


@dataclass(frozen=True, slots=True)
class CauseShares:
    """An excess divided among its causes; what is none of them is the rest."""

    hardware_ns: float = 0.0
    work_ns: float = 0.0
    data_ns: float = 0.0
    host_ns: float = 0.0

    @property
    def cause(self) -> Cause:
        """The one that has more than half; "" for none."""
        named: list[tuple[float, Cause]] = [
            (self.hardware_ns, "hardware"), (self.work_ns, "work"), (self.data_ns, "data"), (self.host_ns, "host"),
        ]  # fmt: skip
        most, word = max(named)
        whole = sum(max(value, 0.0) for value, _ in named)
        return word if 2 * most > whole > 0 else ""


def figures_of(cause: Cause, pace: Pace, parts: Floats, typical: Floats, *, is_device: bool) -> list[RankFigure]:
    """What the verdict rests on; `parts` are those of the rank's own time as `own_table.PARTS` has them, a step."""
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
FEW_RANKS = 5
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
        between = float(scatter(mean, axis=0)) if len(own) >= FEW_RANKS else 0.0
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

"""Whether a rank is later than the others by more than noise: always, in some steps, or once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from deepscope.ranks.medians import Floats, above_others, others_median, scatter

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

"""What pairs of runs tell: a speedup with its interval, whether losses stayed the same, and a verdict in one word.

The rounds are paired, as in A B B A: a machine that gets slower meanwhile slows both. The logarithms of the ratios are
averaged. The variance of a run is estimated from what runs of the same form that follow one another differ by, as a
drift of the machine is in no other estimate as little (von Neumann 1941, Distribution of the ratio of the mean square
successive difference to the variance, Annals of Mathematical Statistics 12); such differences overlap, so that they
have two thirds of their number as degrees of freedom. Student's t distribution gives the interval.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from deepscope.comparison.noise import CONFIDENCE, two_sided_quantile
from deepscope.records.findings import Losses, TryVerdict
from deepscope.trials.messages import Answer

LEAST_SPEEDUP = 1.02
"""A smaller speedup is no gain, however certain."""
LEAST_POSSIBLE = 1.05
"""Where the interval ends below it, there is no gain to be had; where it does not, more runs may show one."""
VERDICTS = 4
"""So often a verdict is looked for while runs come in; each look has its share of the error that all may make."""
NOISE_FACTOR = 8.0
"""Losses may differ by so many times what rounding makes of them in this very program."""
LEAST_ROUNDINGS = 16.0
"""And by so many roundings of the loss itself."""
FLOAT32_ROUNDING = 2.0**-24


@dataclass(frozen=True)
class Speedup:
    """Of the unchanged step by the changed one."""

    before_ns: float
    after_ns: float
    ratio: float
    low: float
    high: float
    """With `low`, an interval that holds the true ratio with 95 % confidence."""


def step_ns(answer: Answer, warmup: int) -> float:
    """The mean length of the timed steps; 0 where fewer than one was timed."""
    timed = [mark for mark in answer.marks if mark[0] >= warmup]
    if len(timed) < 2:
        return 0.0
    (first, begin), (last, end) = timed[0], timed[-1]
    return (end - begin) / (last - first)


def speedup(pairs: Sequence[tuple[float, float]], unchanged: Sequence[float]) -> Speedup:
    """What pairs of an unchanged and a changed step tell.

    Args:
        pairs: steps of runs that followed one another, in nanoseconds; at least one.
        unchanged: steps of all unchanged runs of the session, in the order in which they were made; at least two.
    """
    logs = [math.log(before / after) for before, after in pairs]
    mean = math.fsum(logs) / len(logs)
    runs = Counter(before for before, _ in pairs)  # one that ends a round begins the next
    weights = sum((times / len(logs)) ** 2 for times in runs.values()) + 1 / len(logs)
    changed = [after for _, after in pairs]
    ratios = [*itertools.pairwise(unchanged), *itertools.pairwise(changed)]
    variance = math.fsum(math.log(one / other) ** 2 for one, other in ratios) / len(ratios) / 2
    degrees = max(1, 2 * len(ratios) // 3)
    margin = two_sided_quantile((1 - CONFIDENCE) / VERDICTS, degrees) * math.sqrt(variance * weights)
    return Speedup(
        before_ns=math.exp(math.fsum(math.log(before) for before, _ in pairs) / len(pairs)),
        after_ns=math.exp(math.fsum(math.log(after) for _, after in pairs) / len(pairs)),
        ratio=math.exp(mean),
        low=math.exp(mean - margin),
        high=math.exp(min(mean + margin, 700.0)),
    )


def time_verdict(found: Speedup) -> TryVerdict:
    """Whether it is faster, as far as times tell."""
    if found.low > 1 and found.ratio >= LEAST_SPEEDUP:
        return "faster"
    if found.high < 1 and found.ratio <= 1 / LEAST_SPEEDUP:
        return "slower"
    return "no gain" if found.high <= LEAST_POSSIBLE else "inconclusive"


def verdict_of(found: Speedup, losses: Losses) -> TryVerdict:
    """Nothing is faster that computes something else."""
    return "results differ" if losses == "different" else time_verdict(found)


@dataclass(frozen=True)
class ComparedLosses:
    """Losses of the changed program beside those of the unchanged one."""

    losses: Losses
    reason: str = ""


def is_repeatable(one: Answer, other: Answer) -> bool:
    """Whether two unchanged runs have the same losses, bit by bit; False without any."""
    return bool(one.losses) and _same(one.losses, other.losses)


def compared_losses(
    before: Answer,
    after: Answer,
    *,
    noisy: Answer | None = None,
    rounding: float = 0.0,
    draws_otherwise: bool = False,
) -> ComparedLosses:
    """How the losses of a changed run stand to those of an unchanged one that is repeatable.

    Args:
        before: the unchanged run.
        after: the changed one.
        noisy: an unchanged run whose parameters were changed by one rounding behind each step.
        rounding: of the lower precision that the change computes in; if not 0, losses are never identical.
        draws_otherwise: whether the change may let the program draw its random numbers otherwise.
    """
    may_draw_otherwise = draws_otherwise and before.random_state != after.random_state
    if reason := _other_samples(before, after, is_first_alone=may_draw_otherwise):
        return ComparedLosses("different", reason)
    if len(before.losses) != len(after.losses):
        return ComparedLosses("different", f"{len(after.losses)} losses in the place of {len(before.losses)}")
    if _same(before.losses, after.losses):
        return ComparedLosses("within rounding" if rounding else "identical")
    share = max(rounding, FLOAT32_ROUNDING)
    place = _beyond(before.losses, after.losses, noisy.losses if noisy is not None else (), share)
    if place is None:
        return ComparedLosses("within rounding")
    if may_draw_otherwise:
        return ComparedLosses("other random numbers")
    old, new = before.losses[place], after.losses[place]
    return ComparedLosses("different", f"loss {place + 1} is {new:.7g} in the place of {old:.7g}")


def _same(one: Sequence[float], other: Sequence[float]) -> bool:
    return len(one) == len(other) and all(map(_is_equal, one, other))


def _is_equal(one: float, other: float) -> bool:
    """The same number, or neither is one."""
    return one == other or (math.isnan(one) and math.isnan(other))


def _beyond(before: Sequence[float], after: Sequence[float], noisy: Sequence[float], rounding: float) -> int | None:
    """The first loss that differs by more than rounding explains; None where none does.

    What rounding makes of a loss is the largest difference that it has made so far in the noisy run.
    """
    if len(noisy) != len(before):
        return next((place for place, (a, b) in enumerate(zip(before, after, strict=True)) if a != b), None)
    allowed = 0.0
    for place, (old, new, other) in enumerate(zip(before, after, noisy, strict=True)):
        if math.isfinite(old) and math.isfinite(other):
            allowed = max(allowed, abs(other - old))
        if _is_equal(old, new):
            continue
        if not abs(new - old) <= NOISE_FACTOR * allowed + LEAST_ROUNDINGS * rounding * abs(old):
            return place
    return None


def _other_samples(before: Answer, after: Answer, *, is_first_alone: bool) -> str:
    """That a loader asks for other samples; where random numbers may differ, only its first batch must be the same."""
    for number, (old, new) in enumerate(zip(before.samples, after.samples, strict=False)):
        common = min(len(old), len(new), 1 if is_first_alone else len(old))
        if old[:common] != new[:common]:
            return f"loader {number + 1} asks for other samples, or in another order"
    return ""

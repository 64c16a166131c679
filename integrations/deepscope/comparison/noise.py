"""Intervals for differences between runs, from the spread of their steps and of the runs themselves.

docs/numbers.md states the method. In short: within a run, Welch's interval of the difference of two means (Welch 1947,
The generalization of "Student's" problem, Biometrika 34). Steps of one run are alike in what differs between runs (the
machine's clock, its neighbours, where memory lies), so the variance between runs is added: known from repeats where
there are any, else from how much most rows of the table differ. The level of each interval is such that one row in all
of a table is beyond noise by chance in one comparison of twenty (Bonferroni, weighted as by Genovese, Roeder and
Wasserman 2006, False discovery control with p-value weighting, Biometrika 93: larger rows get more of it).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist, median
from typing import Literal, NamedTuple, get_args

from deepscope.records import Kernel, Numbers, Operator, Profile
from deepscope.records.steps import StepTable, StepTimes

Number = Literal["cost", "self"]
"""What of a line is compared: what it costs the run, or its device time alone."""
NUMBERS: tuple[Number, ...] = get_args(Number)


@dataclass(frozen=True, slots=True)
class Sample:
    """One run's observations: times a step and rank, in nanoseconds."""

    mean_ns: float
    """Over the steps; without steps the time in the whole trace."""
    values: tuple[float, ...]
    """Of each block of steps; a single value where nothing is known of its spread."""

    @property
    def variance(self) -> float:
        """Of the values, by one degree of freedom less than there are; 0 for a single value."""
        count = len(self.values)
        if count < 2:
            return 0.0
        mean = math.fsum(self.values) / count
        return math.fsum((value - mean) ** 2 for value in self.values) / (count - 1)


def samples_of_rows(profile: Profile, table: StepTable, number: Number) -> dict[int, Sample]:
    """Of each row of a table by its index; of the lines, the work of no line under -1."""
    blocks = _Blocks(profile)
    found: dict[int, Sample] = {}
    for one in profile.step_times:
        if one.table == table:
            found[one.row] = blocks.sample(_times(one, number))
    rows: list[tuple[int, Numbers | Operator | Kernel]] = list(enumerate(getattr(profile, table)))
    if table == "lines":
        rows.append((-1, profile.no_line))
    for index, row in rows:
        if index not in found:
            total = _total(row, number)
            found[index] = blocks.whole(total) if total else blocks.sample({})
    return found


def samples_of_phases(profile: Profile) -> dict[str, Sample]:
    """Of each phase's wall time by its name."""
    blocks = _Blocks(profile)
    if not profile.steps:
        return {phase.name: blocks.whole(phase.wall_ns) for phase in profile.phases}
    names = dict.fromkeys(name for step in profile.steps for name in step.phases)
    return {name: blocks.of_steps([step.phases.get(name, 0) for step in profile.steps]) for name in names}


def samples_of_steps(profile: Profile) -> dict[str, Sample]:
    """Of a step's own numbers by their names, its duration first."""
    blocks, totals = _Blocks(profile), profile.totals
    if not profile.steps:
        whole = {"duration": totals.wall_ns, "device": totals.device_ns, "busy": totals.busy_ns,
                 "idle": totals.idle_ns, "wait": totals.wait_ns}  # fmt: skip
        return {name: blocks.whole(value) for name, value in whole.items()}
    fields = ("duration", "device", "busy", "idle", "wait")
    return {name: blocks.of_steps([getattr(step, f"{name}_ns") for step in profile.steps]) for name in fields}


def absent(profile: Profile) -> Sample:
    """Of a row that a run does not have: 0 in each step."""
    return _Blocks(profile).sample({})


def added(samples: Sequence[Sample]) -> Sample:
    """Of several rows of one run together; without a spread where one of them has none."""
    shortest = min(len(sample.values) for sample in samples)
    mean = sum(sample.mean_ns for sample in samples)
    if any(len(sample.values) != shortest for sample in samples):
        return Sample(mean, (mean,))
    return Sample(mean, tuple(map(sum, zip(*(sample.values for sample in samples), strict=True))))


class _Blocks:
    """Sums over the blocks of a profile's steps as times a step and rank."""

    def __init__(self, profile: Profile) -> None:
        self._block_of = [step.number // profile.steps_per_block for step in profile.steps]
        counts = Counter(self._block_of)
        self._blocks = sorted(counts)
        self._counts = [counts[block] for block in self._blocks]
        self._ranks = max(1, profile.totals.ranks)
        self._all_steps = max(1, profile.totals.steps)

    def sample(self, times: Mapping[int, int]) -> Sample:
        """Of times by block."""
        if not self._blocks:
            return self.whole(sum(times.values()))
        sums = [times.get(block, 0) / self._ranks for block in self._blocks]
        values = tuple(value / count for value, count in zip(sums, self._counts, strict=True))
        return Sample(math.fsum(sums) / sum(self._counts), values)

    def of_steps(self, times: Sequence[int]) -> Sample:
        """Of the time of each step."""
        by_block: Counter[int] = Counter()
        for block, time_ns in zip(self._block_of, times, strict=True):
            by_block[block] += time_ns
        return self.sample(by_block)

    def whole(self, duration_ns: int) -> Sample:
        """Of a time of which nothing but its sum is known."""
        mean = duration_ns / self._all_steps / self._ranks
        return Sample(mean, (mean,))


def _times(one: StepTimes, number: Number) -> dict[int, int]:
    if number == "self" or not one.beside_ns:
        return one.device_ns
    return {block: one.device_ns.get(block, 0) + one.beside_ns.get(block, 0)
            for block in {*one.device_ns, *one.beside_ns}}  # fmt: skip


def _total(row: Numbers | Operator | Kernel, number: Number) -> int:
    if isinstance(row, Kernel):
        return row.device_ns
    if isinstance(row, Operator):
        return row.self_device_ns
    return row.cost_ns - row.outside_ns - row.python_outside_ns if number == "cost" else row.self_in_steps_ns


CONFIDENCE = 0.95
"""That all rows without a change have 0 in their intervals."""
MOST_RUN_NOISE = 0.15
"""Where no side has repeats: the deviation between runs, as a share of a time, that rows can make believed anywhere."""
MOST_OF_STEPS = 0.5
"""The same as a share of the deviation of a row's steps: where these differ much, on a busy machine, so do runs."""
FEWEST_ROWS = 5
"""Fewer rows do not tell what most of them do."""
TELLING_SHARE = 0.001
"""Of all time: smaller rows tell nothing of the others."""
PRIOR_RUNS = 4
"""So many degrees of freedom has the variance that steps and other rows let expect, beside that of a row's own runs."""


class Interval(NamedTuple):
    """Where the true difference lies, in nanoseconds a step."""

    low_ns: float
    high_ns: float


@dataclass(frozen=True, slots=True)
class Pair:
    """One row's samples, one a run, of both sides."""

    before: Sequence[Sample]
    after: Sequence[Sample]

    @property
    def before_ns(self) -> float:
        """The mean over the runs before."""
        return _mean(self.before)

    @property
    def after_ns(self) -> float:
        """The mean over the runs after."""
        return _mean(self.after)

    @property
    def change_ns(self) -> float:
        """After less before."""
        return self.after_ns - self.before_ns

    @property
    def size_ns(self) -> float:
        """Both means together."""
        return self.before_ns + self.after_ns

    @property
    def is_repeated(self) -> bool:
        """Whether a side has more than one run."""
        return len(self.before) > 1 or len(self.after) > 1

    @property
    def has_spread(self) -> bool:
        """Whether there is anything to take a spread from."""
        return self.is_repeated or all(len(one.values) > 1 for one in (*self.before, *self.after))


def intervals(pairs: Sequence[Pair], between_runs: float) -> list[Interval | None]:
    """The interval of each pair's change; None where nothing tells of its spread.

    Args:
        pairs: all rows of a table.
        between_runs: from `run_variance`.
    """
    whole = sum(pair.size_ns for pair in pairs)
    shares = [pair.size_ns / whole if whole else 0.0 for pair in pairs]
    telling = sum(share >= TELLING_SHARE for share in shares)
    found: list[Interval | None] = []
    for pair, share in zip(pairs, shares, strict=True):
        if not pair.has_spread:
            found.append(None)
            continue
        even = 1 / telling if share >= TELLING_SHARE else 0.0
        alpha = (1 - CONFIDENCE) * (even + share) / 2
        spread = _spread(pair, between_runs)
        quantile = two_sided_quantile(alpha, spread.degrees)
        near, far = quantile * math.sqrt(spread.near), quantile * math.sqrt(spread.far)
        below, above = (near, far) if pair.change_ns > 0 else (far, near)
        found.append(Interval(pair.change_ns - below, pair.change_ns + above))
    return found


def run_variance(pairs: Sequence[Pair]) -> float | None:
    """The variance between runs that rows have in common, as a share of the square of their time.

    With repeats it is the median of what the rows' variances between runs exceed those that their steps explain.
    Without, what differs between the two runs is a change of code or noise; what most rows do is taken for noise, up to
    `MOST_RUN_NOISE` or `MOST_OF_STEPS`. None where there are too few rows to tell.
    """
    whole = sum(pair.size_ns for pair in pairs)
    telling = [pair for pair in pairs if pair.has_spread and pair.size_ns >= TELLING_SHARE * whole]
    telling = [pair for pair in telling if min(pair.before_ns, pair.after_ns) > 0]
    if len(telling) < FEWEST_ROWS:
        return None
    if telling[0].is_repeated:
        return max(0.0, median(_between(pair)[0] - _steps_share(pair) for pair in telling))
    # 0.6745: the median of the absolute value of a standard normal variable.
    spread = median(abs(math.log(pair.after_ns / pair.before_ns)) for pair in telling) / 0.6745
    most = max(MOST_RUN_NOISE, MOST_OF_STEPS * median(map(_deviation_of_steps, telling)))
    return min(max(0.0, (spread**2 - 2 * median(map(_steps_share, telling))) / 2), most**2)


class _Spread(NamedTuple):
    """The variance of a change towards 0 and away from it, and its degrees of freedom.

    What runs differ by is a factor. Whether there is a change at all is asked of one time that two runs had, which the
    product of the means stands for; how large it is, of two times.
    """

    near: float
    far: float
    degrees: float


def _spread(pair: Pair, between_runs: float) -> _Spread:
    before, after, runs = pair.before_ns, pair.after_ns, (len(pair.before), len(pair.after))
    product = before * after * (1 / runs[0] + 1 / runs[1])
    squares = before**2 / runs[0] + after**2 / runs[1]
    if pair.is_repeated:
        seen, degrees = _between(pair)
        steps = _steps_share(pair)
        share = (PRIOR_RUNS * (steps + between_runs) + degrees * seen) / (PRIOR_RUNS + degrees)
        of_steps = min(share, steps)
        near = of_steps * squares + (share - of_steps) * product
        return _Spread(near, share * squares, PRIOR_RUNS + degrees)
    parts = [_of_steps(side[0]) for side in (pair.before, pair.after)]
    steps = sum(part for part, _ in parts)
    uncertain = sum(part**2 / degrees for part, degrees in parts if degrees)
    near = steps + between_runs * product
    return _Spread(near, steps + between_runs * squares, near**2 / uncertain if uncertain else math.inf)


def _of_steps(sample: Sample) -> tuple[float, int]:
    """The variance of a run's mean by its steps, and its degrees of freedom."""
    degrees = len(sample.values) - 1
    return sample.variance / (degrees + 1), degrees


def _steps_share(pair: Pair) -> float:
    """The variance of a run's mean by its steps as a share of its square, the mean over the runs that have any time."""
    shares = [
        _of_steps(sample)[0] / mean**2 for side in (pair.before, pair.after) if (mean := _mean(side)) for sample in side
    ]
    return sum(shares) / len(shares) if shares else 0.0


def _deviation_of_steps(pair: Pair) -> float:
    """The standard deviation of the steps of a run as a share of their mean; of both sides the mean."""
    shares = [math.sqrt(sample.variance) / sample.mean_ns for sample in (*pair.before, *pair.after)]
    return sum(shares) / len(shares)


def _between(pair: Pair) -> tuple[float, int]:
    """The variance between runs as a share of the square of their mean, of both sides together; degrees of freedom."""
    squares, degrees = 0.0, 0
    for side in (pair.before, pair.after):
        if len(side) > 1 and (mean := _mean(side)):
            squares += sum((sample.mean_ns / mean - 1) ** 2 for sample in side)
            degrees += len(side) - 1
    return (squares / degrees, degrees) if degrees else (0.0, 0)


def _mean(side: Sequence[Sample]) -> float:
    return sum(sample.mean_ns for sample in side) / len(side)


# Quantiles of Student's t distribution, by the finite series for whole degrees of freedom.
#
# Abramowitz and Stegun, Handbook of Mathematical Functions (1964), 26.7.3 and 26.7.4.


LIKE_NORMAL = 200
"""From so many degrees of freedom on the normal distribution stands in: it differs by less than a percent."""


def two_sided_quantile(alpha: float, degrees: float) -> float:
    """The t that a variable is beyond, on either side, with probability `alpha`.

    Degrees of freedom are rounded down to a whole number, at least 1, which makes intervals wider rather than narrower.
    """
    alpha = min(max(alpha, 1e-12), 1.0)
    if degrees >= LIKE_NORMAL:
        return NormalDist().inv_cdf(1 - alpha / 2)
    return _quantile(alpha, max(1, int(degrees)))


@lru_cache(maxsize=4096)
def _quantile(alpha: float, degrees: int) -> float:
    low, high = 0.0, math.pi / 2
    for _ in range(54):  # as many bits as a float has
        middle = (low + high) / 2
        if _within(middle, degrees) < 1 - alpha:
            low = middle
        else:
            high = middle
    return math.sqrt(degrees) * math.tan(low)


def _within(theta: float, degrees: int) -> float:
    """The probability of being within ±t, where `theta` is the arc tangent of t by the root of the degrees."""
    sine, cosine = math.sin(theta), math.cos(theta)
    if degrees % 2:
        term, total = cosine, 0.0
        for place in range(1, degrees - 1, 2):
            total += term
            term *= (place + 1) / (place + 2) * cosine * cosine
        return 2 / math.pi * (theta + sine * total)
    term, total = 1.0, 0.0
    for place in range(0, degrees - 1, 2):
        total += term
        term *= (place + 1) / (place + 2) * cosine * cosine
    return sine * total

"""How fast a rank's kernels (without a device: its operators) are beside those of the other ranks.

What other ranks' calls of the same kernels would have taken is work; what each call takes longer is hardware where
it is so across most kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deepscope.analysis.array_ops.selection import Floats
from deepscope.ranks.rank_summary import RankSummary, RankWork

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

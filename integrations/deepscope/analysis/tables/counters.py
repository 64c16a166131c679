"""What was counted beside the trace: means and peaks over the window and by step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np

from deepscope.analysis.analysis import Analysis
from deepscope.analysis.array_ops.selection import sums
from deepscope.analysis.numbers.counter_levels import Level, Stretches, levels
from deepscope.analysis.tables.steps import steps_per_block
from deepscope.records import CounterBlock, CounterSeries
from deepscope.trace.arrays import distinct_places
from deepscope.trace.format.counters import TRACKS

MOST_SERIES = 600
"""A machine of 256 cores with 8 GPUs, 16 disks and 16 adapters has so many."""
MOST_OF_A_COUNTER = 8
"""Series that are told by step of one of DeepScope's counters, the largest: a machine has hundreds of cores."""
_MOST_OF_OTHERS = 64
"""Series of others' counters that are told by step."""
_DIGITS = 6
"""That are kept of a level."""


def counter_table(analysis: Analysis) -> list[CounterSeries]:
    """The counters' levels in the extent: of a whole trace in all time that was sampled, of a step in its span."""
    spans = analysis.window
    found: list[tuple[CounterSeries, Level]] = []
    for level in levels(analysis.attribution.trace):
        if analysis.is_whole or not len(spans.start):
            whole = level.within(level.at_ns[:1], level.at_ns[-1:])
        else:
            whole = level.within(spans.start, spans.end)
        row = _row(level, whole, is_whole=analysis.is_whole)
        if row is None:
            continue
        found.append((row, level))
        if len(found) == MOST_SERIES:
            break
    steps = _Steps(analysis)
    for row, level in _told_by_step(found):
        row.blocks = steps.blocks(level)
    return [row for row, _ in found]


def _told_by_step(found: Sequence[tuple[CounterSeries, Level]]) -> Iterator[tuple[CounterSeries, Level]]:
    """Some series of each counter, so that many of one leave room for the others."""
    own, others = ([one for one in found if one[0].is_own is told] for told in (True, False))
    for _, rows in groupby(own, key=lambda one: one[0].counter):
        yield from sorted(rows, key=lambda one: -one[0].mean)[:MOST_OF_A_COUNTER]
    yield from others[:_MOST_OF_OTHERS]


def _row(level: Level, parts: Stretches, *, is_whole: bool) -> CounterSeries | None:
    covered = int(parts.covered_ns.sum())
    if covered:
        known = parts.covered_ns > 0
        mean = float((parts.mean * (parts.covered_ns / covered)).sum())
        smallest, largest = float(parts.smallest[known].min()), float(parts.largest[known].max())
        if is_whole:  # the last sample's moment has no length, its value is one all the same
            smallest, largest = min(smallest, float(level.value[-1])), max(largest, float(level.value[-1]))
    elif is_whole:  # one sample
        mean = smallest = largest = float(level.value[-1])
    else:
        return None
    return CounterSeries(
        counter=level.counter,
        series=level.series,
        unit=TRACKS[level.counter].unit if level.is_own else "",
        mean=_rounded(mean),
        smallest=_rounded(smallest),
        largest=_rounded(largest),
        samples=len(level.value),
        covered_ns=covered,
        is_own=level.is_own,
    )


class _Steps:
    """The steps of the extent, in blocks as `StepTimes` has them."""

    def __init__(self, analysis: Analysis) -> None:
        steps = analysis.attribution.training.steps
        held = analysis.extent.holds(steps.spans.start)
        self._start, self._end = steps.spans.start[held], steps.spans.end[held]
        number = steps.number[held] // steps_per_block(analysis)
        self._blocks, self._place = distinct_places(number)

    def blocks(self, level: Level) -> list[CounterBlock]:
        """The level in each block in which it is known."""
        if not len(self._start):
            return []
        parts = level.within(self._start, self._end)
        count = len(self._blocks)
        covered = sums(self._place, count, parts.covered_ns)
        weighted = np.zeros(count)
        np.add.at(weighted, self._place, parts.mean * (parts.covered_ns / np.maximum(covered, 1)[self._place]))
        known = parts.covered_ns > 0
        low, high = np.full(count, np.inf), np.full(count, -np.inf)
        np.minimum.at(low, self._place[known], parts.smallest[known])
        np.maximum.at(high, self._place[known], parts.largest[known])
        return [
            CounterBlock(number, _rounded(weighted[i]), _rounded(low[i]), _rounded(high[i]), int(covered[i]))
            for i, number in enumerate(self._blocks.tolist())
            if covered[i]
        ]


def _rounded(value: float) -> float:
    """With as many digits as are kept."""
    return float(f"{value:.{_DIGITS}g}")

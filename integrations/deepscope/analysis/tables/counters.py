"""What was counted beside the trace: levels over time, means and peaks over the window and by step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from deepscope.analysis.analysis import Analysis
from deepscope.analysis.array_ops.selection import Floats, sums
from deepscope.analysis.tables.steps import steps_per_block
from deepscope.records import CounterBlock, CounterSeries
from deepscope.trace.arrays import distinct_places
from deepscope.trace.format.counters import TRACKS, track_title
from deepscope.trace.model import CounterEvents, Int64, Trace

LARGEST = 1e18
"""A larger value, or a smaller one below 0, can be no measurement, and sums of it could not be told."""
_MOST_LEVELS = 4_096


@dataclass(frozen=True, slots=True)
class Stretches:
    """What a level is in some stretches of time; arrays of shape (stretches,)."""

    covered_ns: Int64
    """How much of each the level is known."""
    mean: Floats
    smallest: Floats
    largest: Floats


@dataclass(frozen=True, slots=True)
class Level:
    """A number that holds from each sample to the next one; the last sample says how far it goes."""

    counter: str
    """The name of the track; of DeepScope's own ones without the prefix."""
    series: str
    is_own: bool
    at_ns: Int64
    value: Floats

    def within(self, start: Int64, end: Int64) -> Stretches:
        """The level in each stretch [start, end); where it is not known all is 0."""
        at, value = self.at_ns, self.value
        start, end = np.clip(start, at[0], at[-1]), np.clip(end, at[0], at[-1])
        covered = np.maximum(end - start, 0)
        known = covered > 0
        held = np.diff(at)
        before = np.concatenate([[0.0], np.cumsum(value[:-1] * held)])
        first = np.maximum(np.searchsorted(at, start, "right") - 1, 0)
        last = np.maximum(np.searchsorted(at, end, "left") - 1, 0)
        whole = before[last] + value[last] * (end - at[last]) - before[first] - value[first] * (start - at[first])
        # reduceat takes pairs of places; one behind the last value is needed where a stretch ends there.
        bounds = np.stack([first, np.maximum(last, first) + 1], axis=1).ravel()
        padded = np.append(value, value[-1])
        low = np.minimum.reduceat(padded, bounds)[::2]
        high = np.maximum.reduceat(padded, bounds)[::2]
        mean = np.clip(whole / np.maximum(covered, 1), low, high)  # the sums are rounded
        return Stretches(covered, *(np.where(known, one, 0.0) for one in (mean, low, high)))


def levels(trace: Trace) -> Iterator[Level]:
    """All counters, DeepScope's own first and in the order of `TRACKS`; of others those with most samples."""
    counters, strings = trace.counters, trace.strings
    good = np.abs(counters.value) <= LARGEST
    if not good.all():
        counters = CounterEvents(counters.ts_ns[good], counters.name[good], counters.series[good], counters.value[good])
    if not len(counters.ts_ns):
        return
    code, place = distinct_places(counters.name.astype(np.int64) * (len(strings) + 1) + counters.series)
    order = np.lexsort((counters.ts_ns, place))
    bounds = np.searchsorted(place[order], np.arange(len(code) + 1)).tolist()
    names = [tuple(strings[part] for part in divmod(one, len(strings) + 1)) for one in code.tolist()]
    rank = {name: number for number, name in enumerate(TRACKS)}
    own = [track_title(name) for name, _ in names]
    size: dict[str, int] = {}
    for (name, _), count in zip(names, np.diff(bounds).tolist(), strict=True):
        size[name] = size.get(name, 0) + count
    listed = sorted(
        range(len(names)),
        key=lambda one: (rank.get(own[one], len(rank)), 0 if own[one] else -size[names[one][0]], *_natural(names[one])),
    )
    for one in listed[:_MOST_LEVELS]:
        rows = order[bounds[one] : bounds[one + 1]]
        at, value = counters.ts_ns[rows], counters.value[rows]
        last = np.flatnonzero(np.append(at[1:] != at[:-1], True))  # at one instant the last word counts
        name, series = names[one]
        yield Level(own[one] or name, series, bool(own[one]), at[last], value[last])


def _natural(name: tuple[str, ...]) -> tuple[str, int, str]:
    """Names in the order of their alphabet, series by their numbers where they are some."""
    counter, series = name
    return counter, int(series) if series.isdecimal() and len(series) < 10 else -1, series


MOST_SERIES = 600
"""A machine of 256 cores with 8 GPUs, 16 disks and 16 adapters has so many."""
MOST_OF_A_COUNTER = 8
"""Series that are shown by step, of one of DeepScope's counters, the largest: a machine has hundreds of cores."""
_MOST_OF_OTHERS = 64
"""Series of others' counters that are shown by step."""
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
    for row, level in _shown_by_step(found):
        row.blocks = steps.blocks(level)
    return [row for row, _ in found]


def _shown_by_step(found: Sequence[tuple[CounterSeries, Level]]) -> Iterator[tuple[CounterSeries, Level]]:
    """Some series of each counter, so that many of one leave room for the others."""
    own = [one for one in found if one[0].is_own]
    others = [one for one in found if not one[0].is_own]
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

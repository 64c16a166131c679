"""Counters of a trace as levels over time, and their means and peaks in stretches of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from deepscope.analysis.array_ops.selection import Floats
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

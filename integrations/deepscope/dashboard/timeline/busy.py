"""When tracks and devices are busy: unions of times, and how much of them lies in a stretch."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import numpy as np

from deepscope.analysis.array_ops.intervals import NO_INTERVALS, Intervals, union
from deepscope.analysis.ownership.owned_work import OwnedWork
from deepscope.dashboard.timeline.columns import KIND_NUMBER, KINDS, BusyTimes, Labels, Slices
from deepscope.trace.model import Int64

_BUSY = ("step", "operator", "runtime", "kernel", "copy", "collective")
"""Slices of these kinds make their track busy."""


def busy_of_tracks(slices: Slices, labels: Labels, track_slice: Int64) -> BusyTimes:
    """The union of each track's steps, operators and runtime calls, or work; `track_slice` are their first slices."""
    counts = np.isin(np.arange(len(KINDS)), [KIND_NUMBER[kind] for kind in _BUSY])[labels.kind][slices.label]
    bounds = track_slice.tolist()
    found = []
    for first, last in pairwise(bounds):
        rows = first + np.flatnonzero(counts[first:last])
        found.append(union(slices.start[rows], slices.end[rows]))
    return _busy_times(found)


def busy_of_devices(work: OwnedWork, begin: int) -> BusyTimes:
    """The union of each device's work over all streams; nothing where the CPU is the device."""
    spans = work.busy.values() if work.metric == "device" else ()
    return _busy_times(Intervals(one.start - begin, one.end - begin) for one in spans)


def _busy_times(spans: Iterable[Intervals]) -> BusyTimes:
    listed = [NO_INTERVALS, *spans]
    before = [np.cumsum(one.end - one.start) - (one.end - one.start) for one in listed]
    return BusyTimes(
        start=np.concatenate([one.start for one in listed]),
        end=np.concatenate([one.end for one in listed]),
        before=np.concatenate(before),
        offset=np.cumsum([len(one.start) for one in listed]),
    )


def covered_before(busy: BusyTimes, group: int, ts: Int64) -> Int64:
    """How many covered nanoseconds of a group lie before each instant; shape of `ts`."""
    start, end, before = stretches(busy, group)
    if not len(start):
        return np.zeros(len(ts), np.int64)
    place = np.searchsorted(start, ts, side="right") - 1
    at = np.maximum(place, 0)
    return np.where(place < 0, 0, before[at] + np.minimum(ts, end[at]) - start[at])


def stretches(busy: BusyTimes, group: int) -> tuple[Int64, Int64, Int64]:
    """Starts, ends and the times covered before each of the stretches of a group."""
    within = slice(int(busy.offset[group]), int(busy.offset[group + 1]))
    return busy.start[within], busy.end[within], busy.before[within]

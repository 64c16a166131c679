"""Levels of detail: what each lane shows at resolutions of 1, 2, 4, … ns, all of them in one tree.

Two neighbours in a lane are joined from the first level on at which both are shorter than the resolution and start in
the same cell of that width. What is joined stays joined at coarser levels, so that the level of each pair of neighbours
says everything, and there are fewer groups than slices. A question looks at the entries of one level in one window:
those that are shown, and fewer others than these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from deepscope.analysis.array_ops.intervals import NO_INTERVALS, Intervals, union
from deepscope.analysis.ownership.attribution import OwnedWork
from deepscope.dashboard.timeline.columns import (
    KINDS,
    WORK_KINDS,
    BusyTimes,
    Labels,
    Levels,
    SliceColumns,
    kind_numbers,
)
from deepscope.trace.arrays import distinct_places, distinct_values
from deepscope.trace.model import Int64

TOP = 63
"""Above all levels: what dies here is shown at each."""
SMALL = 16
"""Of a group with no more slices it is found when asked for what most of its time is."""


class LevelEntries(NamedTuple):
    """Entries of one level in a window, by lane and start; arrays of shape (s,)."""

    level: int
    lane: Int64
    start: Int64
    end: Int64
    ref: Int64
    """A slice, or `-1 - group`."""


def resolution_of(level: int) -> int:
    """Nanoseconds; slices that are shorter may be joined."""
    return 1 << max(level - 1, 0)


def ranges(begin: Int64, end: Int64) -> Int64:
    """All numbers of the ranges [begin, end), one range behind the other."""
    count = np.maximum(end - begin, 0)
    shift = np.repeat(begin - np.concatenate(([0], np.cumsum(count)[:-1])), count)
    return np.asarray(shift + np.arange(len(shift)))


def reach_of(start: Int64, end: Int64, lane_slice: Int64) -> tuple[Int64, Int64]:
    """Of each slice the latest end in its lane up to it, and how much it covers that those before it do not.

    Both have shape (n,). In all lanes without overlaps these are its end and its length.
    """
    reach = end.copy()
    same = np.ones(len(start), np.bool_)
    same[lane_slice[:-1][lane_slice[:-1] < len(start)]] = False
    overlaps = np.flatnonzero(same[1:] & (start[1:] < end[:-1])) + 1
    for lane in distinct_values(np.searchsorted(lane_slice, overlaps, "right") - 1).tolist():
        within = slice(int(lane_slice[lane]), int(lane_slice[lane + 1]))
        reach[within] = np.maximum.accumulate(end[within])
    before = np.where(same, np.concatenate((start[:1], reach[:-1])), start)
    return reach, np.maximum(end - np.maximum(start, before), 0)


def levels_of(slices: SliceColumns, lane_slice: Int64) -> Levels:
    """All levels of detail of all lanes."""
    n, start = len(slices), slices.start
    if not n:
        nothing = np.zeros(0, np.int64)
        few, offset = nothing.astype(np.int32), np.zeros((TOP + 1, len(lane_slice)), np.int64)
        return Levels(nothing, nothing, few, offset, few, few, few, few, nothing, nothing.astype(np.uint8))
    reach, covers = reach_of(start, slices.end, lane_slice)
    joined = _joined_at(start, slices.end, reach, lane_slice)
    first, last, born, died = _groups(joined)
    covered = np.concatenate(([0], np.cumsum(covers)))
    label, place = _largest_parts(slices, first, last, born)
    begins = np.concatenate((np.arange(n), first))
    key = died.astype(np.int64) * (n + 1) + begins
    order = np.argsort(key, kind="stable")
    begins, key = begins[order], key[order]
    group = order - n
    ends = np.concatenate((slices.end, reach[last]))[order]
    offset = np.searchsorted(key, (np.arange(TOP + 1) * (n + 1))[:, np.newaxis] + lane_slice)
    return Levels(
        start=start[begins],
        end=ends,
        ref=np.where(group < 0, order, -1 - group).astype(np.int32),
        offset=offset,
        first=first.astype(np.int32),
        count=(last - first + 1).astype(np.int32),
        label=label.astype(np.int32),
        place=place.astype(np.int32),
        busy=covered[last + 1] - covered[first],
        born=born,
    )


def _joined_at(start: Int64, end: Int64, reach: Int64, lane_slice: Int64) -> npt.NDArray[np.uint8]:
    """The level from which on each slice is joined with the next one, `TOP` for never; shape (n - 1,).

    Slices that overlap in the last row of a track are joined from the beginning.
    """
    if len(start) < 2:
        return np.zeros(0, np.uint8)
    length = end - start
    bits = np.frexp(np.maximum(length[1:], length[:-1]))[1]
    cell = np.frexp(start[1:] ^ start[:-1])[1]
    level = np.minimum(1 + np.maximum(bits, cell), TOP - 1).astype(np.uint8)
    level[start[1:] < reach[:-1]] = 0
    ends = lane_slice[1:-1]
    level[ends[(ends > 0) & (ends < len(start))] - 1] = TOP
    return np.asarray(level)


def _groups(
    joined: npt.NDArray[np.uint8],
) -> tuple[Int64, Int64, npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """First and last slice and level of each group, and where each slice and then each group ends to be shown."""
    n = len(joined) + 1
    by_level = np.argsort(joined, kind="stable")
    bounds = np.searchsorted(joined[by_level], np.arange(TOP + 1)).tolist()
    run_first, run_last, current = np.arange(n), np.arange(n), np.arange(n)
    died = [np.full(n, TOP, np.uint8)]
    slice_died = died[0]
    firsts, lasts, borns = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0, np.uint8)]
    deaths: list[tuple[Int64, int]] = []
    groups = 0
    for level in range(TOP):
        pair = by_level[bounds[level] : bounds[level + 1]]
        if not len(pair):
            continue
        right_last = run_last[pair + 1]
        begins = np.flatnonzero(np.append(True, pair[1:] != right_last[:-1]))
        left = run_first[pair[begins]]
        right = right_last[np.append(begins[1:] - 1, len(pair) - 1)]
        deaths.append((np.concatenate((current[left], current[pair + 1])), level))
        current[left] = n + groups + np.arange(len(left))
        run_last[left], run_first[right] = right, left
        groups += len(left)
        firsts.append(left)
        lasts.append(right)
        borns.append(np.full(len(left), level, np.uint8))
    entry_died = np.concatenate((slice_died, np.full(groups, TOP, np.uint8)))
    for entries, level in deaths:
        entry_died[entries] = level
    return np.concatenate(firsts), np.concatenate(lasts), np.concatenate(borns), entry_died


def _largest_parts(slices: SliceColumns, first: Int64, last: Int64, born: npt.NDArray[np.uint8]) -> tuple[Int64, Int64]:
    """The label with the most time in each group, and the place with the most of that; -1 for groups of few slices."""
    label, place = np.full(len(first), -1, np.int64), np.full(len(first), -1, np.int64)
    large = np.flatnonzero(last - first >= SMALL)
    if not len(large):
        return label, place
    width = int(slices.place.max()) + 2
    keys, combination = distinct_places(slices.label.astype(np.int64) * width + slices.place + 1)
    # One row a slice; those of a group are summed up by combination once, and are fewer from then on.
    position, time = np.arange(len(slices)), slices.end - slices.start
    for level in distinct_values(born[large]).tolist():
        new = large[born[large] == level]
        low, high = np.searchsorted(position, first[new]), np.searchsorted(position, last[new], "right")
        row = ranges(low, high)
        group = np.repeat(np.arange(len(new)), high - low)
        live = time[row] >= 0
        row, group = row[live], group[live]
        key = group * len(keys) + combination[row]
        order = np.argsort(key, kind="stable")
        key, values = key[order], time[row[order]]
        begins = np.flatnonzero(np.append(True, key[1:] != key[:-1]))
        key, values = key[begins], np.add.reduceat(values, begins)
        group = key // len(keys)
        found = keys[key % len(keys)]
        label[new], place[new] = dominant(group, found // width, found % width - 1, values, len(new))
        time[row] = -1
        place_of = np.arange(len(key)) - np.searchsorted(group, np.arange(len(new)))[group] + low[group]
        combination[place_of], time[place_of] = key % len(keys), values
        dead = time < 0
        if 2 * int(dead.sum()) > len(dead):
            position, combination, time = position[~dead], combination[~dead], time[~dead]
    return label, place


def dominant(group: Int64, label: Int64, place: Int64, time: Int64, groups: int) -> tuple[Int64, Int64]:
    """The label with the most time in each group, and the place with the most time under it; shape (groups,).

    Rows stand by group, label and place, each once; every group has some. Of equals it is the first.
    """
    begins = np.flatnonzero(np.append(True, (group[1:] != group[:-1]) | (label[1:] != label[:-1])))
    best = _first_largest(group[begins], np.add.reduceat(time, begins), groups)
    low = begins[best]
    high = np.append(begins, len(group))[best + 1]
    row = ranges(low, high)
    return label[low], place[row[_first_largest(np.repeat(np.arange(groups), high - low), time[row], groups)]]


def _first_largest(group: Int64, value: Int64, groups: int) -> Int64:
    """The row with the largest value of each group, the first of equals; shape (groups,). Rows stand by group."""
    begins = np.searchsorted(group, np.arange(groups))
    largest = np.flatnonzero(value == np.maximum.reduceat(value, begins)[group])
    return largest[np.searchsorted(group[largest], np.arange(groups))]


def shown_entries(levels: Levels, lanes: Int64, begin: int, end: int, *, level: int, most: int) -> LevelEntries:
    """What some lanes show of a window [begin, end) from a level on: of the first that has no more than `most` entries.

    The last level is taken whatever it has.
    """
    top = len(levels.offset) - 1
    low, high = _within(levels, lanes, begin, end, level + 1)
    sizes = np.cumsum((high - low).sum(axis=1)[::-1])[::-1]
    # Of the entries that die above a level, no more than half are born above it.
    while level < top - 1 and sizes[0] > 2 * most:
        low, high, sizes, level = low[1:], high[1:], sizes[1:], level + 1
    while True:
        rows = ranges(low.reshape(-1), high.reshape(-1))
        lane = np.repeat(np.tile(lanes, len(low)), (high - low).reshape(-1))
        ref = levels.ref[rows].astype(np.int64)
        alive = (ref >= 0) | (levels.born[np.maximum(-1 - ref, 0)] <= level) if len(levels.born) else ref >= 0
        if int(alive.sum()) <= most or level >= top - 1:
            break
        low, high, level = low[1:], high[1:], level + 1
    rows, lane, ref = rows[alive], lane[alive], ref[alive]
    start = levels.start[rows]
    order = np.lexsort((levels.end[rows], start, lane))
    rows, lane, ref, start = rows[order], lane[order], ref[order], start[order]
    return LevelEntries(level, lane, start, levels.end[rows], ref)


def _within(levels: Levels, lanes: Int64, begin: int, end: int, lowest: int) -> tuple[Int64, Int64]:
    """Where the entries that lie in a window begin and end, by `died` from `lowest` on and lane; shape (levels, l)."""
    first, last = levels.offset[lowest:, lanes], levels.offset[lowest:, lanes + 1]
    low = _bisect(first, last, lambda at: np.maximum(levels.end[at], levels.start[at] + 1) <= begin)
    return low, np.maximum(_bisect(low, last, lambda at: levels.start[at] < end), low)


def _bisect(first: Int64, last: Int64, is_before: Callable[[Int64], npt.NDArray[np.bool_]]) -> Int64:
    """In each range [first, last) the first place that is not before; all at once."""
    low, high = first.copy(), last.copy()
    is_open = low < high
    while is_open.any():
        middle = (low[is_open] + high[is_open]) // 2
        before = is_before(middle)
        low[is_open] = np.where(before, middle + 1, low[is_open])
        high[is_open] = np.where(before, high[is_open], middle)
        is_open = low < high
    return np.asarray(low)


_BUSY = ("step", "operator", "runtime", *WORK_KINDS)
"""Slices of these kinds make their track busy."""


def busy_of_tracks(slices: SliceColumns, labels: Labels, track_slice: Int64) -> BusyTimes:
    """The union of each track's steps, operators and runtime calls, or work; `track_slice` are their first slices."""
    counts = np.isin(np.arange(len(KINDS)), kind_numbers(_BUSY))[labels.kind][slices.label]
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

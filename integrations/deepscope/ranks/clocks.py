"""The ranks' clocks beside each other: all ranks leave a collective that each needs the data of each at one time.

Of two ranks in a process group the differences of these ends lie about the offset of their clocks. Groups that have a
rank in common lead from each rank to a reference: along those whose ends agree best.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from deepscope.analysis.array_ops.selection import Floats
from deepscope.ranks.call_matching import MatchedCalls
from deepscope.ranks.collective_calls import distinct_pairs
from deepscope.ranks.ranks_report import RankClock
from deepscope.records.collectives import TOGETHER
from deepscope.trace.model import Int64

_FEWEST = 8
"""Calls that can tell a drift."""
_SURE = 5.0
"""A drift counts if it is so many of its standard errors, …"""
_SEEN = 2.0
"""… moves the clock over the window by so many times what ends lie apart without it, …"""
_MOST_DRIFT = 1e-3
"""… and is one that clocks have: less than a millisecond a second."""
_OUTLIER = 5.0
"""Ends that are so many residuals apart tell nothing of the drift."""


@dataclass(frozen=True, slots=True)
class _Skew:
    """From one rank's clock to another's: `offset_ns` is added at `at_ns`, and `drift` for each nanosecond after it."""

    offset_ns: int
    drift: float
    at_ns: int
    residual_ns: int
    calls: int

    def at(self, time_ns: int) -> int:
        return self.offset_ns + round(self.drift * (time_ns - self.at_ns))

    def then(self, other: _Skew) -> _Skew:
        """This one, and from there the other one."""
        offset = self.offset_ns + other.at(self.at_ns + self.offset_ns)
        drift = self.drift + other.drift * (1 + self.drift)
        return _Skew(offset, drift, self.at_ns, self.residual_ns, self.calls)

    def back(self) -> _Skew:
        """The same in the other direction."""
        return _Skew(
            -self.offset_ns, -self.drift / (1 + self.drift), self.at_ns + self.offset_ns, self.residual_ns, self.calls
        )


@dataclass(frozen=True, slots=True)
class Clocks:
    """From the clocks of ranks to the reference's; ranks that no collective leads to have none."""

    skews: dict[int, _Skew]

    def aligned_ns(self, rank: Int64, time_ns: Int64) -> Int64:
        """Times of ranks' clocks on the reference's; -1 where that is not known. All of shape (c,)."""
        ranks, place = np.unique(rank, return_inverse=True)
        known = np.array([one in self.skews for one in ranks.tolist()], np.bool_)
        skews = [self.skews.get(one, _SAME_CLOCK) for one in ranks.tolist()]
        offset = np.array([skew.offset_ns for skew in skews], np.int64)[place]
        drift = np.array([skew.drift for skew in skews])[place]
        since = time_ns - np.array([skew.at_ns for skew in skews], np.int64)[place]
        moved = time_ns + offset + np.rint(drift * since).astype(np.int64)
        return np.where(known[place], moved, -1)

    def rows(self, ranks: Sequence[int]) -> list[RankClock]:
        """A record for each rank; none for a single one."""
        return [self._row(rank) for rank in sorted(ranks)] if len(ranks) > 1 else []

    def _row(self, rank: int) -> RankClock:
        skew = self.skews.get(rank)
        if skew is None:
            return RankClock(rank=rank)
        return RankClock(
            rank=rank,
            offset_ns=skew.offset_ns,
            drift_ns_per_s=round(skew.drift * 1e9),
            residual_ns=skew.residual_ns,
            calls=skew.calls,
        )


_SAME_CLOCK = _Skew(0, 0.0, 0, 0, 0)


def align_clocks(matches: MatchedCalls) -> Clocks:
    """From the clocks of all ranks to that of the lowest one of those that most are connected with."""
    edges = _edges(matches)
    neighbours = _tree(edges)
    best: dict[int, _Skew] = {}
    seen: set[int] = set()
    for rank in sorted(neighbours):
        if rank not in seen:
            found = _skews(rank, neighbours)
            seen |= found.keys()
            if len(found) > len(best):
                best = found
    return Clocks(best)


def _skews(reference: int, neighbours: dict[int, dict[int, _Skew]]) -> dict[int, _Skew]:
    calls = max(skew.calls for skew in neighbours[reference].values())
    skews = {reference: replace(_SAME_CLOCK, calls=calls)}
    waiting = [reference]
    while waiting:
        here = waiting.pop()
        for rank, skew in neighbours[here].items():
            if rank not in skews:
                skews[rank] = skew if here == reference else skew.then(skews[here])
                waiting.append(rank)
    return skews


def _tree(edges: dict[tuple[int, int], _Skew]) -> dict[int, dict[int, _Skew]]:
    """By rank its neighbours, and the skews from these to it: of all edges those with the least residuals (Kruskal)."""
    above: dict[int, int] = {}

    def top(rank: int) -> int:
        while above.setdefault(rank, rank) != rank:
            above[rank] = above[above[rank]]
            rank = above[rank]
        return rank

    neighbours: dict[int, dict[int, _Skew]] = defaultdict(dict)
    for (rank, reference), skew in sorted(edges.items(), key=lambda one: (one[1].residual_ns, -one[1].calls, one[0])):
        if top(rank) != top(reference):
            above[top(rank)] = top(reference)
            neighbours[reference][rank] = skew
            neighbours[rank][reference] = skew.back()
    return neighbours


def _edges(matches: MatchedCalls) -> dict[tuple[int, int], _Skew]:
    """From each rank of a group to its lowest, over the calls that both took part in."""
    calls = matches.calls
    together = np.array([row.kind in TOGETHER for row in calls.rows], np.bool_)[matches.row]
    rows = np.flatnonzero(matches.match >= 0)
    rows = rows[together[matches.match[rows]]]
    of, rank = matches.match[rows], calls.rank[rows]
    if not len(rows):
        return {}
    streams = len(calls.streams)
    lowest = np.full(streams, np.iinfo(np.int64).max)
    np.minimum.at(lowest, matches.stream[of], rank)
    is_reference = rank == lowest[matches.stream[of]]
    end = np.full(len(matches), -1, np.int64)
    end[of[is_reference]] = calls.end_ns[rows[is_reference]]
    rows = rows[~is_reference & (end[of] >= 0)]
    of, rank = matches.match[rows], calls.rank[rows]
    if not len(rows):
        return {}
    own = calls.end_ns[rows]
    ranks, references, place = distinct_pairs(rank, lowest[matches.stream[of]])
    skews = _fit(end[of] - own, own, place, len(ranks))
    return dict(zip(zip(ranks.tolist(), references.tolist(), strict=True), skews, strict=True))


def _fit(apart: Int64, time: Int64, pair: Int64, count: int) -> list[_Skew]:
    """The skew of each pair of ranks, by how far ends lie apart at what time; arrays of shape (e,)."""
    offset, calls = _densest(apart, pair, count), np.bincount(pair, minlength=count)
    left = apart - offset[pair]
    residual = _medians(np.abs(left), pair, count)
    middle = _medians(time, pair, count)
    since = time - middle[pair]
    usual = np.abs(left) <= _OUTLIER * residual[pair] + 1
    drift, shift = _drifts(left[usual], since[usual], pair[usual], count)
    moved = left - shift[pair] - drift[pair] * since
    with_drift = _medians(np.rint(np.abs(moved)).astype(np.int64), pair, count)
    span = np.zeros(count, np.int64)
    np.maximum.at(span, pair, np.abs(since))
    keeps = (drift != 0) & (np.abs(drift) * span > _SEEN * with_drift) & (with_drift < residual)
    return [
        _Skew(
            int(offset[one]) + (round(float(shift[one])) if keeps[one] else 0),
            float(drift[one]) if keeps[one] else 0.0,
            int(middle[one]),
            int(with_drift[one] if keeps[one] else residual[one]),
            int(calls[one]),
        )
        for one in range(count)
    ]


def _medians(value: Int64, of: Int64, count: int) -> Int64:
    """Of each group of at least one value the median; of two in the middle the mean."""
    ordered = value[np.lexsort((value, of))]
    size = np.bincount(of, minlength=count)
    return _middles(ordered, np.cumsum(size) - size, size)


def _middles(ordered: Int64, first: Int64, size: Int64) -> Int64:
    low, high = ordered[first + (size - 1) // 2], ordered[first + size // 2]
    return np.asarray(low + (high - low) // 2)


def _densest(value: Int64, of: Int64, count: int) -> Int64:
    """Of each group of at least one value the median of the half that lies closest together.

    A rank that is kept from leaving a call leaves it late: what neither rank was kept from is where most values are.
    """
    order = np.lexsort((value, of))
    ordered, group = value[order], of[order]
    size = np.bincount(of, minlength=count)
    first, half = np.cumsum(size) - size, size // 2 + 1
    begin = np.flatnonzero(np.arange(len(ordered)) + half[group] <= (first + size)[group])
    width = ordered[begin + half[group[begin]] - 1] - ordered[begin]
    by_width = np.lexsort((begin, width, group[begin]))
    begins = begin[by_width]
    starts = np.ones(len(begins), np.bool_)
    starts[1:] = group[begins[1:]] != group[begins[:-1]]
    return _middles(ordered, begins[starts], half)


def _drifts(left: Int64, since: Int64, pair: Int64, count: int) -> tuple[Floats, Floats]:
    """Of each pair the slope and the height of the line of least squares, 0 where the slope is not beyond doubt."""
    size = np.bincount(pair, minlength=count)
    n = np.maximum(size, 1)
    mean_t = np.bincount(pair, weights=since, minlength=count) / n
    mean_d = np.bincount(pair, weights=left, minlength=count) / n
    t, d = since - mean_t[pair], left - mean_d[pair]
    squares = np.bincount(pair, weights=t * t, minlength=count)
    products = np.bincount(pair, weights=t * d, minlength=count)
    slope = np.divide(products, squares, out=np.zeros(count), where=squares > 0)
    error = d - slope[pair] * t
    rest = np.bincount(pair, weights=error * error, minlength=count)
    scale = squares * np.maximum(size - 2, 1)
    doubt = np.sqrt(np.divide(rest, scale, out=np.full(count, np.inf), where=scale > 0))
    sure = (size >= _FEWEST) & (np.abs(slope) > _SURE * doubt) & (np.abs(slope) < _MOST_DRIFT)
    return np.where(sure, slope, 0.0), np.where(sure, mean_d - slope * mean_t, 0.0)

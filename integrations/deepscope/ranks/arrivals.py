"""Who comes when to the same call, and who waits for whom.

All ranks leave a call at one time where each needs the data of each, so that its length tells when a rank has come.
Where one rank sends to all or takes from all, the others may leave earlier: of these calls aligned clocks tell when
each has come, and nothing tells waiting from moving data.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from deepscope.ranks.matching import Matches
from deepscope.records.places_of_work import TOGETHER

Int64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Matched calls by their ranks' arrivals; arrays of shape (m,) but for `waited_ns`."""

    waits_known: Mask
    """Whether all ranks leave together, so that waiting is told from moving data."""
    shortest_ns: Int64
    """The time on the rank that came last, where `waits_known`; else 0."""
    spread_ns: Int64
    """From the first rank's arrival to the last one's; -1 where it is not known."""
    last_rank: Int64
    """The rank that came last; -1 where several came at one time, where there is one alone, or it is not known."""
    waited_ns: Int64
    """Of each call, how much longer it is than on the rank that came last; shape (c,), 0 where it is not known."""


def arrivals_of(matches: Matches, start_ns: Int64 | None = None) -> Arrivals:
    """Who comes when.

    Args:
        matches: calls found on several ranks.
        start_ns: of each call its start on a clock that all ranks have in common, -1 where there is none; shape (c,).
    """
    calls, match, count = matches.calls, matches.match, len(matches)
    together = np.array([row.kind in TOGETHER for row in calls.rows], np.bool_)[matches.row]
    rows = np.flatnonzero(match >= 0)
    of, time = match[rows], calls.time_ns[rows]
    shortest, longest, last = _extremes(-time, of, calls.rank[rows], count)
    shortest, longest = -longest, -shortest
    waited = np.zeros(len(match), np.int64)
    waited[rows] = np.where(together[of], time - shortest[of], 0)
    spread = np.where(together, longest - shortest, -1)
    last = np.where(together, last, -1)
    if start_ns is not None and not together.all():
        rows = rows[~together[of]]
        of = match[rows]
        known = np.ones(count, np.bool_)
        known[of[start_ns[rows] < 0]] = False
        known &= ~together
        first, latest, came_last = _extremes(start_ns[rows], of, calls.rank[rows], count)
        spread = np.where(known, latest - first, spread)
        last = np.where(known, came_last, last)
    last = np.where(matches.ranks > 1, last, -1)
    return Arrivals(together, np.where(together, shortest, 0), spread, last, waited)


def _extremes(value: Int64, of: Int64, rank: Int64, count: int) -> tuple[Int64, Int64, Int64]:
    """The least and the largest value of each match, and the rank of the largest, -1 where several have it."""
    bound = np.iinfo(np.int64).max
    low, high = np.full(count, bound), np.full(count, -bound)
    np.minimum.at(low, of, value)
    np.maximum.at(high, of, value)
    top = value == high[of]
    ranks = np.full(count, -1, np.int64)
    ranks[of[top]] = rank[top]
    ranks[np.bincount(of[top], minlength=count) != 1] = -1
    return low, high, ranks

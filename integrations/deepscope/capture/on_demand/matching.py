"""Which steps of several ranks are the same one, by when they ended: for ranks that began to count at different times.

Ranks that sum up gradients end each step within one step's length of each other. So the ends of a step on two ranks are
nearer to each other than to those of the steps around it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence

_AGREEMENT = 0.75
"""This share of the steps must say the same."""


def offsets(ranks: Sequence[tuple[int, Sequence[int]]]) -> list[int] | None:
    """What each rank's count is ahead of the first one's; None where the ends do not tell.

    Args:
        ranks: the steps made so far and the times at which the newest of them ended, the last one last.
    """
    count, ends = ranks[0]
    found = [0]
    for other_count, other_ends in ranks[1:]:
        offset = _offset(count, ends, other_count, other_ends)
        if offset is None:
            return None
        found.append(offset)
    return found


def _offset(count: int, ends: Sequence[int], other_count: int, other_ends: Sequence[int]) -> int | None:
    if len(ends) < 2 or len(other_ends) < 2:
        return None
    votes: Counter[int] = Counter()
    for place, end in enumerate(ends):
        if not other_ends[0] <= end <= other_ends[-1]:
            continue
        behind = bisect_left(other_ends, end)
        nearest = min(
            range(max(behind - 1, 0), min(behind + 1, len(other_ends))), key=lambda i: abs(other_ends[i] - end)
        )
        number = count - (len(ends) - 1 - place)
        votes[other_count - (len(other_ends) - 1 - nearest) - number] += 1
    if not votes:
        return None
    offset, agreeing = votes.most_common(1)[0]
    return offset if agreeing >= _AGREEMENT * votes.total() else None

"""Who waits for whom in collectives: the same calls on all ranks of a group, matched one by one.

Clocks of ranks are not compared: all ranks leave a call at one time, so that its length tells when each has come.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

from deepscope.records import Collective, Profile
from deepscope.records.profile import COLLECTIVE_KEY

__all__ = ["Arrival", "Arrivals", "key_of_calls", "rank_of"]

key_of_calls = attrgetter(*COLLECTIVE_KEY)
"""What rows of collectives agree in that belong together."""


def rank_of(profile: Profile, place: int) -> int:
    """The rank that a profile is of; its place among the others where the trace does not say."""
    return profile.trace.ranks[0] if profile.trace.ranks else place


@dataclass(frozen=True, slots=True)
class Arrival:
    """The calls of one row of collectives over the ranks of its group, call by call."""

    ranks: list[int]
    times: list[tuple[int, ...]]
    """Of each call, on each rank."""

    @property
    def spreads(self) -> list[int]:
        """By how much the last rank came after the first to each call: all leave it at one time."""
        return [max(one) - min(one) for one in self.times]

    @property
    def waited(self) -> dict[int, int]:
        """Of each rank the time that its calls took longer than on the rank that came last."""
        waits = [0] * len(self.ranks)
        for one in self.times:
            shortest = min(one)
            for place, time in enumerate(one):
                waits[place] += time - shortest
        return dict(zip(self.ranks, waits, strict=True))

    @property
    def last(self) -> dict[int, int]:
        """How many calls each rank came to last; where several came at one time, none did."""
        counts = dict.fromkeys(self.ranks, 0)
        for one in self.times:
            shortest = min(one)
            if one.count(shortest) == 1:
                counts[self.ranks[one.index(shortest)]] += 1
        return counts


class Arrivals:
    """The rows whose calls can be matched: every rank of the group is here, with as many calls."""

    def __init__(self, profiles: Sequence[Profile]) -> None:
        groups: dict[tuple[object, ...], list[tuple[int, Collective]]] = defaultdict(list)
        for place, profile in enumerate(profiles):
            for row in profile.collectives:
                groups[key_of_calls(row)].append((rank_of(profile, place), row))
        self.of_key: dict[tuple[object, ...], Arrival] = {}
        for key, found in groups.items():
            first = found[0][1]
            is_known = first.group_size > 1 and len(found) == first.group_size and bool(first.group_ranks)
            if is_known and len({len(row.shortest_ns) for _, row in found}) == 1 and first.shortest_ns:
                times = list(zip(*(row.shortest_ns for _, row in found), strict=True))
                self.of_key[key] = Arrival([rank for rank, _ in found], times)
        self.waited: dict[int, int] = defaultdict(int)
        self.last: dict[int, int] = defaultdict(int)
        for one in self.of_key.values():
            for rank, time in one.waited.items():
                self.waited[rank] += time
            for rank, count in one.last.items():
                self.last[rank] += count

"""From what was watched: lookups for sequences with padding, and the work that goes through all positions."""

from __future__ import annotations

import math
from collections import defaultdict

from deepscope.capture.audit.operator_uses import StepWork
from deepscope.capture.audit.padding import Lookup
from deepscope.capture.audit.places import Places
from deepscope.capture.audit.watch import Watch
from deepscope.trace.format.audit import PaddedWork

_MOST_LOOKUPS = 64
_LEAST_FEATURES = 2
"""A position has at least so many in work that goes through all of them."""


def padded_work(watch: Watch, work: StepWork, places: Places) -> list[PaddedWork]:
    """Of the first step, by line, the most padding first. Work after several lookups counts for the last of them."""
    operations, paths = watch.flow.operations, watch.paths.paths
    numbers = {number for number, _ in work.forward}
    claimed: set[int] = set()
    lookups: dict[int, list[Lookup]] = defaultdict(list)
    members: dict[int, set[int]] = defaultdict(set)
    for number, lookup in reversed(watch.lookups[-_MOST_LOOKUPS:]):
        if number not in numbers:
            continue
        following = {number}
        for later, one in work.forward:
            if later > number and not following.isdisjoint(one.inputs):
                following.add(later)
        place = places.number_of(paths[operations[number].call.path][-1])
        lookups[place].append(lookup)
        members[place] |= {one for one in following - claimed if _has_all_positions(operations[one].shape, lookup)}
        claimed |= following
    found = [
        PaddedWork(
            place=place,
            rows=sum(one.rows for one in mine),
            length=max(one.length for one in mine),
            positions=sum(one.rows * one.length for one in mine),
            padded=sum(one.padded for one in mine),
            longest=max(one.longest for one in mine),
            operators=work.uses(members[place]),
            backward=work.backward_uses(members[place]),
        )
        for place, mine in lookups.items()
    ]
    return sorted(found, key=lambda one: -one.padded)


def _has_all_positions(shape: tuple[int, ...], lookup: Lookup) -> bool:
    positions = lookup.rows * lookup.length
    return math.prod(shape) >= _LEAST_FEATURES * positions and (lookup.length in shape or positions in shape)

"""From what was watched: lookups for sequences with padding, and the work that goes through all positions."""

from __future__ import annotations

import math

from deepscope.capture.audit.operator_uses import ForwardWork, operator_uses
from deepscope.capture.audit.padding import Lookup
from deepscope.capture.audit.places import Places
from deepscope.capture.audit.watch import Watch
from deepscope.trace.format.audit import PaddedWork

_LEAST_FEATURES = 2
"""A position has at least so many in work that goes through all of them."""


def padded_work(watch: Watch, places: Places) -> list[PaddedWork]:
    """Of the first step, by lookup, the most padding first. Work after several lookups counts for the last of them."""
    operations, paths = watch.flow.operations, watch.paths.paths
    work = ForwardWork(watch, places)
    numbers = {number for number, _ in work.operations}
    backward = [(number, one) for number, one in enumerate(operations) if one.step == 0 and one.pass_number >= 0]
    claimed: set[int] = set()
    found = []
    for number, lookup in reversed(watch.lookups):
        if number not in numbers:
            continue
        following = {number}
        for later, one in work.operations:
            if later > number and not following.isdisjoint(one.inputs):
                following.add(later)
        mine = {one for one in following - claimed if _has_all_positions(operations[one].shape, lookup)}
        claimed |= following
        lines = {paths[operations[one].call.path][-1] for one in mine}
        behind = [pair for pair in backward if (path := paths[pair[1].forward_path]) and path[-1] in lines]
        found.append(
            PaddedWork(
                place=places.number_of(paths[operations[number].call.path][-1]),
                rows=lookup.rows,
                length=lookup.length,
                padded=lookup.padded,
                longest=lookup.longest,
                operators=work.uses(mine),
                backward=operator_uses(watch, places, behind, {one for one, _ in behind}),
            )
        )
    return sorted(found, key=lambda one: -one.padded)


def _has_all_positions(shape: tuple[int, ...], lookup: Lookup) -> bool:
    positions = lookup.rows * lookup.length
    return math.prod(shape) >= _LEAST_FEATURES * positions and (lookup.length in shape or positions in shape)

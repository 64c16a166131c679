"""The tree that a flame graph draws: call paths down to the work, or from the work up to its callers; bounded."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from deepscope.records import Profile
from deepscope.report.paths import Depth, Stack, stacks

FlameMetric = Literal["device", "backward", "cpu"]

_VALUES: dict[FlameMetric, Callable[[Stack], int]] = {
    "device": lambda stack: stack.device_ns,
    "backward": lambda stack: stack.backward_device_ns,
    "cpu": lambda stack: stack.cpu_ns,
}


@dataclass(slots=True)
class FlameTree:
    """Nodes as rows; a parent stands before its children."""

    frames: list[Hashable]
    """What a node shows: numbers below `len(Profile.lines)` are lines, -1 no line, larger ones places."""
    parents: list[int]
    """-1 for a root."""
    own: list[tuple[int, ...]]
    """Times that lie in no child, one for each profile."""
    left_out: int = 0
    """Smaller nodes, whose times their parents have."""
    left_out_ns: tuple[int, ...] = ()
    """Times of those that had no parent."""


Naming = Callable[[int], Hashable]


def flame_tree(
    profiles: Sequence[tuple[Profile, Naming]], *, metric: FlameMetric, depth: Depth, upwards: bool, limit: int
) -> FlameTree:
    """The tree of one profile, or of several in one.

    Args:
        profiles: each with what its frames are called: what has one name is one frame.
        metric: whose times.
        depth: how far below the lines.
        upwards: from the innermost frame to its callers.
        limit: of so many nodes the largest.
    """
    nodes: dict[tuple[int, Hashable], int] = {}
    tree = FlameTree([], [], [])
    sums: list[list[int]] = []
    value = _VALUES[metric]
    for which, (profile, name) in enumerate(profiles):
        for path, time_ns in _paths(profile, depth, value):
            parent = -1
            for frame in reversed(path) if upwards else path:
                key = name(frame)
                node = nodes.setdefault((parent, key), len(sums))
                if node == len(sums):
                    sums.append([0] * len(profiles))
                    tree.frames.append(key)
                    tree.parents.append(parent)
                parent = node
            sums[parent][which] += time_ns
    tree.own = [tuple(one) for one in sums]
    tree.left_out_ns = (0,) * len(profiles)
    return largest(tree, limit)


def _paths(profile: Profile, depth: Depth, value: Callable[[Stack], int]) -> Iterable[tuple[list[int], int]]:
    first = len(profile.lines)
    for stack in stacks(profile, depth):
        if time_ns := value(stack):
            yield [*stack.lines, *(first + place for place in stack.places)], time_ns


def largest(tree: FlameTree, limit: int) -> FlameTree:
    """The nodes with most time below them; a node's parent has no less, so that what is left is a tree."""
    count = len(tree.parents)
    if count <= limit:
        return tree
    width = len(tree.left_out_ns)
    whole = [sum(own) for own in tree.own]
    for number in range(count - 1, -1, -1):
        if tree.parents[number] >= 0:
            whole[tree.parents[number]] += whole[number]
    kept = sorted(sorted(range(count), key=lambda number: (-whole[number], number))[:limit])
    at = {number: place for place, number in enumerate(kept)}
    own = [list(one) for one in tree.own]
    lost = list(tree.left_out_ns)
    for number in range(count - 1, -1, -1):
        if number not in at:
            above = tree.parents[number]
            into = own[above] if above >= 0 else lost
            for which in range(width):
                into[which] += own[number][which]
    return FlameTree(
        frames=[tree.frames[number] for number in kept],
        parents=[at.get(tree.parents[number], -1) for number in kept],
        own=[tuple(own[number]) for number in kept],
        left_out=tree.left_out + count - limit,
        left_out_ns=tuple(lost),
    )

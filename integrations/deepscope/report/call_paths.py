"""Call paths: each with its time, and the tree that a flame graph draws of them, bounded."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from deepscope.records import CallNode, PartKind, Profile

Depth = Literal["line", "module", "library", "operator", "kernel"]
DEPTHS: tuple[Depth, ...] = ("line", "module", "library", "operator", "kernel")
"""How far down call paths are followed; each holds those before it."""
Metric = Literal["device", "cpu"]
METRICS: tuple[Metric, ...] = ("device", "cpu")
"""What call paths may be weighed by; the CPU's time is known of lines, not of what is below them."""


def call_tree(profile: Profile) -> list[CallNode]:
    """The call tree; for a profile without one a flat tree of its lines, so that no time is lost."""
    if profile.call_tree:
        return profile.call_tree
    rest = profile.no_line
    flat = [
        CallNode(-1, place, line.self_device_ns, line.self_cpu_ns, line.backward_device_ns)
        for place, line in enumerate(profile.lines)
    ]
    return [*flat, CallNode(-1, -1, rest.self_device_ns, rest.self_cpu_ns, rest.backward_device_ns)]


def subtree_sums(parents: Sequence[int], own: Iterable[int]) -> list[int]:
    """Of each node its own number and those of all below it; a parent (-1 for none) stands before its children."""
    sums = list(own)
    for node in range(len(sums) - 1, -1, -1):
        if parents[node] >= 0:
            sums[parents[node]] += sums[node]
    return sums


def node_path(tree: list[CallNode], place: int) -> list[int]:
    """Indices into `Profile.lines` from the outermost line to the node's own; -1 for work that reached no line."""
    path = []
    while place >= 0:
        path.append(tree[place].line)
        place = tree[place].parent
    return path[::-1]


FlameMetric = Literal["device", "backward", "cpu"]
_FIELDS: dict[FlameMetric, str] = {"device": "device_ns", "backward": "backward_device_ns", "cpu": "cpu_ns"}


class Stack(NamedTuple):
    """A call path down to its work, and the time of the work that lies in nothing below."""

    lines: list[int]
    """Indices into `Profile.lines`, the outermost first; -1 for work that reached no line."""
    places: list[int]
    """Indices into `Profile.places`, the outermost first."""
    device_ns: int
    backward_device_ns: int
    cpu_ns: int
    """Of the line itself: what is below it has none of its own."""

    def time_ns(self, metric: FlameMetric) -> int:
        """Its time by a metric."""
        return int(getattr(self, _FIELDS[metric]))


def stacks(profile: Profile, depth: Depth = "kernel") -> Iterator[Stack]:
    """All call paths with any time, down to `depth`; what lies deeper is a part of what holds it."""
    shown = shown_kinds(depth)
    below: dict[int, list[tuple[list[int], int, int]]] = {}
    paths: list[list[int]] = []
    for part in profile.parts if depth != "line" else []:  # a parent stands before its parts
        path = paths[part.parent] if part.parent >= 0 else []
        if profile.places[part.place].kind in shown:
            path = [*path, part.place]
        paths.append(path)
        if path and (part.self_device_ns or part.backward_device_ns):
            below.setdefault(part.call, []).append((path, part.self_device_ns, part.backward_device_ns))
    tree = call_tree(profile)
    for place, node in enumerate(tree):
        lines = node_path(tree, place)
        found = below.get(place, [])
        device = node.self_device_ns - sum(time for _, time, _ in found)
        backward = node.backward_device_ns - sum(time for _, _, time in found)
        if device or backward or node.self_cpu_ns:
            yield Stack(lines, [], device, backward, node.self_cpu_ns)
        for path, time, back in found:
            yield Stack(lines, path, time, back, 0)


def shown_kinds(depth: Depth) -> frozenset[PartKind]:
    """What stands below lines down to `depth`."""
    kinds: dict[Depth, tuple[PartKind, ...]] = {
        "line": (),
        "module": ("module",),
        "library": ("module", "library"),
        "operator": ("module", "library", "operator", "other"),
        "kernel": ("module", "library", "operator", "kernel", "other"),
    }
    return frozenset(kinds[depth])


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

    def totals(self, which: int | None = None) -> list[int]:
        """By node its own time and that of all below it: in one of the profiles, or (None) in all of them."""
        return subtree_sums(self.parents, (sum(own) if which is None else own[which] for own in self.own))


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
    for which, (profile, name) in enumerate(profiles):
        for path, time_ns in _paths(profile, depth, metric):
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


def _paths(profile: Profile, depth: Depth, metric: FlameMetric) -> Iterable[tuple[list[int], int]]:
    first = len(profile.lines)
    for stack in stacks(profile, depth):
        if time_ns := stack.time_ns(metric):
            yield [*stack.lines, *(first + place for place in stack.places)], time_ns


def largest(tree: FlameTree, limit: int) -> FlameTree:
    """The nodes with most time below them; a node's parent has no less, so that what is left is a tree."""
    count = len(tree.parents)
    if count <= limit:
        return tree
    width = len(tree.left_out_ns)
    whole = tree.totals()
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

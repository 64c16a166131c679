"""The call tree: with what stands below its lines, down to a depth; and what is the same under one parent joined."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from deepscope.records import CallNode, PartKey, Profile
from deepscope.report.call_paths import Depth, call_tree, shown_kinds, subtree_sums
from deepscope.report.event_names import place_name


class PathNode(NamedTuple):
    """A line on a call path, or a part of a line's work."""

    parent: int
    """Index in the tree; -1 for a root. A parent stands before its children."""
    frame: int
    """What it is: an index into `Profile.lines`, behind these one into `Profile.places`; -1 for no line."""
    self_device_ns: int
    """In no node below it."""
    self_cpu_ns: int
    """Of a line alone: its parts have none of their own."""
    backward_device_ns: int
    """Part of `self_device_ns`."""
    calls: int
    """Of a part as in `Part`; 0 for a line, of whose single paths nobody knows."""


def opened_tree(profile: Profile, depth: Depth) -> list[PathNode]:
    """The nodes of the call tree at their own indices, behind them the parts of their work.

    What lies deeper than `depth` is own time of what holds it. Parts of one place under one parent are one node.
    """
    lines = call_tree(profile)
    nodes = [
        [node.parent, node.line, node.self_device_ns, node.self_cpu_ns, node.backward_device_ns, 0] for node in lines
    ]
    shown = shown_kinds(depth)
    places, first = profile.places, len(profile.lines)
    known: dict[tuple[int, int], int] = {}
    holders: list[int] = []
    """For each part the node that has its time."""
    for part in profile.parts if shown and profile.call_tree else []:  # a parent stands before its parts
        above = holder = holders[part.parent] if part.parent >= 0 else part.call
        is_shown = places[part.place].kind in shown
        if is_shown:
            holder = known.setdefault((above, part.place), len(nodes))
            if holder == len(nodes):
                nodes.append([above, first + part.place, 0, 0, 0, 0])
            nodes[holder][5] += part.calls
        holders.append(holder)
        if holder != part.call:
            _move(nodes[part.call], nodes[holder], part.self_device_ns, part.backward_device_ns)
    return [PathNode(*node) for node in nodes]


def _move(giver: list[int], taker: list[int], self_ns: int, backward_ns: int) -> None:
    for node, sign in ((giver, -1), (taker, 1)):
        node[2] += sign * self_ns
        node[4] += sign * backward_ns


def place_of(profile: Profile, frame: int) -> PartKey | None:
    """What a node below a line is; None for a line's own."""
    number = frame - len(profile.lines)
    return profile.places[number] if number >= 0 else None


def node_name(place: PartKey, modules_above: Iterable[str]) -> str:
    """What a node below a line is called among those above it, safe to print.

    `mlp` for `h.0.mlp` below `h.0`; `feed.2` for `h.0.feed.2` below `h.0.feed`, since a number says nothing alone.
    """
    if place.kind == "module":
        for module in modules_above:
            if module and place.name.startswith(f"{module}."):
                rest, last = place.name[len(module) + 1 :], module.rsplit(".", 1)[-1]
                return place_name("module", f"{last}.{rest}" if rest[:1].isdigit() else rest)
    return place_name(place.kind, place.name)


DEPTH_LIMIT = 200
"""A deeper tree is cut: readers of JSON have limits of their own."""


@dataclass(frozen=True, slots=True)
class JoinedNode:
    """A line on one path of calls, or a part of its work."""

    frame: int
    """As in `PathNode`."""
    self_ns: int
    total_ns: int
    total_cpu_ns: int
    total_backward_ns: int
    calls: int
    children: tuple[JoinedNode, ...]
    """The largest total first."""

    @property
    def time_ns(self) -> int:
        """On the device, where there is any; else on the CPU."""
        return self.total_ns or self.total_cpu_ns


class SubtreeTimes(NamedTuple):
    """Times of a node with those of all below it."""

    device_ns: int
    cpu_ns: int
    backward_ns: int
    """Part of `device_ns`."""


def subtree_times(tree: Sequence[CallNode | PathNode]) -> list[SubtreeTimes]:
    """The times of each node with all below it."""
    parents = [node.parent for node in tree]
    own = ([node.self_device_ns, node.self_cpu_ns, node.backward_device_ns] for node in tree)
    columns = (subtree_sums(parents, column) for column in zip(*own, strict=True))
    return [SubtreeTimes(*times) for times in zip(*columns, strict=True)]


def joined_calls(tree: Sequence[PathNode], limit_ns: float) -> tuple[JoinedNode, ...]:
    """The roots, the largest total first; nodes with less device time than `limit_ns` are left out."""
    totals = subtree_times(tree)
    children: dict[int, list[int]] = defaultdict(list)
    for place, node in enumerate(tree):
        children[node.parent].append(place)

    def level(places: Iterable[int], depth: int) -> tuple[JoinedNode, ...]:
        if depth > DEPTH_LIMIT:
            return ()
        by_frame: dict[int, list[int]] = defaultdict(list)
        for place in places:
            by_frame[tree[place].frame].append(place)
        nodes = []
        for frame, same in by_frame.items():
            total_ns = sum(totals[place].device_ns for place in same)
            if total_ns >= limit_ns:
                node = JoinedNode(
                    frame=frame,
                    self_ns=sum(tree[place].self_device_ns for place in same),
                    total_ns=total_ns,
                    total_cpu_ns=sum(totals[place].cpu_ns for place in same),
                    total_backward_ns=sum(totals[place].backward_ns for place in same),
                    calls=sum(tree[place].calls for place in same),
                    children=level([child for place in same for child in children[place]], depth + 1),
                )
                nodes.append(node)
        return tuple(sorted(nodes, key=lambda node: (-node.total_ns, -node.total_cpu_ns)))

    return level(children[-1], 0)

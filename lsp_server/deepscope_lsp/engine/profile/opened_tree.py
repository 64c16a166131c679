"""The call tree with what stands below its lines: modules, library lines, operators and kernels, down to a depth."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from deepscope.records import PartKey, Profile
from deepscope.report.paths import Depth, call_tree, shown_kinds
from deepscope.report.places import place_name

NO_LINE = -1


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

"""A tree of calls with what is the same under one parent joined, so that a line's calls are one node."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from deepscope.records import CallNode
from deepscope_lsp.engine.profile.opened_tree import PathNode

AnyNode = TypeVar("AnyNode", CallNode, PathNode)
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


def subtree_sums(tree: Sequence[AnyNode], own: Callable[[AnyNode], int]) -> list[int]:
    """`own` of each node with that of all below it; a parent stands before its children."""
    sums = [own(node) for node in tree]
    for place in range(len(tree) - 1, -1, -1):
        parent = tree[place].parent
        if 0 <= parent < place:
            sums[parent] += sums[place]
    return sums


def subtree_ns(tree: Sequence[AnyNode]) -> list[tuple[int, int]]:
    """Device and CPU time of each node with all below it."""
    device_ns = subtree_sums(tree, lambda node: node.self_device_ns)
    return list(zip(device_ns, subtree_sums(tree, lambda node: node.self_cpu_ns), strict=True))


def joined_calls(tree: Sequence[PathNode], limit_ns: float) -> tuple[JoinedNode, ...]:
    """The roots, the largest total first; nodes with less device time than `limit_ns` are left out."""
    totals = subtree_ns(tree)
    backward_ns = subtree_sums(tree, lambda node: node.backward_device_ns)
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
            total_ns = sum(totals[place][0] for place in same)
            if total_ns >= limit_ns:
                node = JoinedNode(
                    frame=frame,
                    self_ns=sum(tree[place].self_device_ns for place in same),
                    total_ns=total_ns,
                    total_cpu_ns=sum(totals[place][1] for place in same),
                    total_backward_ns=sum(backward_ns[place] for place in same),
                    calls=sum(tree[place].calls for place in same),
                    children=level([child for place in same for child in children[place]], depth + 1),
                )
                nodes.append(node)
        return tuple(sorted(nodes, key=lambda node: (-node.total_ns, -node.total_cpu_ns)))

    return level(children[-1], 0)

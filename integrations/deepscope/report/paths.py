"""Call paths of a profile: for each node of its call tree the lines from the outermost inwards."""

from __future__ import annotations

from deepscope.records import CallNode, Profile

__all__ = ["call_tree", "node_path"]

NO_LINE = -1


def call_tree(profile: Profile) -> list[CallNode]:
    """The call tree; for a profile without one a flat tree of its lines, so that no time is lost."""
    if profile.call_tree:
        return profile.call_tree
    rest = profile.no_line
    flat = [
        CallNode(-1, place, line.self_device_ns, line.self_cpu_ns, line.backward_device_ns)
        for place, line in enumerate(profile.lines)
    ]
    return [*flat, CallNode(-1, NO_LINE, rest.self_device_ns, rest.self_cpu_ns, rest.backward_device_ns)]


def node_path(tree: list[CallNode], place: int) -> list[int]:
    """Indices into `Profile.lines` from the outermost line to the node's own; -1 for work that reached no line."""
    path = []
    while place >= 0:
        path.append(tree[place].line)
        place = tree[place].parent
    return path[::-1]

"""Call paths: each with its time, the tree that a flame graph draws, and the files of folded stacks and speedscope."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from deepscope.printable import printable
from deepscope.records import CallNode, PartKey, PartKind, Profile
from deepscope.records.places import NO_LINE, short_path, short_place
from deepscope.report.event_names import measured_words, place_name

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


def folded_report(profile: Profile, depth: Depth = "kernel", metric: Metric = "device") -> str:
    """One line a call path with time: `main (train.py:3);forward (net.py:9);aten::mm 1200`."""
    root = profile.trace.project_root
    names = [_folded_frame(f"{line.function} ({short_place(line.file, line.line, root)})") for line in profile.lines]
    names.append(NO_LINE)
    places = [_folded_frame(_place(place, root)) for place in profile.places]
    rows = []
    for stack in stacks(profile, depth):
        if time := _VALUES[metric](stack):
            frames = [names[line] for line in stack.lines] + [places[place] for place in stack.places]
            rows.append(f"{';'.join(frames)} {time}\n")
    return "".join(rows)


def _place(place: PartKey, root: str) -> str:
    where = f" ({short_place(place.file, place.line, root)})" if place.kind == "library" and place.line else ""
    return place_name(place.kind, place.name) + where


def _folded_frame(name: str) -> str:
    return printable(name).replace(";", ",")


SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def speedscope_report(profile: Profile, depth: Depth = "kernel", metric: Metric | None = None) -> str:
    """Sampled profiles of device time (all, and that of backward alone) and of CPU time, one sample a call path.

    With a `metric` it is one of device time (of backward beside it) or of CPU time alone.
    """
    frames: list[dict[str, Any]] = [
        {"name": printable(line.function), "file": line.file, "line": line.line} for line in profile.lines
    ]
    frames.append({"name": NO_LINE})
    frames += map(_speedscope_frame, profile.places)
    device = measured_words(profile)
    views: list[tuple[str, Callable[[Stack], int]]] = [
        (device, lambda stack: stack.device_ns),
        (f"{device}, backward", lambda stack: stack.backward_device_ns),
        ("CPU time of the lines", lambda stack: stack.cpu_ns),
    ]
    if metric is not None:
        views = views[:2] if metric == "device" else views[2:]
    found = list(stacks(profile, depth))
    profiles = [_sampled(found, len(profile.lines), name, weight) for name, weight in views]
    return json.dumps(
        {
            "$schema": SCHEMA,
            "exporter": "deepscope",
            "name": printable(short_path(profile.trace.path)),
            "activeProfileIndex": 0,
            "shared": {"frames": frames},
            "profiles": [profiles[0], *(one for one in profiles[1:] if one["samples"])],
        }
    )


def _speedscope_frame(place: PartKey) -> dict[str, Any]:
    where = {"file": place.file, "line": place.line} if place.file and place.line else {}
    return {"name": place_name(place.kind, place.name), **where}


def _sampled(found: list[Stack], no_line: int, name: str, weight: Callable[[Stack], int]) -> dict[str, Any]:
    """`no_line` is the frame of work that reached no line; those of places stand after it."""
    chosen = [stack for stack in found if weight(stack)]
    weights = [weight(stack) for stack in chosen]
    return {
        "type": "sampled",
        "name": name,
        "unit": "nanoseconds",
        "startValue": 0,
        "endValue": sum(weights),
        "samples": [
            [*(no_line if line < 0 else line for line in stack.lines), *(no_line + 1 + place for place in stack.places)]
            for stack in chosen
        ],
        "weights": weights,
    }

"""The tree below a line: what its work is made of, from modules and library lines down to kernels."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from deepscope.records import Line, PartKey, Profile
from deepscope.records.lines import NO_LINE

NodeKind = Literal["line", "module", "library", "operator", "kernel", "other"]

_MAIN_SHARE = 0.5


@dataclass(slots=True)
class Node:
    """A line or a part of it. The total is the node's own time and that of all nodes below it."""

    kind: NodeKind
    name: str
    """Of a line its function; else as in `PartKey`. Of layers folded together their path with `*` for the number."""
    file: str
    line: int
    self_device_ns: int = 0
    total_device_ns: int = 0
    backward_device_ns: int = 0
    """Part of `total_device_ns`."""
    calls: int = 0
    children: list[Node] = field(default_factory=list)
    """The largest first; what is folded together ("other") last."""
    layers: int = 1
    """How many modules that are alike it stands for."""

    def walk(self, depth: int = 0) -> Iterator[tuple[int, Node]]:
        """The node and all below it with their depths, parents first."""
        yield depth, self
        for child in self.children:
            yield from child.walk(depth + 1)


def below(profile: Profile, line: int) -> Node:
    """The tree of a line, by its place among `lines_of` (-1: of the work that reached no line).

    Its call paths are summed up. The root's total is the line's `self_device_ns`, to the nanosecond; of a library's
    line it is the `total_device_ns`.
    """
    if line >= len(profile.lines):
        return _below_library_line(profile, profile.library_lines[line - len(profile.lines)])
    calls = [place for place, node in enumerate(profile.call_tree) if node.line == line]
    if line < 0:
        rest = profile.no_line
        root = Node("line", NO_LINE, "", 0, rest.self_device_ns, 0, rest.backward_device_ns, rest.calls)
    else:
        of = profile.lines[line]
        root = Node("line", of.function, of.file, of.line, of.self_device_ns, 0, of.backward_device_ns, of.calls)
    root.children = merged_trees(profile, calls)
    root.self_device_ns -= sum(child.total_device_ns for child in root.children)
    root.total_device_ns = root.self_device_ns + sum(child.total_device_ns for child in root.children)
    return root


def lines_of(profile: Profile) -> list[Line]:
    """The lines that have a tree: the user's, then those of libraries."""
    return [*profile.lines, *profile.library_lines]


def _below_library_line(profile: Profile, line: Line) -> Node:
    root = Node("line", line.function, line.file, line.line, calls=line.calls)
    found: list[Node] = []
    waiting = [node for nodes in trees(profile, range(len(profile.call_tree))).values() for node in nodes]
    while waiting:
        node = waiting.pop()
        if (node.kind, node.name, node.file, node.line) == ("library", line.function, line.file, line.line):
            found.append(node)
        else:
            waiting += node.children
    root.children = _merged(child for node in found for child in node.children)
    root.self_device_ns = sum(node.self_device_ns for node in found)
    root.backward_device_ns = sum(node.backward_device_ns for node in found)
    root.total_device_ns = line.total_device_ns
    folded = line.total_device_ns - sum(node.total_device_ns for node in found)
    if folded:
        root.children.append(Node("other", "", "", 0, folded, folded))
        root.children = _merged(root.children)
    return root


def merged_trees(profile: Profile, calls: Iterable[int]) -> list[Node]:
    """The same of all these nodes together: what is of one place is one."""
    return _merged([child for children in trees(profile, calls).values() for child in children])


def trees(profile: Profile, calls: Iterable[int]) -> dict[int, list[Node]]:
    """The nodes directly below each of some nodes of the call tree, with all that lies below them."""
    wanted: dict[int, list[Node]] = {call: [] for call in calls}
    nodes: dict[int, Node] = {}
    order: list[tuple[int, int]] = []
    for number, part in enumerate(profile.parts):  # a parent stands before its parts
        if part.call in wanted:
            place = profile.places[part.place]
            node = Node(place.kind, place.name, place.file, place.line)
            node.self_device_ns = node.total_device_ns = part.self_device_ns
            node.backward_device_ns, node.calls = part.backward_device_ns, part.calls
            nodes[number] = node
            order.append((number, part.parent))
            (nodes[part.parent].children if part.parent >= 0 else wanted[part.call]).append(node)
    for number, parent in reversed(order):
        nodes[number].children = _ordered(nodes[number].children)
        if parent >= 0:
            nodes[parent].total_device_ns += nodes[number].total_device_ns
            nodes[parent].backward_device_ns += nodes[number].backward_device_ns
    return {call: _ordered(children) for call, children in wanted.items()}


def fold_alike(node: Node) -> Node:
    """The tree with modules that differ in a number alone made one: `encoder.layers.*` for all of `encoder.layers`."""
    groups: dict[tuple[object, ...], list[Node]] = defaultdict(list)
    for child in node.children:
        name = _pattern(child.name) if child.kind == "module" else child.name
        groups[child.kind, name, child.file, child.line].append(child)
    children = []
    for alike in groups.values():
        folded = alike[0]
        if len(alike) > 1:
            named = [_renamed(child, child.name, _pattern(child.name)) for child in alike]
            [folded] = _merged(named)
            folded.layers = len(alike)
        children.append(fold_alike(folded))
    return replace(node, children=_ordered(children))


def main_branch(node: Node) -> list[Node]:
    """The way down from a node's parts that holds at least half of the time at each step, outermost first."""
    branch = []
    while node.children:
        largest = max(node.children, key=lambda child: child.total_device_ns)
        if largest.kind == "other" or largest.total_device_ns < _MAIN_SHARE * node.total_device_ns:
            break
        branch.append(largest)
        node = largest
    return branch


def _merged(nodes: Iterable[Node]) -> list[Node]:
    """Nodes of one place made one, and those below them."""
    groups: dict[tuple[object, ...], list[Node]] = defaultdict(list)
    for node in nodes:
        groups[node.kind, node.name, node.file, node.line].append(node)
    merged = []
    for same in groups.values():
        first = same[0]
        if len(same) > 1:
            first = replace(
                first,
                self_device_ns=sum(node.self_device_ns for node in same),
                total_device_ns=sum(node.total_device_ns for node in same),
                backward_device_ns=sum(node.backward_device_ns for node in same),
                calls=sum(node.calls for node in same),
                children=_merged(child for node in same for child in node.children),
            )
        merged.append(first)
    return _ordered(merged)


def _ordered(nodes: list[Node]) -> list[Node]:
    return sorted(
        nodes,
        key=lambda node: (node.kind == "other", -node.total_device_ns, node.kind, node.name, node.file, node.line),
    )


def _pattern(name: str) -> str:
    return PartKey("module", name).alike.name


def _renamed(node: Node, old: str, new: str) -> Node:
    """The tree with `new` in place of `old` at the beginning of its modules' paths."""
    name = node.name
    if node.kind == "module" and (name == old or name.startswith(f"{old}.")):
        name = new + name[len(old) :]
    return replace(node, name=name, children=[_renamed(child, old, new) for child in node.children])

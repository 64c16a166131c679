"""Call paths: the whole tree, or who calls one line and what it calls."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from deepscope.records import Line
from deepscope.report.paths import call_tree
from deepscope_lsp.answers import CallPath, CallPaths, LinePath, LinePaths, Place
from deepscope_lsp.engine.places import Locate, place_fields
from deepscope_lsp.engine.profile.call_tree import JoinedNode, joined_calls
from deepscope_lsp.engine.profile.profile_index import NO_LINE, ProfileIndex
from deepscope_lsp.engine.wording import quantities

__all__ = ["NO_LINE_PLACE", "call_paths", "line_paths"]

NO_LINE_PLACE = Line(file="", line=0, function="(no user line)", exact=False)
DEPTH_LIMIT = 100
"""Recursion and broken traces may nest deeply; nobody reads so far down."""

Chain = tuple[tuple[JoinedNode, ...], JoinedNode]
"""The nodes above the line that is asked for, outermost first, and the one whose time is counted."""


def call_paths(index: ProfileIndex, locate: Locate, *, min_share: float = 0.001) -> CallPaths:
    """The call tree, equal lines under one parent joined, the largest total first; below `min_share` left out."""

    def path(node: JoinedNode) -> CallPath:
        return CallPath(
            **place_fields(_line(index, node), locate),
            self_ns=node.self_ns,
            total_ns=node.total_ns,
            total_cpu_ns=node.total_cpu_ns,
            share=index.scales.share(node.total_ns),
            children=[path(child) for child in node.children],
        )

    roots = joined_calls(call_tree(index.profile), min_share * index.scales.busy_ns)
    return CallPaths(metric=index.profile.metric, roots=[path(root) for root in roots])


def line_paths(index: ProfileIndex, locate: Locate, file: str, line: int) -> LinePaths:
    """The chains of calls above a line and the trees below it; recursion is counted once."""
    chains = list(_chains(index, index.joined_calls, (file, line), ()))
    maker = _LinePaths(index, locate)
    return LinePaths(
        line=Place(**place_fields(_line(index, chains[0][1]), locate)) if chains else None,
        step_words=index.scales.step_words,
        callers=maker.callers(chains),
        callees=maker.callees([child for _, node in chains for child in node.children], 0),
    )


def _chains(
    index: ProfileIndex, nodes: Iterable[JoinedNode], wanted: tuple[str, int], above: tuple[JoinedNode, ...]
) -> Iterable[Chain]:
    for node in nodes:
        # The outermost occurrence has the time of those below it.
        if _key(index, node) == wanted:
            yield above, node
        elif len(above) < DEPTH_LIMIT:
            yield from _chains(index, node.children, wanted, (*above, node))


class _LinePaths:
    """Rows for nodes of one profile; what stands at the same line is one row."""

    def __init__(self, index: ProfileIndex, locate: Locate) -> None:
        self._index = index
        self._locate = locate

    def callers(self, chains: Sequence[Chain]) -> list[LinePath]:
        """Who calls what the chains end with."""
        groups: dict[tuple[str, int], list[Chain]] = defaultdict(list)
        for chain in chains:
            if chain[0]:
                groups[_key(self._index, chain[0][-1])].append(chain)
        rows = []
        for members in groups.values():
            ns = sum(node.time_ns for _, node in members)
            further = self.callers([(above[:-1], node) for above, node in members])
            rows.append(self._row(members[0][0][-1], ns, further))
        return _sorted(rows)

    def callees(self, nodes: Sequence[JoinedNode], depth: int) -> list[LinePath]:
        """What is called directly, and what is called below it."""
        if depth > DEPTH_LIMIT:
            return []
        groups: dict[tuple[str, int], list[JoinedNode]] = defaultdict(list)
        for node in nodes:
            groups[_key(self._index, node)].append(node)
        rows = []
        for same in groups.values():
            below = self.callees([child for node in same for child in node.children], depth + 1)
            rows.append(self._row(same[0], sum(node.time_ns for node in same), below))
        return _sorted(rows)

    def _row(self, node: JoinedNode, ns: int, children: list[LinePath]) -> LinePath:
        words = quantities.duration(self._index.scales.per_step(ns))
        place = place_fields(_line(self._index, node), self._locate)
        return LinePath(**place, ns=ns, time_words=words, children=children)


def _line(index: ProfileIndex, node: JoinedNode) -> Line:
    return NO_LINE_PLACE if node.line == NO_LINE else index.profile.lines[node.line]


def _key(index: ProfileIndex, node: JoinedNode) -> tuple[str, int]:
    line = _line(index, node)
    return line.file, line.line


def _sorted(rows: list[LinePath]) -> list[LinePath]:
    return sorted(rows, key=lambda row: (-row.ns, row.file, row.line))

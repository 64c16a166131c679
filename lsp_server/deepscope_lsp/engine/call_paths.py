"""Call paths as an editor shows them: the whole tree, or who calls one line and what it calls."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from deepscope.printable import printable
from deepscope.records import Line
from deepscope.records.lines import NO_LINE
from deepscope.report.call_paths import Depth
from deepscope_lsp.answers import CallPath, CallPaths, FrameKind, LinePath, LinePaths, SourceLocation
from deepscope_lsp.engine.call_tree import JoinedNode, joined_calls, node_name, place_of
from deepscope_lsp.engine.path_map import Locate, PlaceFields, place_fields
from deepscope_lsp.engine.profile_index import ProfileIndex
from deepscope_lsp.engine.wording import quantities

DEPTH_LIMIT = 100
"""Recursion and broken traces may nest deeply; nobody reads so far down."""

Chain = tuple[tuple[JoinedNode, ...], JoinedNode]
"""The nodes above the line that is asked for, outermost first, and the one whose time is counted."""


def call_paths(index: ProfileIndex, locate: Locate, *, min_share: float = 0.001, depth: Depth = "line") -> CallPaths:
    """The call tree down to `depth`, what is the same under one parent joined, the largest total first.

    Nodes with less of the busy time than `min_share` are left out.
    """

    def path(node: JoinedNode, modules: Modules) -> CallPath:
        below = modules_with(index, node.frame, modules)
        return CallPath(
            **frame_fields(index, node.frame, locate, modules),
            self_ns=node.self_ns,
            total_ns=node.total_ns,
            total_cpu_ns=node.total_cpu_ns,
            total_backward_ns=node.total_backward_ns,
            calls=node.calls,
            share=index.scales.share(node.total_ns),
            children=[path(child, below) for child in node.children],
        )

    roots = joined_calls(index.opened_tree(depth), min_share * index.scales.device_ns)
    return CallPaths(metric=index.profile.metric, roots=[path(root, ()) for root in roots])


def line_paths(index: ProfileIndex, locate: Locate, file: str, line: int, *, depth: Depth = "line") -> LinePaths:
    """The chains of calls above a line and the trees below it, down to `depth`; recursion is counted once.

    A line of a library that was recorded has the user's lines, modules and other lines of libraries above it.
    """
    is_library = all((one.file, one.line) != (file, line) for one in index.profile.lines)
    if is_library and depth in {"line", "module"}:
        depth = "library"
    wanted = _frames_at(index, file, line)
    chains = list(_chains(index.joined_calls(depth), wanted, ())) if wanted else []
    maker = _LinePaths(index, locate)
    return LinePaths(
        line=_place(index, chains[0][1].frame, locate) if chains else None,
        step_words=index.scales.step_words,
        callers=maker.callers(chains),
        callees=maker.callees([child for _, node in chains for child in node.children], (), 0),
    )


def _frames_at(index: ProfileIndex, file: str, line: int) -> set[int]:
    """The frames of a line: its records, or its places in libraries."""
    profile = index.profile
    records = {number for number, one in enumerate(profile.lines) if (one.file, one.line) == (file, line)}
    first = len(profile.lines)
    places = enumerate(profile.places, first)
    return records or {
        number for number, one in places if one.kind == "library" and (one.file, one.line) == (file, line)
    }


def _place(index: ProfileIndex, frame: int, locate: Locate) -> SourceLocation:
    fields = frame_fields(index, frame, locate)
    return SourceLocation(**{name: fields[name] for name in SourceLocation.__struct_fields__})  # type: ignore[literal-required]


def _chains(nodes: Iterable[JoinedNode], wanted: set[int], above: tuple[JoinedNode, ...]) -> Iterable[Chain]:
    for node in nodes:
        # The outermost occurrence has the time of those below it.
        if node.frame in wanted:
            yield above, node
        elif len(above) < DEPTH_LIMIT:
            yield from _chains(node.children, wanted, (*above, node))


class _LinePaths:
    """Rows for nodes of one profile; what stands at the same line is one row."""

    def __init__(self, index: ProfileIndex, locate: Locate) -> None:
        self._index = index
        self._locate = locate

    def callers(self, chains: Sequence[Chain]) -> list[LinePath]:
        """Who calls what the chains end with."""
        groups: dict[object, list[Chain]] = defaultdict(list)
        for chain in chains:
            if chain[0]:
                groups[self._key(chain[0][-1])].append(chain)
        rows = []
        for members in groups.values():
            ns = sum(node.time_ns for _, node in members)
            further = self.callers([(above[:-1], node) for above, node in members])
            rows.append(self._row(members[0][0][-1], (), ns, "", further))
        return _sorted(rows)

    def callees(self, nodes: Sequence[JoinedNode], modules: Modules, depth: int) -> list[LinePath]:
        """What is called directly, and what is called below it."""
        if depth > DEPTH_LIMIT:
            return []
        groups: dict[object, list[JoinedNode]] = defaultdict(list)
        for node in nodes:
            groups[self._key(node)].append(node)
        rows = []
        for same in groups.values():
            first, ns = same[0], sum(node.time_ns for node in same)
            inside = modules_with(self._index, first.frame, modules)
            below = self.callees([child for node in same for child in node.children], inside, depth + 1)
            rows.append(self._row(first, modules, ns, self._detail(same), below))
        return _sorted(rows)

    def _detail(self, same: Sequence[JoinedNode]) -> str:
        own_ns = sum(node.self_ns for node in same)
        total_ns = sum(node.total_ns for node in same)
        backward_ns = sum(node.total_backward_ns for node in same)
        return detail_words(self._index, own_ns, total_ns, backward_ns, sum(node.calls for node in same))

    def _row(self, node: JoinedNode, modules: Modules, ns: int, detail: str, children: list[LinePath]) -> LinePath:
        words = quantities.duration(self._index.scales.per_step(ns))
        fields = frame_fields(self._index, node.frame, self._locate, modules)
        return LinePath(**fields, ns=ns, time_words=words, detail_words=detail, children=children)

    def _key(self, node: JoinedNode) -> object:
        line = frame_line(self._index, node.frame)
        return node.frame if line is None else (line.file, line.line)


def _sorted(rows: list[LinePath]) -> list[LinePath]:
    return sorted(rows, key=lambda row: (row.kind == "other", -row.ns, row.file, row.line))


_NO_LINE = Line(file="", line=0, function=NO_LINE, exact=False)

Modules = tuple[str, ...]
"""The paths of the modules above a node, the innermost first."""


class FrameFields(PlaceFields):
    """The fields of `answers.Frame`."""

    kind: FrameKind
    name: str
    whole_name: str


def frame_line(index: ProfileIndex, frame: int) -> Line | None:
    """The line that a node is; None for a part of a line's work."""
    if frame < 0:
        return _NO_LINE
    return index.profile.lines[frame] if frame < len(index.profile.lines) else None


def frame_fields(index: ProfileIndex, frame: int, locate: Locate, modules: Modules = ()) -> FrameFields:
    """A node's name below `modules`, and its place."""
    line = frame_line(index, frame)
    if line is not None:
        name = line.function
        return FrameFields(**place_fields(line, locate), kind="line", name=name, whole_name=name)
    place = place_of(index.profile, frame)
    assert place is not None
    uri, current_line = (locate(place.file, place.line) if place.file and place.line else None) or (None, None)
    return FrameFields(
        function=place.name if place.kind == "library" else "",
        file=place.file,
        line=max(0, place.line),
        uri=uri,
        current_line=current_line,
        kind=place.kind,
        name=node_name(place, modules),
        whole_name=printable(place.name),
    )


def modules_with(index: ProfileIndex, frame: int, modules: Modules) -> Modules:
    """The modules above what is below a node. Those above a line hold nothing of what it calls: paths begin anew."""
    place = place_of(index.profile, frame)
    if place is None:
        return ()
    return (place.name, *modules) if place.kind == "module" else modules


def detail_words(index: ProfileIndex, own_ns: int, total_ns: int, backward_ns: int = 0, calls: int = 0) -> str:
    """What is known of a node besides its total: `own 2 ms, backward 1 ms, 12 calls`; "" where nothing is."""
    per_step = index.scales.per_step
    words = []
    if own_ns:
        words.append("all its own" if own_ns == total_ns else f"own {quantities.duration(per_step(own_ns))}")
    if backward_ns:
        is_all = backward_ns == total_ns
        words.append("all backward" if is_all else f"backward {quantities.duration(per_step(backward_ns))}")
    if calls:
        count = quantities.count(per_step(calls))
        words.append("1 call" if count == "1" else f"{count} calls")
    return ", ".join(words)

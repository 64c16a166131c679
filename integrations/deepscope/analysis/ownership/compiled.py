"""Kernels of torch.compile at the source lines that they were fused from, those of CUDA graphs at the captured ones.

docs/numbers.md defines both (`Compiled kernels`, `CUDA graphs`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from deepscope.analysis.array_ops.selection import Mask, distinct, mask_of, of_kind, sums
from deepscope.analysis.ownership.locations import Location
from deepscope.analysis.ownership.owners import Work
from deepscope.analysis.ownership.paths import PathBuilder
from deepscope.trace.arrays import distinct_places, distinct_values, nearest_to, pick
from deepscope.trace.format.header import Header
from deepscope.trace.format.process_tables import CompiledCode, CompiledKernel
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int32, Int64, Trace

_CALL = re.compile(r"## Call CompiledFxGraph (.*) ##", re.DOTALL)
_KERNEL_EVENT = re.compile(r"graph_\d+_(?=cpp_)")
_OVERLOADED = re.compile(r"torch\.ops\.(\w+)\.(\w+)(?:\.\w+)?")


def graph_calls(trace: Trace) -> dict[int, str]:
    """The names of events (indexes into `Trace.strings`) that are calls of compiled graphs, and the graphs' keys."""
    candidates = distinct(trace.events.name[of_kind(trace, Kind.OPERATOR, Kind.ANNOTATION)], len(trace.strings))
    found = ((name, _CALL.fullmatch(trace.strings[name])) for name in candidates)
    return {name: match[1] for name, match in found if match is not None}


def calls_with_sources(trace: Trace) -> Mask:
    """Which events are calls of graphs that tell their source lines; shape (n,)."""
    known = {graph.key for graph in trace.header.compiled.graphs}
    return _are_calls(trace, [name for name, key in graph_calls(trace).items() if key in known])


def _are_calls(trace: Trace, names: list[int]) -> Mask:
    """Which events are calls of graphs by their names (indexes into the strings); shape (n,)."""
    is_name = mask_of(names, len(trace.strings) + 1)
    return is_name[trace.events.name] & of_kind(trace, Kind.OPERATOR, Kind.ANNOTATION)


@dataclass(frozen=True, slots=True)
class Division:
    """Work divided among lines: one row for each part; arrays of shape (r,)."""

    row: Int64
    """The piece that each part belongs to, ascending; a piece's largest part comes first."""
    duration_ns: Int64
    location: Int64
    path: Int64
    fused: Int64
    """The kernel that the part belongs to, a number that stands for the lines that it was fused from; -1 for work that
    has no source lines of its own."""


@dataclass(frozen=True, slots=True)
class _Source:
    """Where a part of a kernel comes from."""

    lines: tuple[int, ...]
    """Locations of the user's lines within the graph, outermost first; none where the graph has no line of the user's
    there, so that the part stays at the line of the call."""
    nodes: int


@dataclass(frozen=True, slots=True)
class FusedKernels:
    """The work of compiled graphs, and what it was fused from."""

    locations: list[Location]
    """All locations of the trace, those that only compiled code names after the others."""
    known: int
    """How many the others are."""
    captured: Mask
    """Which pieces are of a CUDA graph's replay, and have the lines of its capture; shape (w,)."""
    backward: Mask
    """Which pieces are of a CUDA graph's replay, and annotated as a region's backward pass; shape (w,)."""
    without_sources: Mask
    """Which pieces of work run within a call of a compiled graph that tells no source lines; shape (w,)."""
    kernel: Int64
    """Index into `sources`, -1 for none; shape (w,)."""
    sources: list[list[_Source]]
    """Of each kernel, the most nodes first."""

    def locations_of(self, whole: Int64) -> list[Location]:
        """The locations; those that only compiled code names are exact if they have work that is theirs alone.

        Args:
            whole: locations of work that is not shared.
        """
        alone = set(distinct_values(whole).tolist())
        known = self.locations[: self.known]
        return known + [
            replace(one, exact=i in alone, fused=i not in alone)
            for i, one in enumerate(self.locations[self.known :], self.known)
        ]

    def divide(self, work: Work, location: Int64, path: Int64, paths: PathBuilder) -> Division:
        """Divides work by the nodes that each line has in it.

        Args:
            work: the pieces.
            location: the line that owns the call of each, -1 for none; shape (w,).
            path: the path to that line; shape (w,).
            paths: gets the paths to the source lines.
        """
        if not self.sources:
            return Division(np.arange(len(work)), work.duration_ns, location, path, self.kernel)
        # A collective moves data and computes nothing: it stays whole, with the line that has most of it.
        many = np.array([len(one) for one in self.sources] + [1], np.int64)
        count = np.where(work.collective, np.minimum(many[self.kernel], 1), many[self.kernel])
        row = np.repeat(np.arange(len(work)), count)
        begins = np.cumsum(count) - count
        place = np.arange(len(row)) - begins[row]
        first = np.cumsum(many[:-1]) - many[:-1]
        flat = [source for one in self.sources for source in one]
        source = np.where(self.kernel[row] < 0, -1, pick(first, self.kernel[row]) + place)
        return Division(
            row=row,
            duration_ns=_divided(work.duration_ns, row, begins, _nodes(flat, source, count, row)),
            location=_last_lines(flat, source, location[row]),
            path=_extended(paths, flat, source, path[row]),
            fused=self.kernel[row],
        )


def _nodes(sources: list[_Source], source: Int64, count: Int64, row: Int64) -> Int64:
    nodes = np.array([one.nodes for one in sources] + [1], np.int64)[source]
    return np.where(count[row] == 1, 1, nodes)


def _divided(duration: Int64, row: Int64, begins: Int64, weight: Int64) -> Int64:
    """Integer parts of each duration by weight; what is left goes to a piece's first part. Shape of `row`."""
    whole = sums(row, len(duration), weight)
    whole = whole[row]
    times, rest = np.divmod(duration[row], whole)
    parts: Int64 = times * weight + rest * weight // whole
    left = duration.copy()
    np.subtract.at(left, row, parts)
    parts[begins] += left
    return parts


def _last_lines(sources: list[_Source], source: Int64, called_at: Int64) -> Int64:
    """The line of each part: its source's innermost, else that of the call."""
    last = np.array([one.lines[-1] if one.lines else -1 for one in sources] + [-1], np.int64)[source]
    return np.where(last < 0, called_at, last)


def _extended(paths: PathBuilder, sources: list[_Source], source: Int64, path: Int64) -> Int64:
    """The path of each part: that to the call, and from there through the source's lines."""
    result: Int64 = path.copy()
    inside = np.flatnonzero(source >= 0)
    pairs, inverse = distinct_places(path[inside] * len(sources) + source[inside])
    ends = [paths.through(pair // len(sources), sources[pair % len(sources)].lines) for pair in pairs.tolist()]
    result[inside] = np.array(ends, np.int64)[inverse]
    return result


def find_fused(trace: Trace, parent: Int64, work: Work, locations: list[Location]) -> FusedKernels:
    """Which work the compiled graphs of a trace tell the source of.

    Args:
        trace: any trace.
        parent: the event that encloses each one on its thread, -1 for none; shape (n,).
        work: of the trace.
        locations: the lines that the trace names otherwise.
    """
    keys = graph_calls(trace)
    sources = _Sources(trace.header, locations)
    sources.name(one.place for one in trace.header.compiled.breaks)
    sources.name(one.place for one in trace.header.compiled.recompilations)
    kernel = np.full(len(work), -1, np.int64)
    without_sources = np.zeros(len(work), np.bool_)
    if keys:
        kernel, without_sources = _of_graphs(trace, parent, work, keys, sources)
    lines = _captured(trace, work, sources)
    captured = (kernel < 0) & (lines >= 0)
    kernel[captured] = lines[captured]
    without_sources &= ~captured
    return FusedKernels(
        sources.locations,
        len(locations),
        captured,
        _annotated_backward(trace, work),
        without_sources,
        kernel,
        sources.all,
    )


def _annotated_backward(trace: Trace, work: Work) -> Mask:
    passes = trace.events.region_pass[work.event]
    backward = [one for one in distinct_values(passes[passes >= 0]).tolist() if trace.strings[one] == "backward"]
    return np.asarray(np.isin(passes, backward))


def _of_graphs(trace: Trace, parent: Int64, work: Work, keys: dict[int, str], sources: _Sources) -> tuple[Int64, Mask]:
    """The numbers (in `sources`) of the kernels of compiled graphs, -1 for other work, and which work is of graphs that
    tell nothing; both of shape (w,)."""
    is_below_call = np.append(_are_calls(trace, list(keys)), False)[parent]
    child = nearest_to(work.node, parent, is_below_call)
    rows = np.flatnonzero(child >= 0)
    names = _Names(trace.header, keys)
    kernel = np.full(len(work), -1, np.int64)
    known = {graph.key for graph in trace.header.compiled.graphs}
    has_none = mask_of([name for name, key in keys.items() if key not in known], len(trace.strings) + 1)
    without_sources = np.zeros(len(work), np.bool_)
    without_sources[rows] = has_none[trace.events.name[parent[child[rows]]]]
    if names.kernels and len(rows):
        kernel[rows] = _kernels(trace, parent, work, rows, child[rows], names=names, sources=sources)
    return kernel, without_sources


def _captured(trace: Trace, work: Work, sources: _Sources) -> Int64:
    """The number (in `sources`) of the line that each piece's node was captured at, -1 for none; shape (w,)."""
    captures = [
        (graph.graph << 32 | node, place) for graph in trace.header.compiled.captures for node, place in graph.nodes
    ]
    nodes = trace.events.graph_node[work.event]
    if not captures or not (nodes > 0).any():
        return np.full(len(work), -1, np.int64)
    known, first = np.unique(np.array([node for node, _ in captures], np.int64), return_index=True)
    at = np.minimum(np.searchsorted(known, nodes), len(known) - 1)
    found = np.where((nodes > 0) & (known[at] == nodes), first[at], -1)
    used = {one: captures[one][1] for one in distinct_values(found[found >= 0]).tolist()}
    number = np.full(len(captures) + 1, -1, np.int64)
    for one, place in used.items():
        number[one] = sources.of([CompiledKernel("", [(place, 1)])])
    return np.asarray(number[found])


def _kernels(
    trace: Trace, parent: Int64, work: Work, rows: Int64, child: Int64, *, names: _Names, sources: _Sources
) -> Int64:
    """The number (in `sources`) of the kernel of each piece of `rows`, -1 for none."""
    events = trace.events
    call = parent[child]
    # One name may be called several times in a graph, from other lines each time: the calls come in order.
    group = _groups(trace, events.name[call], events.name[work.event[rows]], events.name[child], names)
    is_launch = events.kind[child] >= Kind.RUNTIME
    unit = np.where(is_launch, len(events) + rows, child)
    begin = np.where(is_launch, work.start_ns[rows], events.start_ns[child])
    known = np.flatnonzero(group >= 0)
    found = np.full(len(rows), -1, np.int64)
    if not len(known):
        return found
    units, first, of_unit = np.unique(unit[known], return_index=True, return_inverse=True)
    at = known[first]
    order = np.lexsort((begin[at], group[at], call[at]))
    run, length = _runs(call[at][order], group[at][order])
    place = np.zeros(len(units), np.int64)
    place[order] = np.arange(len(units)) - run
    times = np.zeros(len(units), np.int64)
    times[order] = length
    entries = np.stack((group[at], np.where(times == names.times[group[at]], place, -1)), axis=1)
    distinct_entries, inverse = np.unique(entries, axis=0, return_inverse=True)
    numbers = [sources.of(names.calls(one, nth)) for one, nth in distinct_entries.tolist()]
    found[known] = np.array(numbers, np.int64)[inverse.reshape(-1)][of_unit.reshape(-1)]
    return found


def _runs(*columns: Int64) -> tuple[Int64, Int64]:
    """Of sorted columns, by row: where its run of equal rows begins, and how long that is."""
    size = len(columns[0])
    change = np.zeros(size, np.bool_)
    change[:1] = True
    for column in columns:
        change[1:] |= column[1:] != column[:-1]
    begins = np.flatnonzero(change)
    lengths = np.diff(np.append(begins, size))
    return np.repeat(begins, lengths), np.repeat(lengths, lengths)


def _groups(trace: Trace, call: Int32, work: Int32, child: Int32, names: _Names) -> Int64:
    """The group of equally named kernels that each piece belongs to, by the names of three events; -1 for none."""
    width = len(trace.strings)
    keys, inverse = np.unique(np.stack((call, work, child), axis=1), axis=0, return_inverse=True)
    found = []
    for graph, own, below in keys.tolist():
        kernel = names.group(graph, trace.strings[own]) if 0 <= own < width else -1
        found.append(kernel if kernel >= 0 else names.group(graph, trace.strings[below]))
    return np.array(found, np.int64)[inverse.reshape(-1)]


def _event_names(kernel: str) -> set[str]:
    """The names that a kernel's events may have: its own, or that of the operator that it calls."""
    if kernel.startswith("extern_kernels."):
        operator = kernel.removeprefix("extern_kernels.")
        return {f"aten::{operator}", f"aten::{operator.removeprefix('bias_')}"}
    overloaded = _OVERLOADED.fullmatch(kernel)
    return {f"{overloaded[1]}::{overloaded[2]}"} if overloaded is not None else {kernel}


class _Names:
    """The kernels of all graphs by the names of their events."""

    def __init__(self, header: Header, keys: dict[int, str]) -> None:
        self.kernels: list[list[CompiledKernel]] = []
        """By group: the calls of one kernel in one graph, in their order."""
        self._groups: dict[tuple[str, str], int] = {}
        self._keys = keys
        for graph in header.compiled.graphs:
            for kernel in graph.kernels:
                for name in _event_names(kernel.name) if kernel is not None else ():
                    group = self._groups.setdefault((graph.key, name), len(self.kernels))
                    if group == len(self.kernels):
                        self.kernels.append([])
                    if kernel is not None:
                        self.kernels[group].append(kernel)
        self.times = np.array([len(calls) for calls in self.kernels], np.int64)

    def group(self, call: int, event: str) -> int:
        """The group of an event's name in the graph of a call (by its name); -1 for none."""
        return self._groups.get((self._keys[call], _KERNEL_EVENT.sub("", event, count=1)), -1)

    def calls(self, group: int, nth: int) -> list[CompiledKernel]:
        """The nth call of a kernel; all of them with -1, where they cannot be told from each other."""
        return self.kernels[group] if nth < 0 else self.kernels[group][nth : nth + 1]


class _Sources:
    """Numbers the different sources of kernels, and the locations that they name."""

    def __init__(self, header: Header, locations: list[Location]) -> None:
        self.all: list[list[_Source]] = []
        self.locations = list(locations)
        self._code: CompiledCode = header.compiled
        self._header = header
        self._index = {(one.file, one.line): i for i, one in enumerate(locations)}
        self._known: dict[tuple[tuple[tuple[int, ...], int], ...], int] = {}
        self._lines: dict[int, tuple[int, ...]] = {}

    def of(self, calls: list[CompiledKernel]) -> int:
        """The number of the sources of a kernel's calls together; -1 where no source has a line of the user's."""
        nodes: dict[tuple[int, ...], int] = {}
        for kernel in calls:
            for place, number in kernel.sources:
                lines = self._users_lines(place)
                nodes[lines] = nodes.get(lines, 0) + number
        if not any(nodes):
            return -1
        ordered = tuple(sorted(nodes.items(), key=lambda one: -one[1]))
        found = self._known.setdefault(ordered, len(self.all))
        if found == len(self.all):
            self.all.append([_Source(lines, number) for lines, number in ordered])
        return found

    def name(self, places: Iterable[int]) -> None:
        """Have a location for the user's line of each of these places."""
        for place in places:
            self._users_lines(place)

    def _users_lines(self, place: int) -> tuple[int, ...]:
        """The user's lines of the stack that ends at a place (locations), outermost first."""
        found = self._lines.get(place)
        if found is None:
            found = self._lines[place] = self._climbed(place)
        return found

    def _climbed(self, place: int) -> tuple[int, ...]:
        lines: list[int] = []
        places = self._code.places
        while 0 <= place < len(places):
            row = places[place]
            path = self._header.path_of(row.file) if row is not None else ""
            if row is not None and path and not row.library:
                lines.append(self._location(Location(path, row.line, row.function, row.first_line)))
            # A caller stands before what it calls; anything else is no stack.
            place = row.caller if row is not None and row.caller < place else -1
        return tuple(reversed(lines))

    def _location(self, place: Location) -> int:
        key = (place.file, place.line)
        index = self._index.setdefault(key, len(self.locations))
        if index == len(self.locations):
            self.locations.append(place)
        return index

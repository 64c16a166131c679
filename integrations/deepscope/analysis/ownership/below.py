"""What stands between a line and its work: modules, the lines of libraries, operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from deepscope.analysis.array_ops.selection import Mask, distinct, of_kind
from deepscope.analysis.ownership.attribution import Attribution
from deepscope.analysis.ownership.compiled import calls_with_sources
from deepscope.analysis.ownership.locations import Owner, frame_of, owner_of_file
from deepscope.analysis.ownership.modules import ModuleScopes
from deepscope.records import PartKey
from deepscope.trace.arrays import distinct_values, nearest, nearest_to, pick, position_in
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int32, Int64, Scope
from deepscope.trace.names import evaluated_node, stepped_optimizer


class NumberedParts:
    """Places, each kept once, by number."""

    def __init__(self) -> None:
        self.all: list[PartKey] = []
        self._index: dict[PartKey, int] = {}

    def add(self, place: PartKey) -> int:
        """The number of a place."""
        number = self._index.setdefault(place, len(self.all))
        if number == len(self.all):
            self.all.append(place)
        return number

    def alike(self) -> Int64:
        """Of each place the first that is alike: a module whose path differs in numbers alone; shape (places,)."""
        first: dict[PartKey, int] = {}
        return np.array([first.setdefault(place.alike, i) for i, place in enumerate(self.all)], np.int64)

    def table(self, known: Mapping[int, PartKey | None], size: int) -> Int64:
        """The number of each value's place, -1 for none and for the value -1; shape (size + 1,)."""
        table = np.full(size + 1, -1, np.int64)
        for value, place in known.items():
            if place is not None:
                table[value] = self.add(place)
        return table


@dataclass(frozen=True, slots=True)
class Below:
    """The calls between lines and work, as a forest whose roots were called by a line (or by nothing)."""

    nodes: Int64
    """The events, ascending; shape (m,)."""
    caller: Int64
    """Position in `nodes` of what called each one, -1 at the top; shape (m,)."""
    place: Int64
    """A number of `NumberedParts`; shape (m,)."""
    of_work: Int64
    """Position in `nodes` of the innermost call around each piece of work, -1 for none; shape (w,)."""


def find_below(attribution: Attribution, modules: ModuleScopes, counted: Mask, places: NumberedParts) -> Below:
    """What stands between the counted work and the lines that own it.

    The way leads from the call that launched a piece of work to the line that owns it, for backward work by its forward
    operator. An operator within one of the same name, and autograd's node within the engine's span around it, are one.
    The way of a compiled kernel ends at the call of its graph: what it was fused from stands above that. A replayed
    kernel has no way at all: what is around the replay is not below the line that it was captured at.

    Args:
        attribution: of the trace.
        modules: of the trace.
        counted: which pieces of work are asked for; shape (w,).
        places: gets the places.
    """
    place = _places(attribution, modules, places)
    marks = attribution.scopes.marks
    by_stacks = attribution.scopes.source == "call_stack"
    shown = place >= 0
    ends = shown if by_stacks else shown | marks
    up = _towards_owners(attribution)
    is_graph = calls_with_sources(attribution.trace)

    def above(events: Int64) -> Int64:
        """The call around each one, -1 where a line is; shape of `events`."""
        found = nearest_to(events, up, ends)
        return np.where((found >= 0) & shown[found], found, -1)

    def callers(events: Int64) -> Int64:
        found = above(pick(up, events))
        found = np.where((found >= 0) & is_graph[found], -1, found)
        if not by_stacks:
            return found
        # Operators have their lines themselves: a call from another line is not below this one.
        path = attribution.owners.path
        return np.where((found >= 0) & (path[found] == path[events]), found, -1)

    of_work = above(np.where(counted, attribution.work.node, -1))
    of_work[(of_work >= 0) & is_graph[of_work] & (attribution.work.fused >= 0)] = -1
    of_work[attribution.work.captured] = -1
    nodes, caller = _closure(of_work, callers, len(place))
    known = Below(nodes, position_in(nodes, caller, len(place)), place[nodes], position_in(nodes, of_work, len(place)))
    is_operator = np.array([one.kind == "operator" for one in places.all], np.bool_)
    return _joined(_without_cycles(known), is_operator)


def _places(attribution: Attribution, modules: ModuleScopes, places: NumberedParts) -> Int64:
    """The place that each event stands for, -1 for none and for lines of the user's; shape (n,)."""
    trace = attribution.trace
    events, strings, scopes = trace.events, trace.strings, trace.scopes
    marks = attribution.scopes.marks
    result = np.full(len(events), -1, np.int64)

    def give(rows: Mask, column: Int32, judge: Callable[[int], PartKey | None], size: int) -> None:
        values = distinct(column[rows], size)
        table = places.table({value: judge(value) for value in values}, size)
        result[rows] = table[column[rows]]

    give(
        of_kind(trace, Kind.OPERATOR),
        events.name,
        lambda s: PartKey("operator", evaluated_node(strings[s])),
        len(strings),
    )
    give(of_kind(trace, Kind.ANNOTATION), events.name, lambda s: _optimizer(strings[s]), len(strings))
    # Where a frame of a library is a line itself, no user's is around it.
    give(of_kind(trace, Kind.PYTHON_FUNCTION) & ~marks, events.name, lambda s: _frame(strings[s]), len(strings))
    give(of_kind(trace, Kind.MODULE_SCOPE), events.scope, lambda s: _module(scopes[s]), len(scopes))
    give(trace.library_lines, events.scope, lambda s: library_line(scopes[s]), len(scopes))
    nodes = modules.nodes[events.kind[modules.nodes] == Kind.PYTHON_FUNCTION]
    if len(nodes):
        numbers = np.array([places.add(PartKey("module", path)) for path, _ in modules.names], np.int64)
        result[nodes] = numbers[modules.module[position_in(modules.nodes, nodes, len(events))]]
    return result


def _optimizer(name: str) -> PartKey | None:
    step = stepped_optimizer(name)
    return PartKey("library", step) if step else None


def _frame(name: str) -> PartKey | None:
    frame = frame_of(name)
    if frame is None or owner_of_file(frame.path) is not Owner.LIBRARY:
        return None
    return PartKey("library", frame.function, frame.path, frame.line)


def _module(scope: Scope) -> PartKey:
    return PartKey("module", scope.path or scope.name, scope.file, scope.line if scope.file else 0)


def library_line(scope: Scope) -> PartKey:
    """The place of a recorded line of a library."""
    return PartKey("library", scope.name, scope.file, scope.line)


def _towards_owners(attribution: Attribution) -> Int64:
    """The way up from each event to the line that owns it, -1 at the top; shape (n,).

    It is `CallForest.up`, but where a forward operator leads to no line, to where `backward()` was called.
    """
    calls, marks = attribution.calls, attribution.scopes.marks
    roots = np.flatnonzero(calls.root == np.arange(len(calls.root)))
    if not len(roots) or not marks.any():
        return calls.up
    lost = roots[nearest_to(roots, calls.up, marks) < 0]
    up: Int64 = calls.up.copy()
    up[lost] = calls.caller[lost]
    return up


def _closure(start: Int64, callers: Callable[[Int64], Int64], among: int) -> tuple[Int64, Int64]:
    """All events on the ways from `start` (-1: from nowhere), and the caller of each, -1 for none; both of shape (m,).

    Events are numbers below `among`.
    """
    caller = np.full(among, -1, np.int64)
    seen = np.zeros(among, np.bool_)
    level = distinct_values(start[start >= 0])
    while len(level):
        seen[level] = True
        found = caller[level] = callers(level)
        level = distinct_values(found[found >= 0])
        level = level[~seen[level]]
    nodes = np.flatnonzero(seen)
    return nodes, caller[nodes]


def _without_cycles(below: Below) -> Below:
    """Calls that lie in each other, which only a broken trace has, were called by nothing."""
    endless = nearest(below.caller, below.caller < 0) < 0
    return replace(below, caller=np.where(endless, -1, below.caller)) if endless.any() else below


def _joined(below: Below, is_operator: Mask) -> Below:
    """Operators below one of the same place are one with it. `is_operator` says of each place whether it is one's."""
    caller, place = below.caller, below.place
    same = (caller >= 0) & is_operator[place] & (pick(place, caller) == place)
    if not same.any():
        return below
    kept = np.flatnonzero(~same)
    stands_for = nearest(caller, ~same)

    def moved(positions: Int64) -> Int64:
        return position_in(kept, pick(stands_for, positions), len(same))

    return Below(below.nodes[kept], moved(caller[kept]), place[kept], moved(below.of_work))

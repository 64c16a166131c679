"""The line that owns each event: the innermost one at or above it; of backward work, its forward line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from deepscope.analysis.array_ops.selection import Mask, named, of_kind
from deepscope.analysis.ownership.calls import CallForest
from deepscope.analysis.ownership.locations import Scopes
from deepscope.analysis.ownership.paths import PathBuilder
from deepscope.trace.arrays import distinct_places, nearest, pick, position_in, self_values
from deepscope.trace.communication import is_collective
from deepscope.trace.joins.correlation import launches
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64, Trace


@dataclass(frozen=True, slots=True)
class Owners:
    """Whose each event is ("The line that owns an event" in docs/numbers.md); arrays of shape (n,)."""

    open_scope: Int64
    """The innermost event at or above it *on its thread* that stands for a line, -1 for none."""
    location: Int64
    """The line that owns it, an index into `Scopes.locations`; -1 for none."""
    path: Int64
    """The call path to that line, the caller of `backward()` not yet joined; 0 where there is no line."""


@dataclass(frozen=True, slots=True)
class LineRuns:
    """The events that stand for lines, as they call each other on their own threads; arrays of shape (k,)."""

    nodes: Int64
    """The events, ascending."""
    location: Int64
    """The line, an index into `Scopes.locations`."""
    caller: Int64
    """Position in `nodes` of the run that each was called from, -1 for none."""
    path: Int64
    """The call path that its callers make."""
    library: Int64
    """Runs of library lines (events) within those of lines on their own threads, ascending; shape (m,)."""
    library_caller: Int64
    """Position in `nodes` of the innermost run around each of `library`; shape (m,)."""


def find_owners(trace: Trace, scopes: Scopes, calls: CallForest, paths: PathBuilder) -> Owners:
    """The owner of every event; the paths to their lines are added to `paths`."""
    marks = scopes.marks
    open_scope = nearest(calls.parent, marks)
    owner = _owning_scope(calls, marks) if calls.bridged else open_scope
    nodes = np.flatnonzero(marks)
    if scopes.source == "call_stack":
        table = np.zeros(len(trace.strings) + 1, np.int64)
        for string, stack in scopes.stacks.items():
            table[string] = paths.of(stack)
        found = table[trace.events.call_stack[nodes]]
    else:
        callers = position_in(nodes, pick(owner, calls.up[nodes]), len(owner))
        found = paths.of_forest(callers, scopes.location[nodes])
    at_scope = np.zeros(len(owner) + 1, np.int64)
    at_scope[nodes] = found
    return Owners(open_scope, pick(scopes.location, owner), at_scope[owner])


def _owning_scope(calls: CallForest, marks: Mask) -> Int64:
    """The event that stands for the owning line of each event; shape (n,).

    Backward work without a forward, or whose forward ran on no line, goes to the line that called `backward()`.
    """
    owner = nearest(calls.up, marks)
    lost = np.flatnonzero((owner < 0) & calls.backward)
    while len(lost):
        found = pick(owner, calls.caller[calls.root[lost]])
        owner[lost] = found
        rest = lost[found < 0]
        lost = rest if len(rest) < len(lost) else rest[:0]
    return owner


def find_runs(scopes: Scopes, calls: CallForest, owners: Owners, paths: PathBuilder) -> LineRuns:
    """All runs of lines; their paths on their own threads are added to `paths`."""
    nodes = np.flatnonzero(scopes.marks)
    location = scopes.location[nodes]
    caller = position_in(nodes, pick(owners.open_scope, calls.parent[nodes]), len(owners.location))
    by_thread = calls.bridged and scopes.source != "call_stack"
    path = paths.of_forest(caller, location) if by_thread else owners.path[nodes]
    library = calls.nested.library
    library_caller = position_in(nodes, owners.open_scope[library], len(owners.location))
    within = library_caller >= 0
    return LineRuns(nodes, location, caller, path, library[within], library_caller[within])


_DEEPEST = 8
"""Backward passes within each other are followed so deep."""


def joined_paths(paths: PathBuilder, calls: CallForest, path: Int64, node: Int64) -> Int64:
    """Call paths of some events; what ran below autograd's engine is joined with each `backward()` call around it.

    Further calls lie above the caller (checkpointing), and above the forward where that was backward work itself
    (double backward).

    Args:
        paths: gets the joined paths.
        calls: of the trace.
        path: `Owners.path`.
        node: the events, -1 for none; shape (w,).

    Returns:
        Shape (w,); 0 where there is no line.
    """

    def join(result: Int64, root: Int64, deepest: int) -> Int64:
        """Joins paths with those of the calls above the engine's spans `root`, -1 for none; both of shape (w,)."""
        if not deepest or not (root >= 0).any():
            return result
        caller = pick(calls.caller, root)
        width = len(paths)
        pairs, inverse = distinct_places(result * width + np.where(caller < 0, 0, path[caller]))
        joined = [paths.join(pair // width, pair % width) for pair in pairs.tolist()]
        above_caller, above_forward = pick(calls.root, caller), pick(calls.root, pick(calls.up, root))
        result = join(np.array(joined, np.int64)[inverse], above_caller, deepest - 1)
        return join(result, above_forward, deepest - 1)

    own = np.where(node < 0, 0, path[node])
    # What no line owns has no path either, though a further call of `backward()` around it may have one.
    return np.where(own > 0, join(own, pick(calls.root, node), _DEEPEST), 0)


@dataclass(frozen=True, slots=True)
class Operators:
    """The operators of a trace; arrays of shape (k,) but for `around`."""

    nodes: Int64
    """Their events, ascending."""
    caller: Int64
    """Position in `nodes` of the operator that each was called from, -1 for none."""
    self_ns: Int64
    """Time in each less the operators called from it."""
    around: Int64
    """By event, the position in `nodes` of the innermost operator at or above it, -1 for none; shape (n,)."""


def find_operators(trace: Trace, parent: Int64) -> Operators:
    """All operators; `parent` is the event that encloses each one on its thread, -1 for none, shape (n,)."""
    is_operator = of_kind(trace, Kind.OPERATOR)
    nodes = np.flatnonzero(is_operator)
    around = position_in(nodes, nearest(parent, is_operator), len(parent))
    caller = pick(around, parent[nodes])
    return Operators(nodes, caller, self_values(trace.events.duration_ns[nodes], caller), around)


DEVICE_KINDS = (Kind.KERNEL, Kind.MEMCPY, Kind.MEMSET)


@dataclass(frozen=True, slots=True)
class Work:
    """Pieces of work to attribute, one row each; every array has shape (w,)."""

    metric: Literal["device", "cpu_self"]
    event: Int64
    """Index of the event."""
    node: Int64
    """Index of the CPU event that launched it (with `cpu_self` the operator itself), -1 where that is not known."""
    start_ns: Int64
    end_ns: Int64
    duration_ns: Int64
    """The event's duration; with `cpu_self` the operator's own part of it."""
    launch_ns: Int64
    """When it was launched; its own start where that is unknown."""
    device: Int64
    kind: npt.NDArray[np.uint8]
    collective: Mask

    def __len__(self) -> int:
        return len(self.event)


def find_work(trace: Trace, operators: Operators) -> Work:
    """All work of a trace."""
    event = np.flatnonzero(of_kind(trace, *DEVICE_KINDS))
    return _device_work(trace, event) if len(event) else _cpu_work(trace, operators)


def _device_work(trace: Trace, event: Int64) -> Work:
    events = trace.events
    node = launches(trace)[event]
    start = events.start_ns[event]
    return Work(
        metric="device",
        event=event,
        node=node,
        start_ns=start,
        end_ns=start + events.duration_ns[event],
        duration_ns=events.duration_ns[event],
        launch_ns=np.where(node < 0, start, events.start_ns[node]),
        device=events.device[event].astype(np.int64),
        kind=events.kind[event],
        collective=named(trace, of_kind(trace, Kind.KERNEL), is_collective)[event],
    )


def _cpu_work(trace: Trace, operators: Operators) -> Work:
    events = trace.events
    event = operators.nodes
    start = events.start_ns[event]
    return Work(
        metric="cpu_self",
        event=event,
        node=event,
        start_ns=start,
        end_ns=start + events.duration_ns[event],
        duration_ns=operators.self_ns,
        launch_ns=start,
        device=np.zeros(len(event), np.int64),
        kind=events.kind[event],
        collective=named(trace, of_kind(trace, Kind.OPERATOR), is_collective)[event],
    )

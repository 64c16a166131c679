"""The owner of each piece of work: the innermost line at its launch; of backward work, its forward line."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deepscope.analysis.algebra.ancestry import nearest, pick, position_in
from deepscope.analysis.algebra.intervals import Intervals
from deepscope.analysis.algebra.selection import Mask
from deepscope.analysis.numbers.flops import flops_of_operators
from deepscope.analysis.numbers.steps import Steps, find_steps, find_training_thread, window
from deepscope.analysis.ownership.calls import CallForest, Nested, join_backward, nest
from deepscope.analysis.ownership.locations import Scopes, find_scopes
from deepscope.analysis.ownership.operators import Operators, find_operators
from deepscope.analysis.ownership.paths import PathTable
from deepscope.analysis.ownership.synchronising import find_waits
from deepscope.analysis.ownership.work import Work, find_work
from deepscope.trace.arrays import distinct_places
from deepscope.trace.model import Int64, Trace

__all__ = ["Attribution", "attribute"]


@dataclass(frozen=True, slots=True)
class Attribution:
    """A trace with everything joined. Arrays by event have shape (n,), by piece of work (w,); -1 means none."""

    trace: Trace
    scopes: Scopes
    nested: Nested
    calls: CallForest
    operators: Operators
    flops: Int64
    """By operator (position in `operators.nodes`), each product counted once."""
    open_scope: Int64
    """By event: the innermost event at or above it *on its thread* that stands for a line."""
    training_thread: int
    steps: Steps
    window: Intervals
    work: Work
    busy: dict[int, Intervals]
    """Union of the work over all streams, by device."""
    waits: Int64
    """The events (ascending) in which a CPU thread waits for the device."""
    paths: PathTable
    owner: Int64
    """By event: the event that stands for the line that owns it (`Precedence` in docs/numbers.md)."""
    location: Int64
    """By event: that line, an index into `scopes.locations`."""
    path: Int64
    """By event: the call path to that line, the caller of `backward()` not yet joined; 0 where there is no line."""
    backward: Mask
    """By event: whether it ran below autograd's engine."""
    work_location: Int64
    work_path: Int64
    """By piece of work: its full call path, in `paths`."""
    work_backward: Mask
    work_step: Int64
    """By piece of work: index into `steps`."""

    def full_path(self, node: Int64) -> Int64:
        """The call path of some events, joined with that of `backward()` where they ran below it; shape of `node`."""
        return _joined_paths(self.paths, self.calls, self.path, node)


def attribute(trace: Trace) -> Attribution:
    """Finds the owner of everything in a trace."""
    nested = nest(trace)
    parent = nested.parent
    operators = find_operators(trace, parent)
    work = find_work(trace, operators)
    scopes = find_scopes(trace, parent)
    marks = scopes.marks
    training_thread = find_training_thread(trace, parent, work.node)
    steps = find_steps(trace, training_thread)
    calls = join_backward(trace, nested, marks, training_thread)
    open_scope = nearest(parent, marks)
    owner = _owners(calls, marks) if calls.bridged else open_scope
    paths = PathTable()
    path = _scope_paths(trace, scopes, calls, owner, paths)
    location = pick(scopes.location, owner)
    backward = calls.root >= 0
    work_path = _joined_paths(paths, calls, path, work.node)
    return Attribution(
        trace=trace,
        scopes=scopes,
        nested=nested,
        calls=calls,
        operators=operators,
        flops=flops_of_operators(trace, operators),
        open_scope=open_scope,
        training_thread=training_thread,
        steps=steps,
        window=window(trace, steps),
        work=work,
        busy=work.busy(),
        waits=find_waits(trace, has_device=work.metric == "device"),
        paths=paths,
        owner=owner,
        location=location,
        path=path,
        backward=backward,
        work_location=pick(location, work.node),
        work_path=work_path,
        work_backward=(work.node >= 0) & backward[work.node],
        work_step=steps.of(work.launch_ns),
    )


def _owners(calls: CallForest, marks: Mask) -> Int64:
    """The event that stands for the owning line of each event; shape (n,).

    Backward work whose forward ran on no line goes, like that without a forward, to the line that called `backward()`.
    """
    owner = nearest(calls.up, marks)
    lost = np.flatnonzero((owner < 0) & (calls.root >= 0))
    while len(lost):
        found = pick(owner, calls.caller[calls.root[lost]])
        owner[lost] = found
        rest = lost[found < 0]
        lost = rest if len(rest) < len(lost) else rest[:0]
    return owner


def _scope_paths(trace: Trace, scopes: Scopes, calls: CallForest, owner: Int64, paths: PathTable) -> Int64:
    """The call path of every event, by way of `up`; shape (n,)."""
    nodes = np.flatnonzero(scopes.marks)
    if scopes.source == "call_stack":
        table = np.zeros(len(trace.strings) + 1, np.int64)
        for string, stack in scopes.stacks.items():
            table[string] = paths.of(stack)
        found = table[trace.events.call_stack[nodes]]
    else:
        found = paths.intern_forest(
            position_in(nodes, pick(owner, calls.up[nodes]), len(owner)), scopes.location[nodes]
        )
    at_scope = np.zeros(len(owner) + 1, np.int64)
    at_scope[nodes] = found
    return at_scope[owner]


_DEEPEST = 8
"""Backward passes within backward passes that are followed."""


def _joined_paths(paths: PathTable, calls: CallForest, path: Int64, node: Int64) -> Int64:
    """Call paths of work; what ran below autograd's engine is joined with each `backward()` call around it.

    Further calls lie above the caller (checkpointing), and above the forward where that was backward work itself
    (double backward).
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

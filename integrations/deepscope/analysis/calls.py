"""Who called whom on the CPU: nesting on each thread, and bridges from backward work to its forward and its caller."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from deepscope.analysis.ancestry import nearest, nearest_to, pick
from deepscope.analysis.selection import Mask, named, of_kind
from deepscope.trace.arrays import distinct_values
from deepscope.trace.correlation import backward_partners
from deepscope.trace.model import Int32, Int64, Kind, Trace
from deepscope.trace.names import STEP_PREFIX
from deepscope.trace.nesting import innermost, parents

__all__ = ["CPU_KINDS", "STEP", "CallForest", "join_backward", "nest", "open_at", "step_events"]

STEP = re.compile(re.escape(STEP_PREFIX) + r"(\d+)")
"""The name of a step, with its number."""

CPU_KINDS = (
    Kind.ANNOTATION,
    Kind.PYTHON_FUNCTION,
    Kind.LINE_SCOPE,
    Kind.MODULE_SCOPE,
    Kind.OPERATOR,
    Kind.RUNTIME,
)


@dataclass(frozen=True, slots=True)
class CallForest:
    """Pointers between events, each an index or -1; every array has shape (n,)."""

    parent: Int64
    """The event that encloses this one on its thread."""
    up: Int64
    """The way to the line that owns an event: `parent`, but a `*Backward` node leads to its forward operator, and what
    stands at the top of one of autograd's threads to where `backward()` was called."""
    root: Int64
    """The innermost span of autograd's engine at or above the event: set means backward work."""
    caller: Int64
    """For such spans: what was open where `backward()` was called."""

    @property
    def bridged(self) -> bool:
        """Whether `up` leads anywhere but `parent`."""
        return self.up is not self.parent


def step_events(trace: Trace) -> Mask:
    """Which events are steps, `ProfilerStep#N`; shape (n,)."""
    return named(trace, of_kind(trace, Kind.ANNOTATION), lambda name: STEP.match(name) is not None)


def nest(trace: Trace, kinds: tuple[Kind, ...] = CPU_KINDS) -> Int64:
    """The event that encloses each CPU event on its thread, -1 for none and for events of devices; shape (n,).

    Only events of `kinds` are looked at. Steps enclose nothing: they mark time, nobody calls them; old recorders put
    them on autograd's threads as well. An annotation may end in another scope than it began in
    (`with record_function(…):` begins on its own line); it encloses what starts as long as that scope is open, and what
    comes later lies in whatever is around both.
    """
    events = trace.events
    cpu = np.flatnonzero(of_kind(trace, *kinds) & ~step_events(trace))
    start, end, kind = events.start_ns[cpu], events.end_ns[cpu], events.kind[cpu]
    above = parents(start, end, events.thread[cpu], rank=kind)
    _leave_ended(above, start, end, kind == Kind.ANNOTATION)
    parent = np.full(len(events), -1, np.int64)
    parent[cpu] = pick(cpu, above)
    return parent


def _leave_ended(above: Int64, start: Int64, end: Int64, annotation: Mask) -> None:
    """Lifts events out of annotations that outlive the scope they began in, in place; all of shape (k,)."""
    spans = np.flatnonzero(annotation)
    begun_in = nearest_to(above[spans], above, ~annotation)
    open_until = end.copy()
    open_until[spans] = np.where(begun_in >= 0, end[begun_in], np.iinfo(np.int64).max)
    late = np.flatnonzero((above >= 0) & annotation[above] & (open_until[above] <= start))
    while len(late):
        above[late] = above[above[late]]
        late = late[(above[late] >= 0) & (open_until[above[late]] <= start[late])]


def join_backward(trace: Trace, parent: Int64, scopes: Mask, training_thread: int) -> CallForest:
    """Lays the bridges from backward work.

    Args:
        parent: from `nest`.
        scopes: which events stand for lines of code; shape (n,).
        training_thread: index into `Trace.threads`, -1 for none.
    """
    roots, partners = backward_partners(trace)
    if not len(roots):
        nothing = np.full(len(parent), -1, np.int64)
        return CallForest(parent, parent, nothing, nothing)
    is_root = np.zeros(len(parent), np.bool_)
    is_root[roots] = True
    partner = np.full(len(parent), -1, np.int64)
    partner[roots] = partners

    up = parent.copy()
    caller = np.where(is_root, parent, -1)
    stranded = _stranded(trace, parent, is_root, scopes)
    called_from = _called_from(
        trace, parent, stranded, _calling_threads(trace, stranded, roots, partner, training_thread)
    )
    up[stranded] = called_from
    caller[stranded] = np.where(is_root[stranded], called_from, -1)
    up[partner >= 0] = partner[partner >= 0]
    return CallForest(parent, up, nearest(parent, is_root), caller)


def _stranded(trace: Trace, parent: Int64, is_root: Mask, scopes: Mask) -> Int64:
    """Events at the top of autograd's own threads (indexes): nothing on their thread says where they were called from.

    A span of the engine counts as such also below an annotation; one below a line scope was called from there.
    """
    thread = trace.events.thread
    engine = np.zeros(len(trace.threads), np.bool_)
    engine[thread[is_root & (parent < 0)]] = True
    home = np.zeros(len(trace.threads), np.bool_)
    home[thread[scopes & (parent < 0)]] = True
    top = (parent < 0) & of_kind(trace, *CPU_KINDS) & ~scopes
    return np.flatnonzero(top & engine[thread] & (is_root | ~home[thread]))


def _called_from(trace: Trace, parent: Int64, stranded: Int64, threads: Int64) -> Int64:
    """What is open on another thread when each event starts, -1 for none; shape (k,)."""
    found = open_at(trace, parent, trace.events.start_ns[stranded], threads)
    return np.where(threads == trace.events.thread[stranded], -1, found)


def _calling_threads(trace: Trace, stranded: Int64, roots: Int64, partner: Int64, training_thread: int) -> Int64:
    """The thread where `backward()` runs, for each stranded event: that of its forward operator, by the recorded thread
    number or by its own; else the training thread; shape (k,)."""
    thread = trace.events.thread
    result = np.full(len(stranded), training_thread, np.int64)
    number = trace.events.fwd_thread[roots]
    known = partner[roots] >= 0
    for value in distinct_values(number[known & (number >= 0)]).tolist():
        forward = thread[partner[roots[known & (number == value)]]]
        result[trace.events.fwd_thread[stranded] == value] = np.bincount(forward).argmax()
    own = partner[stranded]
    result = np.where(own >= 0, thread[own], result)
    # A forward that itself ran in the engine (double backward) does not say where this backward was called.
    return np.where(np.isin(result, distinct_values(thread[stranded])), training_thread, result)


def open_at(trace: Trace, parent: Int64, ts: Int64, thread: Int64 | Int32) -> Int64:
    """The innermost CPU event open on a thread at each instant, -1 for none; shape (q,).

    Steps and annotations enclose what `nest` says; `parent` is what it found for all kinds.
    """
    events = trace.events
    there = np.zeros(len(trace.threads) + 1, np.bool_)
    there[thread] = True
    cpu = np.flatnonzero(of_kind(trace, *CPU_KINDS) & ~step_events(trace) & there[events.thread])
    start, end = events.start_ns[cpu], events.end_ns[cpu]
    found = pick(cpu, innermost(ts, thread, start, end, events.thread[cpu], rank=events.kind[cpu]))
    solid = events.kind != Kind.ANNOTATION
    while True:
        begun_in = nearest_to(found, parent, solid)
        ended = (begun_in >= 0) & (events.end_ns[begun_in] <= ts)
        if not ended.any():
            return found
        found[ended] = parent[begun_in[ended]]

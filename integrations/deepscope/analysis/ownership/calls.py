"""Who called whom on the CPU: nesting on each thread, and bridges from backward work to its forward and its caller."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from deepscope.analysis.array_ops.selection import Mask, mask_of, named, of_kind
from deepscope.trace.arrays import distinct_values, nearest, nearest_to, pick
from deepscope.trace.format.span_names import STEP_PREFIX
from deepscope.trace.joins.backward import backward_partners
from deepscope.trace.joins.nesting import Nesting
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int32, Int64, Trace
from deepscope.trace.names import is_forked_function

STEP = re.compile(re.escape(STEP_PREFIX) + r"(\d{1,18})(?!\d)")
"""The name of a step, with its number: one that 64 bits hold."""

CPU_KINDS = (
    Kind.ANNOTATION,
    Kind.PYTHON_FUNCTION,
    Kind.LINE_SCOPE,
    Kind.MODULE_SCOPE,
    Kind.OPERATOR,
    Kind.RUNTIME,
)


@dataclass(frozen=True, slots=True)
class Nested:
    """How CPU events stand within each other; `open_at` finds the one that is open at an instant."""

    parent: Int64
    """The event that encloses each one on its thread, -1 for none and for events of devices; shape (n,)."""
    events: Int64
    """The events that were looked at, ascending, without library lines; shape (k,)."""
    nesting: Nesting
    """The nesting of `events`."""
    library: Int64
    """Runs of library lines (events), ascending; they stand in `parent`, too. Shape (m,)."""
    library_nesting: Nesting | None = None
    """The nesting of `library`; None where there are none."""


@dataclass(frozen=True, slots=True)
class CallForest:
    """Who called whom: pointers between events, each an index or -1; every array has shape (n,)."""

    nested: Nested
    up: Int64
    """The way to the line that owns an event: `parent`, but a `*Backward` node leads to its forward operator, and what
    stands at the top of one of torch's own threads to where `backward()` (or TorchScript's fork) was called."""
    root: Int64
    """The innermost span of autograd's engine at or above the event, which makes it backward work."""
    caller: Int64
    """For spans of the engine: what was open where `backward()` was called."""

    @property
    def parent(self) -> Int64:
        """The event that encloses this one on its thread."""
        return self.nested.parent

    @property
    def bridged(self) -> bool:
        """Whether `up` leads anywhere but `parent`."""
        return self.up is not self.parent

    @property
    def backward(self) -> Mask:
        """Which events ran below autograd's engine."""
        return self.root >= 0


def step_events(trace: Trace) -> Mask:
    """Which events are steps, `ProfilerStep#N`; shape (n,)."""
    return named(trace, of_kind(trace, Kind.ANNOTATION), lambda name: STEP.match(name) is not None)


def nest(trace: Trace, kinds: tuple[Kind, ...] = CPU_KINDS) -> Nested:
    """Which CPU event encloses which.

    Only events of `kinds` count. Steps enclose nothing: they mark time, nobody calls them, and old recorders put them
    on autograd's threads as well. An annotation may outlive the scope that it began in (`with record_function(…):`
    begins on its own line). It encloses what starts while that scope is open; what starts later lies in whatever is
    around both. What a library's line encloses, all else encloses as it would without (`library_lines.py`).
    """
    events = trace.events
    is_library = trace.library_lines
    cpu = np.flatnonzero(of_kind(trace, *kinds) & ~step_events(trace) & ~is_library)
    start, end, kind = events.start_ns[cpu], events.end_ns[cpu], events.kind[cpu]
    thread = events.thread[cpu]
    nesting = Nesting.of(start, end, thread, kind)
    above = _without_ended(nesting.parents_of(start, end, thread), start, end, kind == Kind.ANNOTATION)
    parent = np.full(len(events), -1, np.int64)
    parent[cpu] = pick(cpu, above)
    library = np.flatnonzero(is_library)
    if Kind.LINE_SCOPE not in kinds or not len(library):
        return Nested(parent, cpu, nesting, library[:0])
    start, end, thread = events.start_ns[library], events.end_ns[library], events.thread[library]
    parent = put_in_between(trace, parent, cpu, is_library)
    return Nested(parent, cpu, nesting, library, Nesting.of(start, end, thread, None))


def _without_ended(above: Int64, start: Int64, end: Int64, annotation: Mask) -> Int64:
    """`above`, with events lifted out of annotations that outlive the scope they began in; all of shape (k,)."""
    lifted: Int64 = above.copy()
    spans = np.flatnonzero(annotation)
    begun_in = nearest_to(above[spans], above, ~annotation)
    open_until = end.copy()
    open_until[spans] = np.where(begun_in >= 0, end[begun_in], np.iinfo(np.int64).max)
    late = np.flatnonzero((above >= 0) & annotation[above] & (open_until[above] <= start))
    while len(late):
        lifted[late] = lifted[lifted[late]]
        late = late[(lifted[late] >= 0) & (open_until[lifted[late]] <= start[late])]
    return lifted


def join_backward(trace: Trace, nested: Nested, scopes: Mask, training_thread: int) -> CallForest:
    """Lays the bridges from backward work.

    Args:
        nested: from `nest`, of all kinds.
        scopes: which events stand for lines of code; shape (n,).
        training_thread: index into `Trace.threads`, -1 for none.
    """
    parent = nested.parent
    roots, partners = backward_partners(trace)
    is_forked = (parent < 0) & named(trace, of_kind(trace, Kind.OPERATOR), is_forked_function)
    if not len(roots) and not is_forked.any():
        nothing = np.full(len(parent), -1, np.int64)
        return CallForest(nested, parent, nothing, nothing)
    is_root = mask_of(roots, len(parent))
    partner = np.full(len(parent), -1, np.int64)
    partner[roots] = partners

    up = parent.copy()
    caller = np.where(is_root, parent, -1)
    stranded = _stranded(trace, parent, is_root, is_forked, scopes)
    called_from = _called_from(
        trace, nested, stranded, _calling_threads(trace, stranded, roots, partner, training_thread)
    )
    resumed, resumed_from = _resumed(
        trace,
        nested,
        stranded=stranded,
        forked_from=called_from[is_forked[stranded]],
        scopes=scopes,
        training_thread=training_thread,
    )
    stranded, called_from = np.append(stranded, resumed), np.append(called_from, resumed_from)
    up[stranded] = called_from
    caller[stranded] = np.where(is_root[stranded], called_from, -1)
    up[partner >= 0] = partner[partner >= 0]
    return CallForest(nested, up, nearest(parent, is_root), caller)


def _stranded(trace: Trace, parent: Int64, is_root: Mask, is_forked: Mask, scopes: Mask) -> Int64:
    """Events at the top of torch's own threads (indexes): nothing on their thread says where they were called from.

    These threads are autograd's, and those of the pool on which TorchScript runs forked functions and goes on after a
    wait. A span of the engine is stranded even below an annotation; one below a line scope was called from there.
    """
    thread = trace.events.thread
    engine = mask_of(thread[is_root & (parent < 0)], len(trace.threads))
    engine[thread[is_forked]] = True
    home = mask_of(thread[scopes & (parent < 0)], len(trace.threads))
    top = (parent < 0) & of_kind(trace, *CPU_KINDS) & ~scopes
    return np.flatnonzero(top & engine[thread] & (is_root | ~home[thread]))


def _resumed(
    trace: Trace, nested: Nested, *, stranded: Int64, forked_from: Int64, scopes: Mask, training_thread: int
) -> tuple[Int64, Int64]:
    """Events that TorchScript ran after a wait, on a thread of its pool that no forked function ran on.

    Nothing on that thread says so. It has no line and is not the engine's; its events begin while that run of a line is
    open on the training thread which forked a function. `forked_from` is what was open there at each fork.

    Returns:
        Such events, and what is open on the training thread when each starts; both of shape (k,).
    """
    none = np.zeros(0, np.int64)
    forks = distinct_values(nearest_to(forked_from, nested.parent, scopes))
    forks = forks[forks >= 0]
    if not len(forks):
        return none, none
    thread = trace.events.thread
    known = mask_of(np.concatenate((thread[scopes], thread[stranded], [training_thread])), len(trace.threads))
    top = np.flatnonzero((nested.parent < 0) & of_kind(trace, *CPU_KINDS) & ~scopes & ~known[thread])
    found = open_at(trace, nested, trace.events.start_ns[top], np.full(len(top), training_thread, np.int64))
    goes_on = np.isin(nearest_to(found, nested.parent, scopes), forks)
    return top[goes_on], found[goes_on]


def _called_from(trace: Trace, nested: Nested, stranded: Int64, threads: Int64) -> Int64:
    """What is open on another thread when each event starts, -1 for none; shape (k,)."""
    found = open_at(trace, nested, trace.events.start_ns[stranded], threads)
    return np.where(threads == trace.events.thread[stranded], -1, found)


def _calling_threads(trace: Trace, stranded: Int64, roots: Int64, partner: Int64, training_thread: int) -> Int64:
    """The thread where `backward()` runs, for each stranded event; shape (k,).

    It is the thread of the forward operator, the event's own or one with the same thread number; else the training
    thread.
    """
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


def open_at(trace: Trace, nested: Nested, ts: Int64, thread: Int64 | Int32) -> Int64:
    """The innermost CPU event open on a thread at each instant, -1 for none; shape (q,).

    `nest` says what steps and annotations enclose.
    """
    events = trace.events
    if not len(events):
        return np.full(len(ts), -1, np.int64)
    found = pick(nested.events, nested.nesting.at(ts, thread))
    users = np.ones(len(events), np.bool_)
    users[nested.library] = False
    solid = users & (events.kind != Kind.ANNOTATION)
    while True:
        begun_in = nearest_to(found, nested.parent, solid)
        ended = (begun_in >= 0) & (events.end_ns[begun_in] <= ts)
        if not ended.any():
            return _within_library_lines(nested, found, ts, thread)
        found[ended] = nearest_to(nested.parent[begun_in[ended]], nested.parent, users)


def _within_library_lines(nested: Nested, found: Int64, ts: Int64, thread: Int64 | Int32) -> Int64:
    """The innermost library line open at each instant where it lies in what was `found` without them; shape (q,)."""
    if nested.library_nesting is None:
        return found
    others = np.ones(len(nested.parent), np.bool_)
    others[nested.library] = False
    inner = pick(nested.library, nested.library_nesting.at(ts, thread))
    within = (inner >= 0) & (nearest_to(inner, nested.parent, others) == found)
    return np.where(within, inner, found)


# Runs of library lines, laid between what they call and what called them. Nothing else moves.
#
# A library's line owns nothing. So every way up must pass the same events as in a trace without library lines: these
# are put in where the event above both is the same one.


def put_in_between(trace: Trace, parent: Int64, nested: Int64, library: Mask) -> Int64:
    """The parents of all events, runs of library lines among them; shape (n,).

    Args:
        trace: any trace.
        parent: the event that encloses each one, as if there were no library lines; shape (n,).
        nested: the events that `parent` is about, ascending.
        library: which events are runs of library lines; shape (n,).
    """
    rows = np.union1d(nested, np.flatnonzero(library))
    above = np.full(len(parent), -1, np.int64)
    above[rows] = pick(rows, _parents(trace, rows, library[rows]))
    around = nearest_to(above, above, ~library)
    result: Int64 = np.where(library | (around == parent), above, parent)
    return result


def _parents(trace: Trace, rows: Int64, library: Mask) -> Int64:
    """Parents of some events, as positions: of an annotation and a library's line that overlap in part, neither is the
    other's. `with record_function(…):` begins within its own line, and ends within another run of it.
    """
    events = trace.events
    start, end, kind = events.start_ns[rows], events.end_ns[rows], events.kind[rows]
    above = Nesting.of(start, end, events.thread[rows], kind).parents_of(start, end, events.thread[rows])
    annotation = kind == Kind.ANNOTATION
    for inner, outer in ((annotation, library), (library, annotation)):
        late = np.flatnonzero(inner & (above >= 0))
        while len(late):
            late = late[outer[above[late]] & (end[late] > end[above[late]])]
            above[late] = above[above[late]]
            late = late[above[late] >= 0]
    return above

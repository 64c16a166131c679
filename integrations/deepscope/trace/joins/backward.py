"""From work that autograd's engine runs to the forward operator that made its node."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from deepscope.trace.arrays import distinct_places, distinct_values, first_with
from deepscope.trace.joins.nesting import innermost, open_around
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Events, Flows, Int64, Trace
from deepscope.trace.names import is_backward_node, is_backward_root, is_numbered_early


def backward_partners(trace: Trace) -> tuple[Int64, Int64]:
    """The backward roots, and for each its forward operator or -1; both index events, shape (roots,).

    A root is a span `autograd::engine::evaluate_function`, or in old traces the bare node (`MmBackward`). Its partner
    is an operator on the forward thread that started before it: the one with the largest `Sequence number` not above
    the root's, and of several the latest. (Operators carry the *next* number, so some nodes have none of exactly
    theirs.) A node that took its number before its operators ran (TorchScript's) has the first operator with the number
    after it. Nodes without a number (`AccumulateGrad`), or with one before all that the file has, have no partner.
    """
    events = trace.events
    spans, nodes = _marked(trace)
    roots = distinct_values(np.concatenate((spans, _bare(events, spans, nodes))))
    sequence, fwd_thread = _numbers(events, spans, nodes, roots)
    forward = _forward_operators(events, spans, nodes)
    early = trace.named(roots, is_numbered_early)
    carried = np.where(early & (sequence >= 0), sequence + 1, sequence)
    partner = np.full(len(roots), -1, np.int64)
    threads = forward_threads(trace, roots, carried, fwd_thread, forward)
    for number in distinct_values(fwd_thread[carried >= 0]).tolist():
        among = threads[number] if number > 0 else distinct_values(events.thread[forward]).tolist()
        for is_early, choose in ((False, _latest), (True, _first)):
            rows = np.flatnonzero((fwd_thread == number) & (carried >= 0) & (early == is_early))
            before_ns = events.start_ns[roots[rows]]
            partner[rows] = _nearest(events, forward, among, carried[rows], before_ns, choose=choose)
    return roots, partner


_KINDS = (is_backward_root, is_backward_node)


def _marked(trace: Trace) -> tuple[Int64, Int64]:
    """The engine's spans and the autograd nodes, by name."""
    operators = np.flatnonzero(trace.events.kind == Kind.OPERATOR)
    names, place = distinct_places(trace.events.name[operators])
    words = [trace.strings[name] for name in names.tolist()]
    is_span, is_node = (np.array([is_meant(word) for word in words], np.bool_) for is_meant in _KINDS)
    return operators[is_span[place]], operators[is_node[place]]


def _bare(events: Events, spans: Int64, nodes: Int64) -> Int64:
    """Nodes that are roots themselves: run by the engine, but not within one of its spans."""
    if len(spans):
        # In a cropped file a node may have lost its span. Its numbers prove that the engine ran it.
        nodes = nodes[(events.sequence[nodes] >= 0) & (events.fwd_thread[nodes] > 0)]
        return nodes[open_around(events, nodes, spans) < 0]
    return nodes


def _numbers(events: Events, spans: Int64, nodes: Int64, roots: Int64) -> tuple[Int64, Int64]:
    """Sequence number and forward thread of each root, or of the first node in it where it has none (Ascend)."""
    sequence, fwd_thread = events.sequence.copy(), events.fwd_thread.copy()
    numbered = nodes[events.sequence[nodes] >= 0]
    numbered = numbered[np.argsort(-events.start_ns[numbered], kind="stable")]
    around = open_around(events, numbered, spans)
    span, node = spans[around[around >= 0]], numbered[around >= 0]
    needs = events.sequence[span] < 0
    sequence[span[needs]] = events.sequence[node[needs]]
    fwd_thread[span[needs]] = events.fwd_thread[node[needs]]
    return sequence[roots], fwd_thread[roots]


def _forward_operators(events: Events, spans: Int64, nodes: Int64) -> Int64:
    """Operators that could have made a node, by (thread, sequence, start)."""
    numbered = (events.kind == Kind.OPERATOR) & (events.sequence >= 0)
    numbered[spans] = False
    numbered[nodes] = False
    found = np.flatnonzero(numbered)
    around = open_around(events, found, spans)
    # The name of a node may say nothing. Then it has the span's own number and forward thread.
    span = spans[around] if len(spans) else around
    is_node = (around >= 0) & (events.sequence[found] == events.sequence[span])
    is_node &= (events.fwd_thread[found] > 0) & (events.fwd_thread[found] == events.fwd_thread[span])
    found = found[~is_node]
    # If several start together, the innermost comes last.
    keys = (-events.duration_ns[found], events.start_ns[found], events.sequence[found], events.thread[found])
    result: Int64 = found[np.lexsort(keys)]
    return result


def forward_threads(
    trace: Trace, roots: Int64, carried: Int64, fwd_thread: Int64, forward: Int64
) -> dict[int, list[int]]:
    """`Fwd thread id` → index of the thread, or nothing.

    Ids are logical; the `fwdbwd` arrows map them. An id without arrows gets a thread without an id: the one with most
    of the wanted numbers. 0 stands for many threads at once in Ascend's traces and has no entry.

    Args:
        trace: the trace.
        roots: spans of the engine.
        carried: for each the number that its forward operators carry, -1 for none.
        fwd_thread: for each the number of its forward thread.
        forward: the forward operators.
    """
    tail, voter = _votes(trace, roots, fwd_thread)[::-1]
    numbers = distinct_values(fwd_thread[(carried >= 0) & (fwd_thread > 0)]).tolist()
    result = {number: [int(np.bincount(tail[voter == number]).argmax())] for number in distinct_values(voter).tolist()}
    free = forward[
        ~np.isin(trace.events.thread[forward], [thread for threads in result.values() for thread in threads])
    ]
    for number in numbers:
        if number in result:
            continue
        wanted = np.isin(trace.events.sequence[free], carried[fwd_thread == number])
        threads = trace.events.thread[free[wanted]] if wanted.any() else trace.events.thread[free]
        result[number] = [int(np.bincount(threads).argmax())] if len(threads) else []
    return result


def _votes(trace: Trace, roots: Int64, fwd_thread: Int64) -> tuple[Int64, Int64]:
    """For each arrow: the logical number that the root at its head has, and the thread at its tail."""
    events, flows = trace.events, trace.flows
    tails, heads = arrow_ends(flows)
    root = innermost(
        flows.ts_ns[heads], flows.thread[heads], events.start_ns[roots], events.end_ns[roots], events.thread[roots]
    )
    hit = root >= 0
    return fwd_thread[root[hit]], flows.thread[tails[hit]].astype(np.int64)


def _nearest(
    events: Events, forward: Int64, threads: list[int], sequence: Int64, before_ns: Int64, *, choose: _Choose
) -> Int64:
    """The partners on any of several threads: a candidate with the exact number, else the one that started last."""
    best = np.full(len(sequence), -1, np.int64)
    for thread in threads if len(sequence) else ():
        found = choose(events, forward[events.thread[forward] == thread], sequence, before_ns)
        is_exact, was_exact = events.sequence[found] == sequence, events.sequence[best] == sequence
        later = events.start_ns[found] > events.start_ns[best]
        better = (found >= 0) & ((best < 0) | (is_exact & ~was_exact) | ((is_exact == was_exact) & later))
        best = np.where(better, found, best)
    return best


_Choose = Callable[[Events, Int64, Int64, Int64], Int64]
"""Chooses one candidate for each number and instant, -1 for none. Candidates are sorted by (sequence, start)."""


def _first(events: Events, candidates: Int64, sequence: Int64, before_ns: Int64) -> Int64:
    """The first candidate with each number, if it started before each instant."""
    if not len(candidates):
        return np.full(len(sequence), -1, np.int64)
    numbers, starts = events.sequence[candidates], events.start_ns[candidates]
    first = np.minimum(np.searchsorted(numbers, sequence, "left"), len(candidates) - 1)
    return np.where((numbers[first] == sequence) & (starts[first] < before_ns), candidates[first], -1)


def _latest(events: Events, candidates: Int64, sequence: Int64, before_ns: Int64) -> Int64:
    """The last candidate that is not above each number and started before each instant."""
    if not len(candidates):
        return np.full(len(sequence), -1, np.int64)
    numbers, starts = events.sequence[candidates], events.start_ns[candidates]
    last = np.searchsorted(numbers, sequence, "right") - 1
    late = np.flatnonzero((last >= 0) & (starts[np.maximum(last, 0)] >= before_ns))
    for row in late.tolist():
        earlier = np.flatnonzero(starts[: last[row] + 1] < before_ns[row])
        last[row] = earlier[-1] if len(earlier) else -1
    return np.where(last >= 0, candidates[np.maximum(last, 0)], -1)


def arrow_ends(arrows: Flows) -> tuple[Int64, Int64]:
    """Tail and head of each arrow that has both (rows of `arrows`); several heads may have one tail."""
    tails, heads = np.flatnonzero(arrows.is_start), np.flatnonzero(~arrows.is_start)
    at = first_with(arrows.id[tails], arrows.id[heads])
    return tails[at[at >= 0]], heads[at >= 0]

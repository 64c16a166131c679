"""DS010: attention written out as two batched products with a softmax between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from deepscope.analysis.array_ops.selection import Mask, by_line
from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.library_options import module_around, module_option
from deepscope.analysis.findings.rule import Rule
from deepscope.records import Finding
from deepscope.trace.arrays import distinct_places, nearest, nearest_to, pick
from deepscope.trace.model import Int64

_BATCHED = ("aten::bmm", "aten::baddbmm")
_PRODUCTS = (*_BATCHED, "aten::mm", "aten::addmm", "aten::convolution")
_FUSED = (
    "aten::scaled_dot_product_attention",
    "aten::_scaled_dot_product_attention_math",
    "aten::_native_multi_head_attention",
    "aten::_transformer_encoder_layer_fwd",
)
"""What runs within these is torch's own choice: it is called for attention already."""


@dataclass(frozen=True, slots=True)
class _Attention:
    """Attention written out; arrays of shape (a,)."""

    softmax: Int64
    """Events."""
    scores: Int64
    """The product before it."""
    values: Int64
    """The product after it."""


def _find(facts: Facts) -> Iterator[Finding]:
    found = _written_out(facts)
    if not len(found.softmax):
        return
    location = facts.attribution.owners.location[found.softmax]
    passes, which = _passes(facts, found)
    cost = facts.cost_ns(passes)
    backward = facts.attribution.calls.backward[passes]
    spent = np.zeros(len(found.softmax), np.int64)
    np.add.at(spent, which, cost)
    trained = np.zeros(len(found.softmax), np.bool_)
    trained[which[backward]] = True
    # A fused kernel keeps no scores: its backward computes them again.
    order = np.argsort(found.scores)
    again = np.zeros(len(found.scores), np.int64)
    again[order] = facts.cost_ns(found.scores[order])
    passes_by_line, saving = by_line(location, facts.lines, spent), spent - np.where(trained, again, 0)
    saving_by_line = by_line(location, facts.lines, saving)
    count = by_line(location, facts.lines)
    for line in np.flatnonzero(saving_by_line >= RULE.worth_ns(facts)).tolist():
        here = location == (line if line < facts.lines else -1)
        option = module_option(facts, RULE.code, found.scores[here])
        module = module_around(facts, found.scores[here])
        yield RULE.finding(
            facts,
            location=line,
            message="attention is written out: scale, mask, softmax and dropout each pass over all scores"
            + (f" (module {module})" if module else ""),
            evidence={
                "passes_ns": int(passes_by_line[line]),
                **facts.counted("attentions", int(count[line])),
            },
            saving_ns=int(saving_by_line[line]),
            remedy="Call `torch.nn.functional.scaled_dot_product_attention`, which does all of it in one kernel"
            + (f"; here that is {option.option}." if option is not None else "."),
        )


def _written_out(facts: Facts) -> _Attention:
    """Each softmax between two batched products of one module (else one function), no other product between them."""
    calls, events = facts.attribution.calls, facts.trace.events
    around = nearest(calls.parent, facts.marked(facts.operators_named(*_FUSED)))
    products, softmax = _forward(facts, facts.operators_named(*_PRODUCTS)), facts.operators_named("aten::_softmax")
    softmax = _forward(facts, softmax[around[softmax] < 0])
    if not len(softmax) or len(products) < 2:
        none = softmax[:0]
        return _Attention(none, none, none)
    # One axis for all threads: each has a stretch of it to itself.
    thread = events.thread.astype(np.int64)
    order = products[np.lexsort((events.start_ns[products], thread[products]))]
    _, rank = distinct_places(np.concatenate((events.start_ns[order], events.start_ns[softmax])))
    width = int(rank.max()) + 1
    key = thread[order] * width + rank[: len(order)]
    at = np.searchsorted(key, thread[softmax] * width + rank[len(order) :])
    before, after = order[np.maximum(at - 1, 0)], order[np.minimum(at, len(order) - 1)]
    batched = facts.marked(facts.operators_named(*_BATCHED))
    whole = (at > 0) & (at < len(order)) & batched[before] & batched[after]
    whole &= (thread[before] == thread[softmax]) & (thread[after] == thread[softmax])
    unit = _units(facts)
    whole &= (unit[before] >= 0) & (unit[before] == unit[after]) & (calls.root[before] < 0)
    return _Attention(softmax[whole], before[whole], after[whole])


def _forward(facts: Facts, operators: Int64) -> Int64:
    return np.asarray(operators[~facts.attribution.calls.backward[operators]])


def _units(facts: Facts) -> Int64:
    """A number for the call of a module around each event, else for the function of its line; -1 for none."""
    modules, scopes = facts.analysis.modules, facts.attribution.scopes
    functions: dict[tuple[str, str], int] = {}
    numbers = [functions.setdefault((one.file, one.function), len(functions)) for one in scopes.locations]
    function = pick(np.array(numbers, np.int64), facts.attribution.owners.location)
    inside = modules.of_event
    return np.where(inside >= 0, inside, np.where(function >= 0, len(modules.nodes) + function, -1))


def _passes(facts: Facts, found: _Attention) -> tuple[Int64, Int64]:
    """The calls that a fused kernel would not make, and the attention that each belongs to; both of shape (p,).

    They are all operators from the beginning of the first product's call to the end of the second's but the products,
    and the autograd nodes of these operators.
    """
    attribution, events = facts.attribution, facts.trace.events
    operators, calls = attribution.operators, attribution.calls
    outer = operators.nodes[_outermost(operators.caller)]
    first, last = (outer[operators.around[product]] for product in (found.scores, found.values))
    of_product = _holding(facts, np.concatenate((found.scores, found.values)))
    order = np.lexsort((events.start_ns[first], events.thread[first]))
    own, which = _within(facts, operators.nodes, first[order], last[order])
    keep = ~of_product[own] & ~calls.backward[own]
    own, which = own[keep], order[which[keep]]
    of_event = np.full(len(events), -1, np.int64)
    of_event[own] = which
    inside = facts.marked(own)
    top = facts.topmost(inside)
    # The way up from a span of the engine is its forward operator.
    roots = np.flatnonzero(calls.root == np.arange(len(events)))
    forward = pick(calls.up, roots)
    roots = roots[(forward >= 0) & inside[forward] & facts.analysis.extent.holds(events.start_ns[roots])]
    chosen = np.sort(np.concatenate((top, facts.topmost(facts.marked(roots)))))
    belongs = np.where(calls.backward[chosen], of_event[pick(calls.up, chosen)], of_event[chosen])
    return chosen, belongs


def _outermost(caller: Int64) -> Int64:
    """The operator (position) that no other called, at or above each one; shape (k,)."""
    return nearest_to(np.arange(len(caller)), caller, caller < 0)


def _holding(facts: Facts, products: Int64) -> Mask:
    """Which events are these operators, lie in one of them or hold one; shape (n,)."""
    parent = facts.attribution.calls.parent
    result = nearest(parent, facts.marked(products)) >= 0
    above = products
    while len(above):
        result[above] = True
        above = parent[above]
        above = above[above >= 0]
    return np.asarray(result)


def _within(facts: Facts, events: Int64, first: Int64, last: Int64) -> tuple[Int64, Int64]:
    """Which of some events start between the start of `first` and the end of `last`, and in which of these stretches.

    Stretches are in the order of their threads, then of time, and do not overlap.
    """
    of = facts.trace.events
    start, end, thread = of.start_ns[first], of.end_ns[last], of.thread[first].astype(np.int64)
    found = np.full(len(events), -1, np.int64)
    for one in np.flatnonzero(np.bincount(thread)).tolist():
        rows = np.flatnonzero(thread == one)
        here = np.flatnonzero(of.thread[events] == one)
        ts = of.start_ns[events[here]]
        at = np.searchsorted(start[rows], ts, side="right") - 1
        inside = (at >= 0) & (ts < end[rows[at]])
        found[here[inside]] = rows[at[inside]]
    return events[found >= 0], found[found >= 0]


RULE = Rule("DS010", "Unfused attention", _find, shortens_work=True, measured_on=("cpu", "device"))

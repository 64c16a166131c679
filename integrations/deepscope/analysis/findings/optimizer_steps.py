"""What optimizers start in their steps, without what a closure runs in them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from deepscope.analysis.array_ops.ancestry import nearest_to
from deepscope.analysis.array_ops.selection import Mask, named, of_kind
from deepscope.analysis.findings.facts import Facts
from deepscope.trace.arrays import pick
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64
from deepscope.trace.names import stepped_optimizer


def operators_of_steps(facts: Facts, is_meant: Callable[[str | None], bool]) -> tuple[Int64, Int64]:
    """The outermost operators that steps of some optimizers start, and the step (an event) of each; both ascending.

    `is_meant` is asked with the class of an optimizer, and with None for other spans.
    """
    trace, attribution = facts.trace, facts.attribution
    operators, events = attribution.operators, trace.events
    steps = named(trace, of_kind(trace, Kind.ANNOTATION), lambda name: is_meant(stepped_optimizer(name)))
    steps &= facts.analysis.extent.holds(events.start_ns)
    outer = operators.nodes[operators.caller < 0]
    above = nearest_to(outer, attribution.calls.parent, steps)
    own = (above >= 0) & (events.start_ns[outer] >= pick(begin_ns(facts, steps), above))
    return outer[own], above[own]


def begin_ns(facts: Facts, steps: Mask) -> Int64:
    """When each of some steps has run its closure, by event; shape (n,).

    An optimizer that is given a closure (Lightning's) runs forward and backward first: lines, modules, the engine.
    """
    attribution, events = facts.attribution, facts.trace.events
    modules = of_kind(facts.trace, Kind.MODULE_SCOPE)
    roots = attribution.calls.root == np.arange(len(events))
    others = np.flatnonzero(attribution.scopes.marks | modules | roots)
    above = nearest_to(pick(attribution.calls.parent, others), attribution.calls.parent, steps)
    result: Int64 = events.start_ns.copy()
    np.maximum.at(result, above[above >= 0], events.end_ns[others[above >= 0]])
    return result

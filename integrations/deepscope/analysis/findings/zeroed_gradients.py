"""DS009: gradients are filled with zeros and added to, where they could be let go of and made anew."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from deepscope.analysis.array_ops.ancestry import nearest_to
from deepscope.analysis.array_ops.selection import by_line, named, of_kind
from deepscope.analysis.findings.calls_below import cost_ns, marked, operators_named
from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.rule import Rule
from deepscope.records import Finding
from deepscope.trace.arrays import distinct_values, pick
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64
from deepscope.trace.names import evaluated_node, zeroes_gradients

WORTH = 0.02
"""A line is named if it would save at least this share of the wall time."""
SMALL_NS = 3_000
"""On the CPU, three of four fills take at most this: larger gradients are dearer to allocate anew than to fill."""


def _find(facts: Facts) -> Iterator[Finding]:
    zeroed, spans = _zeroed(facts)
    if not len(zeroed) or not (facts.has_device or _are_small(facts, zeroed)):
        return
    added = _added(facts)
    zeroing, adding = cost_ns(facts, zeroed), cost_ns(facts, added)
    # With several backward passes before each step all additions but the first would stay.
    passes = max(int(facts.analysis.phases.calls(facts.analysis.extent)[2]), 1)
    adding_ns = int(adding.sum()) * min(spans, passes) // passes
    location = facts.attribution.owners.location[zeroed]
    spent = by_line(location, facts.lines, zeroing)
    whole = max(int(spent.sum()), 1)
    for line in np.flatnonzero(spent).tolist():
        share_ns = adding_ns * int(spent[line]) // whole
        saving = int(spent[line]) + share_ns
        if saving < WORTH * facts.wall_ns:
            continue
        yield RULE.finding(
            facts,
            location=line if line < facts.lines else -1,
            message="gradients are filled with zeros, and each backward pass adds to them",
            evidence={"zeroing_ns": int(spent[line]), "adding_ns": share_ns},
            saving_ns=saving,
            remedy="Call `zero_grad()` as it comes, with `set_to_none=True`: then there is nothing to fill or add to.",
        )


def _are_small(facts: Facts, zeroed: Int64) -> bool:
    """Whether most fills are calls rather than writes to memory."""
    operators = facts.attribution.operators
    fills = operators_named(facts, "aten::zero_")
    outermost = pick(operators.around, fills)
    above = pick(operators.nodes, nearest_to(outermost, operators.caller, operators.caller < 0))
    fills = fills[marked(facts, zeroed)[above]]
    return bool(len(fills)) and float(np.percentile(facts.trace.events.duration_ns[fills], 75)) <= SMALL_NS


def _zeroed(facts: Facts) -> tuple[Int64, int]:
    """The operators that fill gradients with zeros (events, ascending), and in how many calls of `zero_grad`."""
    parent = facts.attribution.calls.parent
    spans = named(facts.trace, of_kind(facts.trace, Kind.ANNOTATION), zeroes_gradients)
    fills = operators_named(facts, "aten::zero_", "aten::_foreach_zero_")
    around = nearest_to(fills, parent, spans)
    within = (around >= 0) & (facts.attribution.operators.caller[facts.attribution.operators.around[fills]] < 0)
    return np.asarray(fills[within]), len(distinct_values(around[within]))


def _added(facts: Facts) -> Int64:
    """The operators that add a gradient to the one that is there (events, ascending)."""
    trace = facts.trace
    gathers = named(
        trace, of_kind(trace, Kind.OPERATOR), lambda name: evaluated_node(name) == "torch::autograd::AccumulateGrad"
    )
    adds = operators_named(facts, "aten::add_")
    above = pick(facts.attribution.calls.parent, adds)
    return np.asarray(adds[(above >= 0) & gathers[above]])


RULE = Rule("DS009", "Gradients zeroed in place", _find, measured_on=("cpu",))

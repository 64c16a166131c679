"""Optimizers whose steps, and the zeros before them, cost more operators than they need (DS009, DS011)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from deepscope.analysis.array_ops.selection import Mask, by_line, named, of_kind
from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.library_options import framework_option
from deepscope.analysis.findings.rule import Rule
from deepscope.records import Finding
from deepscope.trace.arrays import distinct_values, nearest_to, pick
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64
from deepscope.trace.names import ACCUMULATES_GRADIENT, evaluates, stepped_optimizer, zeroes_gradients


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


MANY = 20
"""A step loops if it starts at least so many operators."""
FEWEST = 2
"""Fewer steps do not tell what a step takes."""
CALL_NS = 10_000
"""At most so much of an operator is the call, the rest is arithmetic on its tensors."""
FEW_ROWS = 0.1
"""A table of which a step looks up at most this part is stepped as a whole for nothing, fused or not."""
OF_CALLS = 0.5
"""The part of the calls, and of the Python around them, that a fused step does not make."""
FUSED = {"Adam": 0.6, "AdamW": 0.6, "Adagrad": 0.45, "SGD": 0.2}
"""The optimizers with a fused step on the CPU, and the part of the arithmetic on tensors that it does not do: it goes
through each once (docs/findings/DS011.md)."""


def _find_unfused_optimizer(facts: Facts) -> Iterator[Finding]:
    if facts.has_device or not _has_fused(facts.trace.header.versions.get("torch", "")):
        return
    steps, below, above = _loops(facts)
    events = facts.trace.events
    location = facts.attribution.owners.location[steps]
    arithmetic = np.zeros(len(steps), np.int64)
    np.add.at(arithmetic, above, np.maximum(events.duration_ns[below] - CALL_NS, 0))
    whole = events.end_ns[steps] - begin_ns(facts, facts.marked(steps))[steps]
    calls = np.maximum(whole - arithmetic, 0)
    for line, name in sorted(set(zip(location.tolist(), events.name[steps].tolist(), strict=True))):
        here = (location == line) & (events.name[steps] == name)
        times = int(here.sum())
        optimizer = stepped_optimizer(facts.trace.strings[name])
        dense = 1 - _part_of_tables(facts, optimizer or "")
        of_arithmetic = FUSED.get(optimizer or "", 0.0) * dense * _median(arithmetic[here])
        saving = int(times * (OF_CALLS * _median(calls[here]) + of_arithmetic))
        if times < FEWEST or saving < UNFUSED_OPTIMIZER.worth_ns(facts):
            continue
        count = int(here[above].sum())
        yield UNFUSED_OPTIMIZER.finding(
            facts,
            location=line,
            message=f"`{optimizer}` steps one parameter after the other, with several operators for each",
            evidence={
                "optimizer": optimizer or "",
                "optimizer_ns": times * _median(whole[here]),
                **facts.counted("operators", count),
            },
            saving_ns=saving,
            remedy=f"Make it with `{optimizer}(…, fused=True)` (on the CPU from torch 2.4 on): one call for all."
            + framework_option(facts, UNFUSED_OPTIMIZER.code),
        )


def _part_of_tables(facts: Facts, optimizer: str) -> float:
    """Of the elements that an optimizer steps, those of tables that get sparse gradients (DS040)."""
    if (facts.trace.header.world_size or 1) > 1:
        return 0.0
    mine = [one for one in facts.audit.tables if one.optimizer == optimizer and one.stepped_elements]
    return min(sum(one.elements / one.stepped_elements for one in mine if one.used_rows <= FEW_ROWS * one.rows), 1.0)


def _median(values: Int64) -> int:
    """The lower median: one step that is held up by something else does not count."""
    return int(np.sort(values)[(len(values) - 1) // 2])


def _has_fused(version: str) -> bool:
    """Whether this torch has fused optimizers for the CPU; so it seems where the version is not known."""
    numbers = re.match(r"(\d+)\.(\d+)", version)
    return numbers is None or (int(numbers[1]), int(numbers[2])) >= (2, 4)


def _loops(facts: Facts) -> tuple[Int64, Int64, Int64]:
    """Steps that loop of optimizers with a fused form, what they start, and in which of the steps each of these is.

    The first are events, ascending; the second the outermost operators; the third positions in the first.
    """
    outer, above = operators_of_steps(facts, FUSED.__contains__)
    fused = named(facts.trace, facts.marked(outer), lambda name: "_fused_" in name)[outer]
    loops = np.bincount(above, minlength=len(facts.trace.events)) >= MANY
    loops[above[fused]] = False
    steps, chosen = np.flatnonzero(loops), loops[above]
    return steps, outer[chosen], np.searchsorted(steps, above[chosen])


def fused_saving(facts: Facts, optimizer: str) -> tuple[int, float]:
    """What DS011 promises to save of the steps of an optimizer's class: time, and its share of them."""
    mine = [one for one in UNFUSED_OPTIMIZER.found(facts) if one.evidence["optimizer"] == optimizer]
    whole_ns, saving_ns = sum(int(one.evidence["optimizer_ns"]) for one in mine), sum(one.saving_ns for one in mine)
    return saving_ns, min(saving_ns / whole_ns, 1.0) if whole_ns else 0.0


UNFUSED_OPTIMIZER = Rule(
    "DS011", "Optimizer loops over parameters", _find_unfused_optimizer, measured_on=("cpu",), worth=0.1
)


SMALL_NS = 3_000
"""On the CPU, three of four fills take at most this: larger gradients are costlier to allocate anew than to fill."""


def _find_zeroed_gradients(facts: Facts) -> Iterator[Finding]:
    zeroed, spans = _zeroed(facts)
    if not len(zeroed) or not (facts.has_device or _are_small(facts, zeroed)):
        return
    added = _added(facts)
    zeroing, adding = facts.cost_ns(zeroed), facts.cost_ns(added)
    # With several backward passes before each step all additions but the first would stay.
    passes = max(int(facts.analysis.phases.calls(facts.analysis.extent)[2]), 1)
    adding_ns = int(adding.sum()) * min(spans, passes) // passes
    location = facts.attribution.owners.location[zeroed]
    spent = by_line(location, facts.lines, zeroing)
    whole = max(int(spent.sum()), 1)
    for line in np.flatnonzero(spent).tolist():
        share_ns = adding_ns * int(spent[line]) // whole
        saving = int(spent[line]) + share_ns
        if saving < ZEROED_GRADIENTS.worth_ns(facts):
            continue
        yield ZEROED_GRADIENTS.finding(
            facts,
            location=line,
            message="gradients are filled with zeros, and each backward pass adds to them",
            evidence={"zeroing_ns": int(spent[line]), "adding_ns": share_ns},
            saving_ns=saving,
            remedy="Call `zero_grad()` as it comes, with `set_to_none=True`: then there is nothing to fill or add to.",
        )


def _are_small(facts: Facts, zeroed: Int64) -> bool:
    """Whether most fills are calls rather than writes to memory."""
    operators = facts.attribution.operators
    fills = facts.operators_named("aten::zero_")
    outermost = pick(operators.around, fills)
    above = pick(operators.nodes, nearest_to(outermost, operators.caller, operators.caller < 0))
    fills = fills[facts.marked(zeroed)[above]]
    return bool(len(fills)) and float(np.percentile(facts.trace.events.duration_ns[fills], 75)) <= SMALL_NS


def _zeroed(facts: Facts) -> tuple[Int64, int]:
    """The operators that fill gradients with zeros (events, ascending), and in how many calls of `zero_grad`."""
    parent = facts.attribution.calls.parent
    spans = named(facts.trace, of_kind(facts.trace, Kind.ANNOTATION), zeroes_gradients)
    fills = facts.operators_named("aten::zero_", "aten::_foreach_zero_")
    around = nearest_to(fills, parent, spans)
    within = (around >= 0) & (facts.attribution.operators.caller[facts.attribution.operators.around[fills]] < 0)
    return np.asarray(fills[within]), len(distinct_values(around[within]))


def _added(facts: Facts) -> Int64:
    """The operators that add a gradient to the one that is there (events, ascending)."""
    trace = facts.trace
    gathers = named(trace, of_kind(trace, Kind.OPERATOR), partial(evaluates, ACCUMULATES_GRADIENT))
    adds = facts.operators_named("aten::add_")
    above = pick(facts.attribution.calls.parent, adds)
    return np.asarray(adds[(above >= 0) & gathers[above]])


ZEROED_GRADIENTS = Rule("DS009", "Gradients zeroed in place", _find_zeroed_gradients, measured_on=("cpu",))

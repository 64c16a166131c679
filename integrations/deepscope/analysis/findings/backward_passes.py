"""DS045: backward passes that go through the same graph, where one pass would do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from deepscope.analysis.array_ops.selection import Mask, by_line, named, of_kind
from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.rule import Rule
from deepscope.records import Finding
from deepscope.trace.arrays import distinct_values, nearest_to, pick
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64
from deepscope.trace.names import ACCUMULATES_GRADIENT, stepped_optimizer, zeroes_gradients

_SUM = (
    "Add the losses and call `backward()` once, on their sum: the gradients are the same, unless something reads or "
    "changes them between the passes."
)
_TOGETHER = "Ask for all gradients of this tensor in one call: `torch.autograd.grad(y, [a, b], …)`."


@dataclass(frozen=True, slots=True)
class _Passes:
    """Backward passes within the extent."""

    nodes: Int64
    """What they run, in order of time: the engine's spans (events); shape (k,)."""
    earlier: Int64
    """The place in `nodes` where the same node ran first in the step; shape (k,)."""
    number: Int64
    """The pass of each; shape (k,)."""
    first: Int64
    """By pass: the autograd number of its first node. Shape (passes,), as the next ones."""
    line: Int64
    """By pass: the line that calls it, -1 where it is not known."""
    gathers: Mask
    """By pass: whether it adds gradients to parameters: `backward()`, and not `torch.autograd.grad`."""
    makes_graph: Mask
    """By pass: whether it is differentiated itself (`create_graph=True`)."""

    def repeats(self) -> Mask:
        """Which nodes ran before in a pass that one pass would replace together with theirs: the gradients of a sum, or
        of one tensor by several others; shape (k,)."""
        one, other = self.number, self.number[self.earlier]
        of_sum = self.gathers[one] & self.gathers[other] & ~self.makes_graph[one] & ~self.makes_graph[other]
        of_tensor = ~self.gathers[one] & ~self.gathers[other] & (self.first[one] == self.first[other])
        of_tensor &= self.makes_graph[one] == self.makes_graph[other]
        return np.asarray((one != other) & (of_sum | of_tensor))


def _find(facts: Facts) -> Iterator[Finding]:
    passes = _passes(facts)
    if passes is None:
        return
    start = facts.trace.events.start_ns[passes.nodes]
    changes = np.searchsorted(_changes_of_gradients(facts), start)
    again = np.flatnonzero(passes.repeats() & (changes == changes[passes.earlier]))
    made, by = _made_by(facts, passes, again)
    # All that one pass would save stands at one line: by the line that goes through the graph first.
    saved, by = np.concatenate((again, made)), np.concatenate((again, by))
    order = np.argsort(passes.nodes[saved])
    saved, by = saved[order], by[order]
    cost = facts.cost_ns(passes.nodes[saved])
    line, first = passes.line[passes.number[by]], passes.line[passes.number[passes.earlier[by]]]
    gathers = passes.gathers[passes.number[by]]
    for begin, is_sum in sorted(set(zip(first.tolist(), gathers.tolist(), strict=True))):
        here = (first == begin) & (gathers == is_sum)
        saving_ns = int(cost[here].sum())
        if saving_ns < RULE.worth_ns(facts):
            continue
        location = int(np.argmax(by_line(line[here], facts.lines, cost[here])))
        times = len(distinct_values(passes.number[by[here]]))
        yield RULE.finding(
            facts,
            location=location,
            message=f"{_lines(facts, begin, line[here])} the same graph again",
            evidence={
                **facts.counted("repeated_passes", times),
                "repeated_ns": saving_ns,
            },
            saving_ns=saving_ns,
            remedy=_SUM if is_sum else _TOGETHER,
        )


def _lines(facts: Facts, first: int, others: Int64) -> str:
    """`lines 15, 16 and 17 go backward through`."""
    numbers = sorted({facts.locations[one].line for one in (first, *others.tolist()) if one >= 0})
    if len(numbers) < 2:
        return "passes that this line calls go through"
    return f"lines {', '.join(map(str, numbers[:-1]))} and {numbers[-1]} each go through"


def _passes(facts: Facts) -> _Passes | None:
    """The passes; None where none of them comes to a node that ran before in its step."""
    trace, calls = facts.trace, facts.attribution.calls
    events = trace.events
    operators = of_kind(trace, Kind.OPERATOR)
    nodes = facts.backward_nodes
    nodes = nodes[facts.analysis.extent.holds(events.start_ns[nodes])]
    nodes = nodes[np.argsort(events.start_ns[nodes], kind="stable")]
    sequence, step = events.sequence[nodes], facts.attribution.training.steps.of(events.start_ns[nodes])
    # `AccumulateGrad` has no number: each run counts as a node of its own.
    known = np.where(sequence >= 0, sequence, -2 - np.arange(len(nodes)))
    keys, first, node = np.unique(
        np.stack((step, events.fwd_thread[nodes], known), axis=1), axis=0, return_index=True, return_inverse=True
    )
    if len(keys) == len(nodes):
        return None
    earlier = first[node.reshape(-1)]
    caller = nearest_to(calls.caller[nodes], calls.parent, ~trace.library_lines)
    number, since = np.zeros(len(nodes), np.int64), 0
    last: dict[int, int] = {}
    for place, one in enumerate(earlier.tolist()):
        is_next = place > 0 and (caller[place] != caller[place - 1] or step[place] != step[place - 1])
        if is_next or last.get(one, -1) >= since:
            since = place
        last[one] = place
        number[place] = since
    begins, number = np.unique(number, return_inverse=True)
    gathering = named(trace, operators, ACCUMULATES_GRADIENT.__eq__)
    growing = calls.backward & operators & (events.sequence >= 0) & (events.fwd_thread <= 0)
    return _Passes(
        nodes=nodes,
        earlier=earlier,
        number=number,
        first=sequence[begins],
        line=pick(facts.attribution.owners.location, caller[begins]),
        gathers=_holding(facts, nodes, gathering, number),
        makes_graph=_holding(facts, nodes, growing, number),
    )


def _holding(facts: Facts, nodes: Int64, chosen: Mask, number: Int64) -> Mask:
    """Which passes have one of the chosen events below a node; shape (passes,)."""
    parent = facts.attribution.calls.parent
    above = nearest_to(pick(parent, np.flatnonzero(chosen)), parent, facts.marked(nodes))
    holds = facts.marked(above[above >= 0])[nodes]
    return np.bincount(number[holds], minlength=int(number[-1]) + 1) > 0


def _changes_of_gradients(facts: Facts) -> Int64:
    """When optimizers step, or set gradients to zero; ascending."""

    def changes(name: str) -> bool:
        return stepped_optimizer(name) is not None or zeroes_gradients(name)

    found = named(facts.trace, of_kind(facts.trace, Kind.ANNOTATION), changes)
    return np.sort(facts.trace.events.start_ns[found])


def _made_by(facts: Facts, passes: _Passes, again: Int64) -> tuple[Int64, Int64]:
    """What goes through the graph that repeated nodes made, in passes that go through that of their first run, too.

    Returns the places in `nodes` of these nodes, and the place of the repeated one that made each.
    """
    calls, nodes, number = facts.attribution.calls, passes.nodes, passes.number
    place = np.full(len(facts.trace.events) + 1, -1, np.int64)
    place[nodes] = np.arange(len(nodes))
    makers = distinct_values(np.concatenate((again, passes.earlier[again])))
    maker = place[nearest_to(pick(calls.up, nodes), calls.parent, facts.marked(nodes[makers]))]
    made = np.flatnonzero((maker >= 0) & (number[maker] != number))
    is_again = np.zeros(len(nodes), np.bool_)
    is_again[again] = True
    beside = set(zip(number[made].tolist(), maker[made].tolist(), strict=True))
    kept = [
        is_again[maker[one]] and (int(number[one]), int(passes.earlier[maker[one]])) in beside for one in made.tolist()
    ]
    made = made[kept]
    return made, maker[made]


RULE = Rule("DS045", "Several backward passes through one graph", _find, measured_on=("cpu",), worth=0.05)

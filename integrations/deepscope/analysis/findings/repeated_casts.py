"""DS018: autocast casts the same parameters over and over."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from deepscope.analysis.array_ops.selection import Mask, by_line, named, of_kind
from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.library_options import in_modules
from deepscope.analysis.findings.rule import Rule
from deepscope.records import PHASES, Finding
from deepscope.trace.arrays import distinct_places, pick
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64
from deepscope.trace.names import ACCUMULATES_GRADIENT, evaluates, stepped_optimizer

WORTH = 0.02
"""A line is named if it would save at least this share of the wall time."""
_AGAIN = (
    "Enter `torch.autocast` once, around all that uses them: it keeps each cast until the outermost region ends, and "
    "a region for each call forgets it."
)
_FROZEN = (
    "They are not trained, so that autocast keeps no cast of them: convert them once (`module.to(torch.bfloat16)`), "
    "as they are used in that type alone."
)


@dataclass(frozen=True, slots=True)
class _Casts:
    """Casts of parameters in forward passes; arrays of shape (k,)."""

    event: Int64
    """The `aten::to`, ascending."""
    backward: Int64
    """The engine's span of the cast's node, -1 where it has none."""
    needless: Int64
    """Its share that is needless, in a million."""
    trained: Mask
    """Whether a gradient reaches the parameter."""


def _find(facts: Facts) -> Iterator[Finding]:
    casts = _casts(facts)
    if not len(casts.event):
        return
    spent = facts.cost_ns(casts.event)
    with_backward = casts.backward >= 0
    roots = casts.backward[with_backward]
    order = np.argsort(roots)
    behind = np.zeros(len(roots), np.int64)
    behind[order] = facts.cost_ns(roots[order])
    spent[with_backward] += behind
    location = facts.attribution.owners.location[casts.event]
    casting = by_line(location, facts.lines, spent)
    saving = by_line(location, facts.lines, spent * casts.needless // 1_000_000)
    count = by_line(location, facts.lines)
    frozen = by_line(location, facts.lines, np.where(casts.trained, 0, spent))
    for line in np.flatnonzero(saving >= max(WORTH * facts.wall_ns, 1)).tolist():
        is_frozen = 2 * int(frozen[line]) > int(casting[line])
        here = casts.event[(location == (line if line < facts.lines else -1)) & ~casts.trained]
        module, option = in_modules(facts, RULE.code, here if is_frozen else here[:0])
        yield RULE.finding(
            facts,
            location=line,
            message="the same parameters are cast to a lower precision over and over" + module,
            evidence={
                "casting_ns": int(casting[line]),
                "casts": int(count[line]),
                "casts_per_step": facts.per_step(int(count[line])),
            },
            saving_ns=int(saving[line]),
            remedy=(_FROZEN if is_frozen else _AGAIN) + option,
        )


def _casts(facts: Facts) -> _Casts:
    """The casts of parameters, with what of each is needless.

    A parameter need be cast once a backward pass if it is trained, and never if it is not. Casts at the same place of
    a module (without modules: of a line) are of one parameter.
    """
    events, calls = facts.trace.events, facts.attribution.calls
    found, index, count = _of_autocast(facts)
    backward, gathered = _nodes(facts, found)
    modules, location = facts.analysis.modules, facts.attribution.owners.location
    inside = modules.of_event[found]
    place = np.where(inside >= 0, facts.lines + 1 + pick(modules.module, inside), location[found] + 1)
    _, group = distinct_places((place * 4 + np.minimum(count, 3)) * 4 + np.minimum(index, 3))
    trained = np.zeros(int(group.max(initial=-1)) + 1, np.bool_)
    trained[group[gathered]] = True
    # Of input, weight and bias the weight is the second, whichever way the compiler goes through arguments. Of two
    # casts one at least is a parameter's, it may be the cheaper one. Outside modules only a gradient tells.
    of_weight = (count == 3) & (index == 1)
    is_parameter = trained[group] | ((of_weight | _cheaper_of_two(facts, found, trained[group], count)) & (inside >= 0))
    # What is computed again in the backward pass is cast again, and cannot help it.
    keep = is_parameter & ~calls.backward[found] & facts.analysis.extent.holds(events.start_ns[found])
    order = np.flatnonzero(keep)[np.argsort(found[keep])]
    found, group, backward = found[order], group[order], backward[order]
    times = np.bincount(group, minlength=len(trained))[group]
    once = np.where(trained[group], np.minimum(_turns(facts), times), 0)
    needless = (times - once) * 1_000_000 // np.maximum(times, 1)
    return _Casts(found, backward, needless, trained[group])


def _cheaper_of_two(facts: Facts, found: Int64, trained: Mask, count: Int64) -> Mask:
    """Of each operator with two casts, neither of which a gradient reaches, the shorter one; shape of `found`."""
    result = np.zeros(len(found), np.bool_)
    first = np.flatnonzero(count == 2)[::2]
    first = first[~trained[first] & ~trained[first + 1]]
    lengths = facts.trace.events.duration_ns[found]
    result[np.where(lengths[first] <= lengths[first + 1], first, first + 1)] = True
    return result


def _of_autocast(facts: Facts) -> tuple[Int64, Int64, Int64]:
    """Casts that autocast makes before an operator: event, which of that operator's casts it is, and how many it has.

    Autocast's version of an operator casts what it is given, then calls the operator again by the same name. Those of
    one operator stand together, in the order of time.
    """
    operators, events = facts.attribution.operators, facts.trace.events
    name = events.name[operators.nodes]
    called = operators.caller >= 0
    again = np.zeros(len(operators.nodes), np.bool_)
    same = np.flatnonzero(called & (name == name[operators.caller]))
    again[operators.caller[same]] = True
    to = operators.around[facts.operators_named("aten::to")]
    copies = named(facts.trace, of_kind(facts.trace, Kind.OPERATOR), "aten::_to_copy".__eq__)[operators.nodes]
    casting = np.zeros(len(operators.nodes), np.bool_)
    casting[operators.caller[np.flatnonzero(copies & called)]] = True
    caller = operators.caller[to]
    to = to[casting[to] & (caller >= 0) & again[caller] & _has_parameters(facts)[operators.caller[to]]]
    caller = operators.caller[to]
    order = np.lexsort((events.start_ns[operators.nodes[to]], caller))
    to, caller = to[order], caller[order]
    _, which = distinct_places(caller)
    count = np.bincount(which, minlength=1)[which]
    first = np.searchsorted(which, which)
    index = np.arange(len(which)) - first
    return operators.nodes[to], index, count


_WITH_PARAMETERS = frozenset(
    f"aten::{name}"
    for name in ("linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
)


def _has_parameters(facts: Facts) -> Mask:
    """Which operators (positions) take an input, a weight and perhaps a bias."""
    which = named(facts.trace, of_kind(facts.trace, Kind.OPERATOR), _WITH_PARAMETERS.__contains__)
    return np.asarray(which[facts.attribution.operators.nodes])


def _nodes(facts: Facts, casts: Int64) -> tuple[Int64, Mask]:
    """The engine's span of each cast's node (-1 for none), and whether the next one gathers the gradient of a leaf."""
    trace, events, calls = facts.trace, facts.trace.events, facts.attribution.calls
    roots = facts.backward_nodes
    roots = roots[np.lexsort((events.start_ns[roots], events.thread[roots]))]
    casting, gathering = (
        named(trace, facts.marked(roots), partial(evaluates, node))[roots]
        for node in ("ToCopyBackward0", ACCUMULATES_GRADIENT)
    )
    leaf = np.append(gathering[1:], False)
    forward = pick(calls.up, roots)
    operators = facts.attribution.operators
    of_event = np.full(len(events) + 1, -1, np.int64)
    is_leaf = np.zeros(len(events) + 1, np.bool_)
    chosen = np.flatnonzero(casting & (forward >= 0))
    # The node's forward operator may be the copy that `aten::to` calls.
    around = operators.around[forward[chosen]]
    for _ in range(2):
        node = pick(operators.nodes, around)
        of_event[node], is_leaf[node] = roots[chosen], leaf[chosen]
        around = pick(operators.caller, around)
    return of_event[casts], is_leaf[casts]


def _turns(facts: Facts) -> int:
    """How often parameters change, for all that the trace says, or a backward pass ends what autocast keeps."""
    trace, events = facts.trace, facts.trace.events
    steps = np.flatnonzero(named(trace, of_kind(trace, Kind.ANNOTATION), stepped_optimizer))
    inside = int(facts.analysis.extent.holds(events.start_ns[steps]).sum())
    backward = int(facts.analysis.phases.calls(facts.analysis.extent)[PHASES.index("backward")])
    return max(inside or facts.steps, backward, 1)


RULE = Rule("DS018", "Parameters cast over and over", _find, shortens_work=True, measured_on=("cpu", "device"))

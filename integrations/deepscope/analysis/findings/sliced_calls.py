"""Calls one after the other that one call would do for: of slices of a tensor (DS034), of modules alike (DS046)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from math import prod

import numpy as np

from deepscope.analysis.array_ops.selection import named, of_kind
from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.rule import Rule
from deepscope.records import Finding
from deepscope.trace.arrays import nearest, nearest_to, pick
from deepscope.trace.format.audit import AlikeModules, SlicedCalls
from deepscope.trace.format.span_names import MODULE_TITLE
from deepscope.trace.kinds import Kind
from deepscope.trace.names import ACCUMULATES_GRADIENT, evaluates

_CALL_NS = 10_000
"""What an operator takes however little it has to do, with the Python around it."""
_LONG = 3
"""An operator that takes so many times as long has much to do."""
_BY_ELEMENT = re.compile(
    r"aten::_?(?:sort|topk|unique\w*|cumsum|cumprod|exp|log|(?:log_)?softmax|tanh|erf|pow|sqrt|sin|cos|fft_\w+|linalg_\w+)_?"
)
"""Operators that do much for each element. What others take longer for slices is memory, a gradient of the whole tensor
for each slice first of all, or a product, whose operations are known."""
_CPU_FLOPS, _CPU_BYTES = 80e9, 10e9
"""A second, of one core, in operators with much to do."""
_DEVICE_FLOPS, _DEVICE_BYTES = 20e12, 500e9
_PASSES = 3
"""What a forward operator writes is read again, and the backward pass has as much to do."""
_WHOLE = {"LSTMCell": "nn.LSTM", "GRUCell": "nn.GRU", "RNNCell": "nn.RNN"}
"""The module that takes a whole sequence, for one that takes a step of it."""
_MOST_OF = 0.8
_LAYERS = ("GRU", "LSTM", "RNN")
"""Modules that take a whole sequence."""
_GRADIENTS = re.compile(r"(?:.+\.)?(?:grad|jacobian|vjp)")
"""Functions that go backward through what was computed before the loop."""
_ROWS = (
    "Ask for all gradients in one pass: `torch.autograd.grad(y, x, torch.eye(n)[:, None].expand(n, *y.shape), "
    "is_grads_batched=True)` for `n` outputs of each sample; or `torch.func.vmap(torch.func.jacrev(f))(x)`."
)
_WHOLE_TENSORS = "Do it on whole tensors: operators take all slices at once, and `a[:, None]` with `b[None]` all pairs."
_OF_DATA = "It has no gradient: what depends on the data alone is made once, in the data set."
_CHOSEN = "?"
"""What has no dotted name: `self.experts[choice](token)`."""


@dataclass(frozen=True, slots=True)
class _Loop:
    """A loop, with the lines that are called in it, the one that calls most first."""

    calls: SlicedCalls
    lines: list[int]
    cost_ns: int
    saving_ns: int
    is_differentiated: bool
    """Whether backward work goes back to it."""
    stepwise: str = ""
    """`GRU`: the module for whole sequences that each call of a chain gives one step to."""

    @property
    def is_bound(self) -> bool:
        """Whether more than the module's own state may go from call to call."""
        return self.stepwise != ""


def sliced_lines(facts: Facts) -> set[int]:
    """The lines of which these findings promise the time, with all that is called from them."""
    loops = {line for loop in facts.once(_loops) for line in loop.lines}
    return loops | {one.line for one in facts.once(_alike)}


def is_below(facts: Facts, line: int, above: set[int]) -> bool:
    """Whether a line is one of some others, or was called from them; its runs are much alike, and one says."""
    runs = facts.attribution.runs
    rows = np.flatnonzero(runs.location == line) if above else ()
    row = int(rows[len(rows) // 2]) if len(rows) else -1
    while row >= 0:
        if int(runs.location[row]) in above:
            return True
        row = int(runs.caller[row])
    return False


def _find(facts: Facts) -> Iterator[Finding]:
    for loop in facts.once(_loops):
        calls = loop.calls
        piece = "one slice" if calls.length == 1 else f"a window of {calls.length}"
        yield RULE.finding(
            facts,
            location=loop.lines[0],
            message=f"{calls.module or 'this line'} is called {calls.times:,} times a step, each time for {piece} of "
            f"a tensor of shape {calls.shape} in dimension {calls.dimension}",
            evidence={
                "calls_per_step": calls.times,
                **({"module": calls.module} if calls.module else {}),
                "shape": str(calls.shape),
                "dimension": calls.dimension,
                "loop_ns": loop.cost_ns,
                "operators_per_step": calls.operators,
                "looked_at_steps": facts.audit.steps,
            },
            saving_ns=loop.saving_ns,
            remedy=_remedy(facts, loop),
            is_bound=loop.is_bound,
        )


def _remedy(facts: Facts, loop: _Loop) -> str:
    calls, names = loop.calls, facts.source(loop.lines[0]).calls
    if calls.is_chain:
        return _of_chain(loop)
    if _CHOSEN in names:
        return (
            "Call each module once, with all slices that go to it: `rows = (choice == i).nonzero().squeeze(1)`, "
            "`out.index_copy(0, rows, modules[i](x[rows]))`."
        )
    if calls.length > 1:
        return (
            f"Take all windows in one view, `x.unfold({calls.dimension}, {calls.length}, step)`, and call it once with "
            "them; a linear layer on each window is a convolution (`nn.Conv1d`)."
        )
    if not calls.module:
        words = _ROWS if any(map(_GRADIENTS.fullmatch, names)) else _WHOLE_TENSORS
        return words if loop.is_differentiated else f"{words} {_OF_DATA}"
    if calls.dimension == 0:
        return "Call it once with the whole tensor; a loss then takes all results, and averages or sums them itself."
    return (
        "Call it once with the whole tensor: layers such as `nn.Linear` take any leading dimensions; for others "
        f"flatten dimension {calls.dimension} into the batch, or use `torch.func.vmap`."
    )


def _of_chain(loop: _Loop) -> str:
    if loop.stepwise:
        return (
            f"`nn.{loop.stepwise}` goes through all steps in one call: give the whole tensor to it, and to what comes "
            "behind it, where its own state is all that goes from call to call."
        )
    first = ", batch_first=True" if loop.calls.dimension == 1 else ""
    return (
        f"`{_WHOLE[loop.calls.module]}(…{first})` takes the whole sequence in one call, and its weights are the cell's "
        "(`weight_ih_l0`, …)."
    )


def _loops(facts: Facts) -> list[_Loop]:
    found = []
    for calls in facts.audit.slices:
        lines = [line for place in (calls.place, *calls.others) if (line := facts.audited_line(place)) >= 0]
        if not lines or facts.audited_line(calls.place) < 0:
            continue
        is_other_chain = calls.is_chain and calls.module not in _WHOLE
        stepwise = _stepwise(facts, calls, lines) if is_other_chain else ""
        if is_other_chain and not stepwise:
            continue
        cpu_ns, backward_ns = _cost_ns(facts, lines)
        cost_ns = cpu_ns + backward_ns
        times = _nested_times(facts, calls, lines[0])
        least_ns = max(_once_ns(facts, calls, times), cost_ns // times, _lasting_ns(facts, lines))
        saving_ns = cost_ns - least_ns
        if _differentiates(facts, lines[0]):
            saving_ns = min(saving_ns, _of_passes_ns(facts, lines, backward_ns > 0) * (times - 1) // times)
        if saving_ns >= RULE.worth_ns(facts):
            found.append(_Loop(calls, lines, cost_ns, saving_ns, backward_ns > 0, stepwise))
    apart: list[_Loop] = []
    for loop in sorted(found, key=lambda one: -one.saving_ns):  # what a loop calls is a part of what it promises
        if not is_below(facts, loop.lines[0], {line for one in apart for line in one.lines}):
            apart.append(loop)
    return apart


def _stepwise(facts: Facts, calls: SlicedCalls, lines: list[int]) -> str:
    """The class of torch's recurrent layers that is called below these lines, as often as they are; "" for none."""
    trace, paths = facts.trace, facts.attribution.paths
    is_called = nearest(paths.parent, np.isin(paths.location, lines)) >= 0
    modules = np.flatnonzero(of_kind(trace, Kind.MODULE_SCOPE) & facts.analysis.extent.holds(trace.events.start_ns))
    modules = modules[is_called[facts.attribution.owners.path[modules]]]
    found = Counter[str]()
    for kind in _LAYERS:
        found[kind] = int(named(trace, facts.marked(modules), f"{MODULE_TITLE}{kind}".__eq__).sum())
    ((kind, times),) = found.most_common(1)
    return kind if times >= _MOST_OF * calls.times * max(facts.steps, 1) else ""  # sequences differ in length


def _differentiates(facts: Facts, line: int) -> bool:
    return any(map(_GRADIENTS.fullmatch, facts.source(line).calls))


def _of_passes_ns(facts: Facts, lines: list[int], is_differentiated: bool) -> int:
    """What the nodes of backward passes that these lines ask for cost by being many: arithmetic stays as it is.

    A pass that is differentiated has as many again.
    """
    trace, attribution = facts.trace, facts.attribution
    nodes = facts.backward_nodes
    nodes = nodes[facts.analysis.extent.holds(trace.events.start_ns[nodes])]
    caller = nearest_to(attribution.calls.caller[nodes], attribution.calls.parent, ~trace.library_lines)
    here = np.isin(pick(attribution.owners.location, caller), lines)
    return int(here.sum()) * _CALL_NS * (2 if is_differentiated else 1)


def _cost_ns(facts: Facts, lines: list[int]) -> tuple[int, int]:
    """What runs below these lines costs: their time on the CPU, and the backward work that goes back to them."""
    paths, by_path = facts.attribution.paths, facts.analysis.by_path
    group = np.full(facts.lines, -1, np.int64)
    group[lines] = 0
    _, backward_ns, cpu_ns, _ = paths.totals(by_path, group, 1)[0].tolist()
    return int(cpu_ns), int(backward_ns // facts.devices)


def _nested_times(facts: Facts, calls: SlicedCalls, line: int) -> int:
    """How often a step goes through the body of the loops around a line: those over other tensors lie in each other, if
    the line runs so often.
    """
    around = [
        one.times
        for one in facts.audit.slices
        if (one.place, one.operators, one.length, one.is_chain) == (calls.place, calls.operators, 1, False)
    ]
    runs = int(facts.analysis.columns["calls"][line]) / max(facts.steps, 1)
    product = prod(around)
    return product if calls.times < product <= runs else calls.times


def _lasting_ns(facts: Facts, lines: list[int]) -> int:
    """What long operators with much to do for each element take beyond `_CALL_NS` each, below these lines on the CPU.

    They take as long for all slices at once.
    """
    if facts.has_device:
        return 0
    attribution, trace = facts.attribution, facts.trace
    operators, paths = attribution.operators, attribution.paths
    is_called = nearest(paths.parent, np.isin(paths.location, lines)) >= 0
    here = (operators.self_ns > _LONG * _CALL_NS) & facts.analysis.extent.holds(trace.events.start_ns[operators.nodes])
    nodes, own = operators.nodes[here], operators.self_ns[here]
    here = is_called[attribution.owners.path[nodes]] & named(trace, facts.marked(nodes), _does_much)[nodes]
    return int((own[here] - _CALL_NS).sum())


def _does_much(name: str) -> bool:
    return _BY_ELEMENT.fullmatch(name) is not None


def _once_ns(facts: Facts, calls: SlicedCalls, times: int) -> int:
    """What one call for all of it would take in the window, by its operations and bytes; it is called so often."""
    flops, moved = (_DEVICE_FLOPS, _DEVICE_BYTES) if facts.has_device else (_CPU_FLOPS, _CPU_BYTES)
    seconds = calls.flops / flops + _PASSES * calls.result_bytes / moved
    return int((calls.operators / times * _CALL_NS + seconds * 1e9) * max(facts.steps, 1))


RULE = Rule("DS034", "Called for one slice after the other", _find, measured_on=("cpu",), worth=0.05)


_ONE_TABLE = (
    "Keep one table, `nn.Embedding(sum(sizes), dim)`: add to each column's indices the rows of the tables before it, "
    "and look all columns up in one call."
)
_STACKED = (
    "If all read the same tensor, one layer with the outputs of all (`nn.Linear(d, count * k)`) and a reshape do the "
    "same; else stack their parameters and call `torch.bmm`, or `torch.func.stack_module_state` with `torch.vmap`."
)


@dataclass(frozen=True, slots=True)
class _Alike:
    """Modules alike, and the line that calls them."""

    calls: AlikeModules
    line: int
    cost_ns: int
    saving_ns: int


def _find_alike(facts: Facts) -> Iterator[Finding]:
    for one in facts.once(_alike):
        calls = one.calls
        yield ALIKE_MODULES.finding(
            facts,
            location=one.line,
            message=f"{calls.modules} modules of class {calls.module}, each with parameters of its own, are called one "
            "after the other, and none needs what another one returns",
            evidence={
                "modules": calls.modules,
                "module": calls.module,
                "calls_ns": one.cost_ns,
                "operators_per_step": calls.operators,
                "looked_at_steps": facts.audit.steps,
            },
            saving_ns=one.saving_ns,
            remedy=_ONE_TABLE if "embedding" in calls.operator else _STACKED,
            is_bound="embedding" in calls.operator,
        )


def _alike(facts: Facts) -> list[_Alike]:
    loops = {line for loop in facts.once(_loops) for line in loop.lines}
    found = []
    for calls in facts.audit.alike:
        line = facts.audited_line(calls.place)
        if line < 0 or is_below(facts, line, loops):
            continue
        calls_ns = sum(_cost_ns(facts, [line]))
        pure_ns = min(calls_ns, _CALL_NS * calls.operators * max(facts.steps, 1))
        saving_ns = pure_ns - pure_ns // calls.modules
        saving_ns += _fewer_parameters_ns(facts, calls)
        if saving_ns >= ALIKE_MODULES.worth_ns(facts):
            found.append(_Alike(calls, line, calls_ns, saving_ns))
    return found


def _fewer_parameters_ns(facts: Facts, calls: AlikeModules) -> int:
    """On the CPU, what it takes to give gradients to parameters, and an optimizer to step them, if they were joined."""
    if facts.has_device:
        return 0
    trace = facts.trace
    nodes = facts.marked(facts.backward_nodes)
    gathers = np.flatnonzero(named(trace, nodes, partial(evaluates, ACCUMULATES_GRADIENT)))
    gathers = gathers[facts.analysis.extent.holds(trace.events.start_ns[gathers])]
    if not len(gathers):
        return 0
    stepping_ns = facts.in_phase("optimizer").intersection(facts.analysis.unrecorded).total_ns
    each_ns = (int(facts.cost_ns(gathers).sum()) + min(stepping_ns, _CALL_NS * len(gathers))) / len(gathers)
    joined = calls.parameters - calls.parameters // calls.modules
    return int(each_ns * min(joined * max(facts.steps, 1), len(gathers)))


ALIKE_MODULES = Rule("DS046", "Modules alike called one after the other", _find_alike, measured_on=("cpu",), worth=0.05)

"""From what was watched: gradients and graphs that nobody needs."""

from __future__ import annotations

import gc
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from types import CellType, FrameType, GeneratorType
from typing import Any, NamedTuple

import torch

from deepscope.capture.audit.flow import Flow, Operation
from deepscope.capture.audit.gradients import Gradient
from deepscope.capture.audit.operator_uses import StepWork
from deepscope.capture.audit.places import common_call, outermost_of, wholly
from deepscope.trace.format.audit import KeptGraphs, TableGradient, UnusedGradients, UnusedGraph

_MOST_MODULES = 8


_CONVOLUTION_BACKWARD = "aten::convolution_backward"
"""It gives the gradients of input and weight, which take about as long."""


def unused_gradients(work: StepWork, modules: Iterable[Any]) -> list[UnusedGradients]:
    """Of the first step, by backward pass; `modules`: those that are alive, for the names of parameters."""
    flow = work.watch.flow
    candidates = [one for one in work.watch.gradients.all if not one.is_used]
    used = [number for one in work.watch.gradients.all if one.is_used for number in one.operations]
    kept = flow.kept(without=[one.storage for one in candidates])
    live = flow.reaching([*flow.sinks(), *kept, *used])
    by_pass: dict[int, list[Gradient]] = defaultdict(list)
    for one in candidates:
        first = flow.operations[one.operations[0]]
        if first.step == 0 and live.isdisjoint(one.operations):
            by_pass[first.pass_number].append(one)
    if not by_pass:
        return []
    names = _owners(modules)
    all_of_pass: dict[int, list[tuple[int, Operation]]] = defaultdict(list)
    for number, operation in enumerate(flow.operations):
        if operation.pass_number in by_pass:
            all_of_pass[operation.pass_number].append((number, operation))
    found = [
        _of_pass(work, all_of_pass[number], gradients, live=live, names=names) for number, gradients in by_pass.items()
    ]
    return [one for one in found if one is not None]


def _of_pass(
    work: StepWork,
    operations: Sequence[tuple[int, Operation]],
    gradients: Sequence[Gradient],
    *,
    live: set[int],
    names: Mapping[int, _Owner],
) -> UnusedGradients | None:
    paths = work.paths
    unused = {number for number, _ in operations if number not in live}
    half_unused = _half_unused(work, gradients, live)
    called_at = common_call(paths[one.forward_path] for number, one in operations if number in unused | half_unused)
    if not called_at:
        return None
    depth = len(called_at)
    below = [number for number, one in operations if paths[one.forward_path][:depth] == called_at]
    caller = paths[work.watch.passes[operations[0][1].pass_number]]
    return UnusedGradients(
        place=work.places.number_of(called_at[-1]),
        backward=work.places.number_of(caller[-1]) if caller else -1,
        fate="no_optimizer" if all(one.fate == "no_optimizer" for one in gradients) else "cleared",
        parameters=len(gradients),
        elements=sum(one.elements for one in gradients),
        modules=_outermost(names, gradients),
        whole=not any(number in live for number in below),
        shared=any(
            number in live and paths[one.forward_path][:depth] == called_at
            for number, one in enumerate(work.operations)
            if one.pass_number not in (-1, operations[0][1].pass_number)
        ),
        clipped=any(one.is_clipped for one in gradients),
        operators=work.uses_among(
            _until_it_comes_again(work, operations[0][1].pass_number),
            unused,
            half_unused=half_unused,
        ),
    )


def _half_unused(work: StepWork, gradients: Sequence[Gradient], live: set[int]) -> set[int]:
    """Operations that compute these gradients of weights, and in the same call a gradient that is used."""
    operations = work.operations
    numbers = {source for one in gradients for number in one.operations for source in operations[number].inputs}
    return {number for number in numbers & live if operations[number].name == _CONVOLUTION_BACKWARD}


def _until_it_comes_again(work: StepWork, number: int) -> list[tuple[int, Operation]]:
    """The operations of a backward pass and of those behind it, until the same line calls the next one."""
    caller, following = work.watch.passes[number], work.watch.passes[number + 1 :]
    last = number + following.index(caller) if caller in following else number
    return [pair for pair in enumerate(work.operations) if number <= pair[1].pass_number <= last]


class _Owner(NamedTuple):
    """The module that has a parameter."""

    tree: int
    """The number of the largest tree of modules that has it."""
    root: str
    """The class of this tree's root."""
    path: str
    """From there; "" for the root itself."""


def _owners(modules: Iterable[Any]) -> dict[int, _Owner]:
    """The module that has each parameter, by `id` of the parameter."""
    living = list(modules)
    children = {id(child) for module in living for child in module.__dict__.get("_modules", {}).values()}
    roots = [module for module in living if id(module) not in children]
    found: dict[int, _Owner] = {}
    for tree, root in enumerate(roots):
        for path, module in root.named_modules():
            for parameter in module.__dict__.get("_parameters", {}).values():
                if parameter is not None:
                    found.setdefault(id(parameter), _Owner(tree, type(root).__name__, path))
    return found


def _outermost(names: Mapping[int, _Owner], gradients: Iterable[Gradient]) -> list[str]:
    """The modules that have the parameters, and in place of modules whose parameters are all among them, these."""
    chosen = {id(parameter) for one in gradients if (parameter := one.parameter()) is not None}
    owners = {names[one] for one in chosen if one in names}
    others = {(owner.tree, above) for one, owner in names.items() if one not in chosen for above in _around(owner.path)}
    found: dict[str, None] = {}
    for owner in sorted(owners):
        path = next((one for one in _around(owner.path) if (owner.tree, one) not in others), owner.path)
        found[path or owner.root] = None
    return list(found)[:_MOST_MODULES]


def _around(path: str) -> list[str]:
    """A module's path and those of the modules around it, the outermost first: "", `encoder`, `encoder.0`."""
    parts = path.split(".") if path else []
    return [".".join(parts[:length]) for length in range(len(parts) + 1)]


class _Stepper(NamedTuple):
    """The optimizer of a parameter."""

    kind: str
    """Its class."""
    keeps_rows: bool
    """Whether its step leaves a row without a gradient as it is."""


def table_gradients(work: StepWork, optimizers: Iterable[Any]) -> list[TableGradient]:
    """Of the first step, the largest tables first."""
    operations, paths, looked_up = work.operations, work.paths, work.watch.looked_up
    backward = [(number, one) for number, one in enumerate(operations) if one.step == 0 and one.pass_number >= 0]
    steppers, elements = _steppers(optimizers)
    given: dict[int, list[Gradient]] = defaultdict(list)
    for one in work.watch.gradients.all:
        if operations[one.operations[0]].step == 0:
            given[id(one.parameter())].append(one)
    found = []
    for key, gradients in given.items():
        numbers = looked_up.made_of(gradients)
        path = paths[operations[numbers[0]].forward_path] if numbers else ()
        stepper = steppers.get(key)
        if not path or stepper is None or not all(one.is_used for one in gradients):
            continue
        lines = {paths[operations[number].forward_path][-1:] for number in numbers}
        found.append(
            TableGradient(
                place=work.places.number_of(path[-1]),
                rows=looked_up.rows[numbers[0]],
                used_rows=len(frozenset[int]().union(*(looked_up.used[number] for number in numbers))),
                elements=gradients[0].elements,
                optimizer=stepper.kind,
                stepped_elements=elements[stepper.kind],
                keeps_rows=stepper.keeps_rows,
                clipped=any(one.is_clipped for one in gradients),
                operators=work.uses_among(
                    [(n, one) for n, one in backward if paths[one.forward_path][-1:] in lines],
                    set(numbers),
                ),
            )
        )
    return sorted(found, key=lambda one: -one.elements)


_KEEPING_ROWS = (torch.optim.SGD, torch.optim.Adagrad)
"""Without momentum and weight decay."""


def _steppers(optimizers: Iterable[Any]) -> tuple[dict[int, _Stepper], Counter[str]]:
    """The optimizer of each parameter, by its `id`, and the elements that optimizers of each class step."""
    found: dict[int, _Stepper] = {}
    elements: Counter[str] = Counter()
    for optimizer in optimizers:
        kind = type(optimizer).__name__
        for group in getattr(optimizer, "param_groups", None) or ():
            is_plain = type(optimizer) in _KEEPING_ROWS and not (group.get("momentum") or group.get("weight_decay"))
            for one in group.get("params", ()):
                if isinstance(one, torch.Tensor) and one.requires_grad and id(one) not in found:
                    found[id(one)] = _Stepper(kind, is_plain)
                    elements[kind] += one.numel()
    return found, elements


def unused_graphs(work: StepWork, *, used_up: Set[int]) -> list[UnusedGraph]:
    """Of the first step: where a graph is begun that ends without a backward pass; `used_up`: what `trained` finds."""
    paths, operations = work.paths, work.operations
    graph = [number for number, one in enumerate(operations) if one.node >= 0 and one.computes]
    unused = _unused(work, graph, used_up)
    mine = [(number, paths[one.call.path]) for number, one in work.forward if one.node >= 0 and one.computes]
    beginnings = wholly((path, number in unused) for number, path in mine)
    groups: dict[int, set[int]] = defaultdict(set)
    for number, path in mine:
        if path in beginnings:
            groups[work.places.number_of(outermost_of(path, beginnings)[-1])].add(number)
    found = [
        UnusedGraph(
            place=place,
            result_bytes=sum(operations[number].result_bytes for number in group),
            operators=work.uses(group),
        )
        for place, group in groups.items()
    ]
    return sorted(found, key=lambda one: -one.result_bytes)


def _unused(work: StepWork, graph: Sequence[int], used_up: Set[int]) -> set[int]:
    """The operations no graph of which was or will be gone through, and that no such graph leads on from.

    What is computed from the outputs of a model that is trained, and not differentiated (a metric), is none of these.
    """
    numbers = set(graph)
    return numbers - work.watch.flow.reaching(numbers.intersection(work.watch.flow.alive()), by_graphs=True) - used_up


def trained(work: StepWork) -> set[int]:
    """The operations that a backward pass came to, and those that have nodes and go on from these."""
    found: set[int] = set()
    for number, one in enumerate(work.operations):
        if one.node >= 0 and (work.watch.nodes.is_reached(one.node) or not found.isdisjoint(one.graph_inputs)):
            found.add(number)
    return found


def kept_graphs(work: StepWork, *, used_up: Set[int]) -> list[KeptGraphs]:
    """Of the first step, by line: what has a graph still when the next step has ended, or is a part of a longer one."""
    operations, paths = work.operations, work.paths
    kept = {number for number in used_up if operations[number].step == 0 and _has_graph(operations[number])}
    kept = {number for number in kept if _is_in_an_object(operations[number])}
    kept -= {source for number in kept for source in operations[number].graph_inputs}  # whose graph others hold
    kept |= _made_longer(work.watch.flow, used_up)
    found: dict[int, list[int]] = defaultdict(list)
    for number in sorted(kept):
        if path := paths[operations[number].call.path]:
            found[work.places.number_of(path[-1])].append(number)
    return [
        KeptGraphs(place=place, results=len(numbers), name=operations[numbers[0]].name)
        for place, numbers in found.items()
    ]


def _has_graph(one: Operation) -> bool:
    tensor = one.result() if one.result is not None else None
    return tensor is not None and tensor.grad_fn is not None


def _is_in_an_object(one: Operation) -> bool:
    """Whether more than a variable has its result, which the next step may put another in place of."""
    tensor = one.result() if one.result is not None else None
    variables = (FrameType, CellType, GeneratorType)
    return tensor is not None and any(
        not isinstance(holder, variables) and not (isinstance(holder, dict) and "__builtins__" in holder)
        for holder in gc.get_referrers(tensor)
    )


def _made_longer(flow: Flow, used_up: Set[int]) -> set[int]:
    """The operations of the first step from which the same line's go on in the second one, as in a sum of losses."""
    crossing: set[int] = set()
    found = set()
    for number, one in enumerate(flow.operations):
        if one.step == 0 or one.node < 0:
            continue
        if any(source in crossing or flow.operations[source].step == 0 for source in one.graph_inputs):
            crossing.add(number)
            if number in used_up:
                found |= _same_before(flow, number)
    return found


def _same_before(flow: Flow, number: int) -> set[int]:
    """What an operation goes on from that the same line called in the step before."""
    operations = flow.operations
    same = (operations[number].call.path, operations[number].name)
    before = flow.reaching([number], by_graphs=True)
    return {
        one for one in before if operations[one].step == 0 and (operations[one].call.path, operations[one].name) == same
    }

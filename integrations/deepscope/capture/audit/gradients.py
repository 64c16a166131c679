"""What became of gradients and of autograd's graphs, and those that nobody needed."""

from __future__ import annotations

import gc
import weakref
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from types import CellType, FrameType, GeneratorType
from typing import Any, NamedTuple

import torch
from torch import nn

from deepscope.capture.audit.call_paths import common_call, outermost_of, wholly
from deepscope.capture.audit.flow import Flow, Operation
from deepscope.capture.audit.operator_calls import key_of
from deepscope.capture.audit.step_work import Numbered, StepWork
from deepscope.trace.format.audit import GradientFate, KeptGraphs, UnusedGradients, UnusedGraph

_MOST_MODULES = 8
_CONVOLUTION_BACKWARD = "aten::convolution_backward"
"""It gives the gradients of input and weight, which take about as long."""


class Gradient:
    """What one backward pass gave to one parameter."""

    __slots__ = ("elements", "fate", "is_clipped", "is_used", "operations", "parameter", "storage")

    def __init__(self, parameter: torch.Tensor) -> None:
        self.operations: list[int] = []
        """Those that add it to what the parameter has."""
        self.parameter: weakref.ref[Any] = weakref.ref(parameter)
        self.elements = parameter.numel()
        self.storage = 0
        self.is_used = False
        """As far as an optimizer says, and where its use is not known."""
        self.is_clipped = False
        self.fate: GradientFate = "cleared"


class Gradients:
    """The gradients of some steps; `pending` are those that nobody cleared."""

    def __init__(self) -> None:
        self.all: list[Gradient] = []
        self._pending: dict[int, list[Gradient]] = {}
        """By `id` of the parameter."""
        self._parameter_of: dict[int, int] = {}
        """By the gradient's storage."""

    def begin(self, parameter: torch.Tensor, *, adds: bool) -> Gradient:
        """A backward pass gives a parameter its gradient; `adds`: to what it has, else it had none."""
        key = id(parameter)
        if not adds:
            self._pending.pop(key, None)
        one = Gradient(parameter)
        one.is_used = not isinstance(parameter, nn.Parameter)
        self.all.append(one)
        self._pending.setdefault(key, []).append(one)
        return one

    def accumulate(self, one: Gradient, operations: Iterable[int], given: Iterable[torch.Tensor]) -> None:
        """Some of the operations that give it, and the tensors that they are about; sparse ones are not followed."""
        one.operations += operations
        parameter = one.parameter()
        for tensor in given:
            storage = one.storage = key_of(tensor)
            if not storage or parameter is None:
                one.is_used = True
            else:
                self._parameter_of[storage] = id(parameter)

    def clear(self, tensor: torch.Tensor) -> None:
        """A tensor is overwritten with zeros, a gradient perhaps."""
        key = self._parameter_of.get(key_of(tensor))
        if key is not None:
            self._pending.pop(key, None)

    def clip(self, tensor: torch.Tensor) -> None:
        """The norm of a tensor is taken to clip it."""
        for one in self._pending.get(self._parameter_of.get(key_of(tensor), 0), ()):
            one.is_clipped = True

    def step(self, optimizer: Any) -> None:
        """An optimizer has stepped with the gradients that its parameters have now."""
        for parameter in stepped_parameters([optimizer]):
            if parameter.grad is not None:
                self._use(parameter)

    def end(self, optimizers: Iterable[Any]) -> None:
        """No step follows; gradients that a living optimizer has yet to step with count as used."""
        has_optimizer = {id(parameter) for parameter in stepped_parameters(optimizers)}
        for one in self.all:
            parameter = one.parameter()
            if not has_optimizer or parameter is None:
                one.is_used = True
            elif id(parameter) not in has_optimizer:
                one.fate = "no_optimizer"
            elif parameter.grad is not None and one in self._pending.get(id(parameter), ()):
                one.is_used = True
        self._pending.clear()

    def _use(self, parameter: torch.Tensor) -> None:
        for one in self._pending.get(id(parameter), ()):
            if one.parameter() is parameter:
                one.is_used = True


def stepped_parameters(optimizers: Iterable[Any]) -> list[torch.Tensor]:
    """The parameters that some optimizers step; one that is not made yet has none."""
    groups = (group for optimizer in optimizers for group in getattr(optimizer, "param_groups", None) or ())
    return [one for group in groups for one in group.get("params", ()) if isinstance(one, torch.Tensor)]


def unused_gradients(work: StepWork, given: Sequence[Gradient], modules: Iterable[nn.Module]) -> list[UnusedGradients]:
    """Of the first step, by backward pass; `modules`: those that are alive, for the names of parameters."""
    flow = work.flow
    candidates = [one for one in given if not one.is_used]
    used = [number for one in given if one.is_used for number in one.operations]
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
    all_of_pass: dict[int, list[Numbered]] = defaultdict(list)
    for number, operation in enumerate(flow.operations):
        if operation.pass_number in by_pass:
            all_of_pass[operation.pass_number].append((number, operation))
    found = [
        _of_pass(work, all_of_pass[number], gradients, live=live, names=names) for number, gradients in by_pass.items()
    ]
    return [one for one in found if one is not None]


def _of_pass(
    work: StepWork,
    operations: Sequence[Numbered],
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
    caller = paths[work.graph.passes[operations[0][1].pass_number]]
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


def _until_it_comes_again(work: StepWork, number: int) -> list[Numbered]:
    """The operations of a backward pass and of those behind it, until the same line calls the next one."""
    caller, following = work.graph.passes[number], work.graph.passes[number + 1 :]
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


def _owners(modules: Iterable[nn.Module]) -> dict[int, _Owner]:
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


def unused_graphs(work: StepWork) -> list[UnusedGraph]:
    """Of the first step: where a graph is begun that ends without a backward pass.

    What is computed from the outputs of a model that is trained, and not differentiated (a metric), is none of these.
    """
    flow, operations = work.flow, work.operations
    graph = {number for number, one in enumerate(operations) if one.node >= 0 and one.computes}
    unused = graph - flow.reaching(graph.intersection(flow.alive()), by_graphs=True) - work.trained
    mine = [(number, work.path_of(number)) for number, _ in work.forward if number in graph]
    beginnings = wholly((path, number in unused) for number, path in mine)
    groups: dict[int, set[int]] = defaultdict(set)
    for number, path in mine:
        if path in beginnings:
            groups[work.places.number_of(outermost_of(path, beginnings)[-1])].add(number)
    found = [
        UnusedGraph(place=place, result_bytes=work.bytes_of(group), operators=work.uses(group))
        for place, group in groups.items()
    ]
    return sorted(found, key=lambda one: -one.result_bytes)


def kept_graphs(work: StepWork) -> list[KeptGraphs]:
    """Of the first step, by line: what has a graph still when the next step has ended, or is a part of a longer one."""
    operations = work.operations
    kept = _held({number: operations[number] for number in work.trained if operations[number].step == 0})
    kept -= {source for number in kept for source in operations[number].graph_inputs}  # whose graph others hold
    kept |= _made_longer(work.flow, work.trained)
    found: dict[int, list[int]] = defaultdict(list)
    for number in sorted(kept):
        if path := work.path_of(number):
            found[work.places.number_of(path[-1])].append(number)
    return [
        KeptGraphs(place=place, results=len(numbers), name=operations[numbers[0]].name)
        for place, numbers in found.items()
    ]


def _held(operations: Mapping[int, Operation]) -> set[int]:
    """Those whose result has a graph, and is in more than a variable, in which the next step may put another."""
    number_of: dict[int, int] = {}
    tensors: list[torch.Tensor] = []
    for number, one in operations.items():
        tensor = one.result() if one.result is not None else None
        if tensor is not None and tensor.grad_fn is not None:
            number_of[id(tensor)] = number
            tensors.append(tensor)
    if not tensors:
        return set()
    variables = (FrameType, CellType, GeneratorType)
    found: set[int] = set()
    asked = tuple(tensors)  # the call's own arguments, which hold them, too
    for holder in gc.get_referrers(*asked):  # once for all: it looks through all objects of the program
        is_variables = isinstance(holder, variables) or (isinstance(holder, dict) and "__builtins__" in holder)
        if not is_variables and holder is not tensors and holder is not asked:
            found.update(number_of[id(one)] for one in gc.get_referents(holder) if id(one) in number_of)
    return found


def _made_longer(flow: Flow, trained: Set[int]) -> set[int]:
    """The operations of the first step from which the same line's go on in the second one, as in a sum of losses."""
    crossing: set[int] = set()
    found = set()
    for number, one in enumerate(flow.operations):
        if one.step == 0 or one.node < 0:
            continue
        if any(source in crossing or flow.operations[source].step == 0 for source in one.graph_inputs):
            crossing.add(number)
            if number in trained:
                found |= _same_before(flow, number)
    return found


def _same_before(flow: Flow, number: int) -> set[int]:
    """What an operation goes on from that the same line called in the step before."""
    operations = flow.operations
    same = (operations[number].site.path, operations[number].name)
    before = flow.reaching([number], by_graphs=True)
    return {
        one for one in before if operations[one].step == 0 and (operations[one].site.path, operations[one].name) == same
    }

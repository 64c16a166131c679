"""Who holds tensors for long: modules their parameters and buffers, optimizers their state, autograd its graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from deepscope.capture import torch_compat
from deepscope.capture.memory.storages import storages
from deepscope.capture.process_hooks.live_objects import living as living_of
from deepscope.trace.format.held_memory import HELD_KINDS, Held

Holding = tuple[int, Any]
"""Index into `HELD_KINDS`, and a value with tensors in it."""

PARAMETERS, GRADIENTS, OPTIMIZER, INPUTS, ACTIVATIONS = range(len(HELD_KINDS))

_MOST_NODES = 300_000


class LiveObjects:
    """The modules and optimizers that are alive in this process; the tensors, and which of them are results of
    differentiable operations, where they were asked for."""

    def __init__(self) -> None:
        self.modules: list[Any] = []
        self.optimizers: list[Any] = []
        self.tensors: list[Any] = []
        self.results: list[Any] = []


def living(*, tensors: bool = False) -> LiveObjects:
    """All of them; tensors and results where they are asked for."""
    found = LiveObjects()
    found.modules, found.optimizers, *more = living_of([nn.Module, Optimizer, *([torch.Tensor] if tensors else [])])
    found.tensors = [one for kind in more for one in kind]
    found.results = [one for one in found.tensors if _is_result(one)]
    return found


def _is_result(tensor: Any) -> bool:
    with suppress(Exception):  # a view whose base was changed in a way that autograd forbids
        return tensor.grad_fn is not None
    return False


def held_by_living(found: LiveObjects) -> Iterator[Holding]:
    """Parameters, buffers, gradients and optimizers' state, each as often as it is held."""
    for module in found.modules:
        fields = module.__dict__
        for parameter in (fields.get("_parameters") or {}).values():
            yield from _with_gradient(parameter)
        for buffer in (fields.get("_buffers") or {}).values():
            yield PARAMETERS, buffer
    for optimizer in found.optimizers:
        yield from held_by_optimizer(optimizer)


def held_by_optimizer(optimizer: Any) -> Iterator[Holding]:
    """The parameters that an optimizer changes, their gradients, and its state."""
    for group in getattr(optimizer, "param_groups", None) or ():
        for one in group["params"]:
            yield from _with_gradient(one)
    state: Any
    for state in list((getattr(optimizer, "state", None) or {}).values()):
        yield OPTIMIZER, state


def _with_gradient(parameter: Any) -> Iterator[Holding]:
    if isinstance(parameter, torch.Tensor):
        yield PARAMETERS, parameter
        if parameter.is_leaf and parameter.grad is not None:
            yield GRADIENTS, parameter.grad


class Graph:
    """What a graph of autograd holds."""

    def __init__(self) -> None:
        self.leaves: list[torch.Tensor] = []
        """The tensors whose gradients it adds to."""
        self.kept: list[Held] = []
        """What it keeps for the backward pass. The storages alone, since the tensors must die with the pass."""

    def held_by_leaves(self) -> Iterator[Holding]:
        """The leaves and their gradients."""
        return (one for leaf in self.leaves for one in _with_gradient(leaf))


def walk(results: Iterable[Any]) -> Graph:
    """The graph behind some results: what it keeps for the backward pass, and the leaves that it ends in.

    Nothing is unpacked: what hooks keep elsewhere (checkpointing, offloading) is seen as they keep it.
    """
    graph = Graph()
    seen: set[Any] = set()
    left = [node for one in results for node in _nodes_of(one)]
    while left and len(seen) < _MOST_NODES:
        node = left.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        left += [following for following, _ in node.next_functions]
        if type(node).__name__ == "AccumulateGrad":
            graph.leaves.append(node.variable)
        for saved in torch_compat.saved_values(node):
            graph.kept += storages(ACTIVATIONS, saved)
    return graph


def _nodes_of(value: Any) -> list[Any]:
    """The node that made a tensor; or, since backward passes may begin at edges of a graph, an edge's own."""
    return [value.grad_fn if isinstance(value, torch.Tensor) else getattr(value, "node", None)]

"""What holds memory: tensors in values, modules, optimizers and graphs of autograd, told by their storages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from deepscope.capture import torch_compat
from deepscope.capture.process_hooks.live_objects import live_objects
from deepscope.trace.format.process_tables import HELD_KINDS, Held

_DEPTH = 4
_MOST = 10_000


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """The tensors in lists, tuples, mappings and objects that hold them; of a tensor that wraps others, those."""
    left = [_MOST]
    yield from _tensors(value, _DEPTH, left)


def _tensors(value: Any, depth: int, left: list[int]) -> Iterator[torch.Tensor]:
    left[0] -= 1
    if left[0] < 0:
        return
    kind = type(value)
    if issubclass(kind, torch.Tensor):
        yield from _plain(value, depth, left)
    elif depth and issubclass(kind, (list, tuple)):
        for one in value:
            yield from _tensors(one, depth - 1, left)
    elif depth and _is_mapping(kind):
        for one in list(value.values()):
            yield from _tensors(one, depth - 1, left)
    elif depth and kind.__module__ not in ("builtins", "torch") and hasattr(value, "__dict__"):
        for one in list(vars(value).values()):  # a batch of one's own class
            if issubclass(type(one), (torch.Tensor, list, tuple)) or _is_mapping(type(one)):
                yield from _tensors(one, depth - 1, left)


def _is_mapping(kind: type) -> bool:
    try:
        return issubclass(kind, Mapping)
    except TypeError:  # a class that cannot be hashed, as abstract classes ask of it
        return False


def _plain(tensor: Any, depth: int, left: list[int]) -> Iterator[torch.Tensor]:
    kind = type(tensor)
    if kind is torch.Tensor or kind is torch.nn.Parameter:
        yield tensor
    elif hasattr(kind, "__tensor_flatten__"):  # DTensor, quantized tensors: what they are made of
        for name in tensor.__tensor_flatten__()[0] if depth else ():
            yield from _tensors(getattr(tensor, name), depth - 1, left)
    elif kind.__torch_dispatch__ is torch.Tensor.__torch_dispatch__:
        yield tensor


Holding = tuple[int, Any]
"""Index into `HELD_KINDS`, and a value with tensors in it."""

PARAMETERS, GRADIENTS, OPTIMIZER, INPUTS, ACTIVATIONS = range(len(HELD_KINDS))

_MOST_NODES = 300_000
_DEVICE_TYPES = {"cpu": 0, "cuda": 1, "xla": 9, "xpu": 12, "mps": 13, "hpu": 15, "mtia": 19}
"""torch's DeviceType as its memory events have it; ROCm's devices call themselves `cuda`, too."""
_OTHER = 20
"""PrivateUse1: devices from outside torch."""


def storages(holdings: Iterable[Holding]) -> Iterator[Held]:
    """The storages of all tensors in the values; those that lie nowhere (fake, meta, released) are left out."""
    for kind, value in holdings:
        found = tensors_in(value)
        while True:
            try:
                held = _held(kind, next(found))
            except StopIteration:
                break
            except Exception:  # noqa: BLE001, S112  a tensor of somebody's own kind, which has no storage to show
                continue
            if held is not None:
                yield held


def _held(kind: int, tensor: torch.Tensor) -> Held | None:
    device = tensor.device
    if device.type == "meta":
        return None
    storage = tensor.untyped_storage()
    address, size = storage.data_ptr(), storage.nbytes()
    if not address or not size:
        return None
    index = -1 if device.type == "cpu" or device.index is None else device.index
    return Held(kind, _DEVICE_TYPES.get(device.type, _OTHER), index, address, size)


class LiveObjects:
    """The modules and optimizers that are alive in this process; where asked for, the tensors, and those of them that
    are results of differentiable operations."""

    def __init__(self, *, tensors: bool) -> None:
        kinds = [nn.Module, Optimizer, *([torch.Tensor] if tensors else [])]
        self.modules, self.optimizers, *more = live_objects(kinds)
        self.tensors: list[Any] = [one for kind in more for one in kind]
        self.results = [one for one in self.tensors if _is_result(one)]


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
    left = [_node_of(one) for one in results]
    while left and len(seen) < _MOST_NODES:
        node = left.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        left += [following for following, _ in node.next_functions]
        if torch_compat.gathers_gradient(node):
            graph.leaves.append(node.variable)
        for saved in torch_compat.saved_values(node):
            graph.kept += storages([(ACTIVATIONS, saved)])
    return graph


def _node_of(value: Any) -> Any:
    """The node that made a tensor; or, since backward passes may begin at edges of a graph, an edge's own."""
    return value.grad_fn if isinstance(value, torch.Tensor) else getattr(value, "node", None)

"""What became of the gradients that backward passes gave to parameters."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

import torch
from torch import nn

from deepscope.capture.audit.flow import Flow
from deepscope.trace.format.audit import GradientFate


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

    def __init__(self, flow: Flow) -> None:
        self.all: list[Gradient] = []
        self._flow = flow
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
            storage = one.storage = self._flow.key_of(tensor)
            if not storage or parameter is None:
                one.is_used = True
            else:
                self._parameter_of[storage] = id(parameter)

    def clear(self, tensor: torch.Tensor) -> None:
        """A tensor is overwritten with zeros, a gradient perhaps."""
        key = self._parameter_of.get(self._flow.key_of(tensor))
        if key is not None:
            self._pending.pop(key, None)

    def clip(self, tensor: torch.Tensor) -> None:
        """The norm of a tensor is taken to clip it."""
        for one in self._pending.get(self._parameter_of.get(self._flow.key_of(tensor), 0), ()):
            one.is_clipped = True

    def step(self, optimizer: Any) -> None:
        """An optimizer has stepped with the gradients that its parameters have now."""
        for parameter in _parameters_of(optimizer):
            if parameter.grad is not None:
                self._use(parameter)

    def end(self, optimizers: Iterable[Any]) -> None:
        """No step follows; gradients that a living optimizer has yet to step with count as used."""
        has_optimizer = set()
        for optimizer in optimizers:
            for parameter in _parameters_of(optimizer):
                has_optimizer.add(id(parameter))
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


def _parameters_of(optimizer: Any) -> list[torch.Tensor]:
    groups = getattr(optimizer, "param_groups", None) or ()
    return [one for group in groups for one in group.get("params", ()) if isinstance(one, torch.Tensor)]

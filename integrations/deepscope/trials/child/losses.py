"""The roots of backward passes, kept on the device and read when the run is over, and their rounding noise."""

from __future__ import annotations

import math
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

from deepscope.trials.child.steps import StepClock

_SCALED = 16
"""So many newest products of a `GradScaler` are remembered; backward follows at once."""


class Roots:
    """Roots of `backward()` in order, each as one number on its device: of several values, their sum."""

    def __init__(self) -> None:
        self._kept: list[Any] = []
        self._scaled: deque[tuple[Any, Any]] = deque(maxlen=_SCALED)
        self._first: list[Callable[[], None]] = []

    def start(self) -> None:
        """Wrap what all backward passes go through. Nothing in torch tells of them: the process is ours alone."""
        backward = torch.autograd.backward

        def kept(tensors: Any, *arguments: Any, **keywords: Any) -> Any:
            for one in (tensors,) if isinstance(tensors, torch.Tensor) else tuple(tensors):
                self._keep(one)
            return backward(tensors, *arguments, **keywords)

        torch.autograd.backward = kept
        scaler = getattr(torch.amp, "GradScaler", None) or torch.cuda.amp.GradScaler
        scale = scaler.scale

        def scaled(self_: Any, outputs: Any) -> Any:
            found = scale(self_, outputs)
            if isinstance(outputs, torch.Tensor) and found is not outputs:
                self._scaled.append((weakref.ref(found), outputs.detach().clone()))
            return found

        scaler.scale = scaled

    def at_first(self, action: Callable[[], None]) -> None:
        """Call it before the first backward pass."""
        self._first.append(action)

    def _keep(self, root: Any) -> None:
        while self._first:
            self._first.pop()()
        plain = next((loss for scaled, loss in self._scaled if scaled() is root), root)
        with torch.no_grad():
            value = plain.detach()
            self._kept.append(value.clone() if value.dim() == 0 else value.sum())

    def read(self) -> list[float]:
        """The numbers so far, from the device."""
        return [_number(one) for one in self._kept]


def _number(value: Any) -> float:
    if value.is_complex():
        value = torch.view_as_real(value).sum()
    number = float(value)
    return number if math.isfinite(number) or math.isnan(number) else math.copysign(math.inf, number)


SEED = 0
_OF_GRADIENTS = 8.0
"""Roundings of a gradient's root mean square."""


class Rounding:
    """Adds noise with random numbers of its own; the program's are not drawn from."""

    def __init__(self, share: float) -> None:
        self._share = share
        self._generators: dict[Any, Any] = {}

    def start(self, clock: StepClock) -> None:
        """Change gradients before each step, and parameters behind it."""
        torch.set_num_threads(1 if torch.get_num_threads() > 1 else 2)
        register_optimizer_step_pre_hook(lambda optimizer, *_: self._change_gradients(_parameters(optimizer)))
        clock.at_each(lambda optimizer: self._change(_parameters(optimizer)))

    def change_module(self, module: Any) -> None:
        """Change a module's parameters before its first call."""
        self._change(module.parameters())

    def _change(self, parameters: Iterable[Any]) -> None:
        with torch.no_grad():
            for one in parameters:
                if one.is_floating_point():
                    one.mul_(1 + self._share * self._signs(one))

    def _change_gradients(self, parameters: Iterable[Any]) -> None:
        with torch.no_grad():
            for one in parameters:
                gradient = one.grad
                if gradient is not None and gradient.is_floating_point() and not gradient.is_sparse:
                    size = gradient.square().mean().sqrt()
                    gradient.add_(_OF_GRADIENTS * self._share * size * self._signs(gradient))

    def _signs(self, like: Any) -> Any:
        """Of -1 and 1 at random."""
        generator = self._generators.get(like.device)
        if generator is None:
            generator = self._generators[like.device] = torch.Generator(like.device).manual_seed(SEED)
        drawn = torch.randint(0, 2, like.shape, generator=generator, device=like.device, dtype=torch.int8)
        return 2 * drawn.to(like.dtype) - 1


def _parameters(optimizer: Any) -> Iterable[Any]:
    return (one for group in optimizer.param_groups for one in group["params"])

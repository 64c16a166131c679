"""What rounding does to a program's losses: an unchanged run with noise of the size of one rounding in it.

Another order of a sum changes it by some roundings of its terms, which in a gradient may be far larger than the sum. So
gradients get noise by their size as a whole, parameters by their own, and the host another number of threads.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

from deepscope.trials.child.steps import StepClock

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

"""The steps of a run: when each was done, the roots of their backward passes, and rounding noise put into them.

Roots, which are losses, are kept on the device and read when the run is over.
"""

from __future__ import annotations

import math
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from time import perf_counter_ns
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

from deepscope.capture.process_hooks import optimizer_steps

FEWEST_TIMED = 5
"""A run that ends by the clock has timed so many steps at least."""
_WAITS = 10
"""On a device, so often in a run the host waits for it: each wait takes some of the overlap of host and device."""
SEED = 0
_OF_GRADIENTS = 8.0
"""Roundings of a gradient's root mean square."""
_SCALED = 16
"""So many newest products of a `GradScaler` are remembered; backward follows at once."""


class StepClock:
    """Counts the steps of the optimizer that steps first, else backward passes; calls `on_end` behind the last one.

    Without a device each step has a mark. With one, whose work goes on behind the step, the host waits for it at the
    end of the warm-up and some ten times later; only those steps have marks.
    """

    def __init__(self, *, warmup: int, steps: int, seconds: float | None, on_end: Callable[[], None]) -> None:
        self._warmup, self._steps, self._seconds = warmup, steps, seconds
        self._on_end = on_end
        self._leader: Any = None
        self._optimizers: dict[int, Any] = {}
        self._each: list[Callable[[Any], None]] = []
        self._warming: list[Callable[[], object]] = []
        self.count = 0
        self.marks: list[tuple[int, int]] = []

    def start(self) -> None:
        """Listen to optimizers."""
        optimizer_steps.listen_to_steps(self._stepped)

    def while_warming(self, action: Callable[[], object]) -> None:
        """Call it behind each step of the warm-up."""
        self._warming.append(action)

    def at_each(self, action: Callable[[Any], None]) -> None:
        """Call it with the optimizer behind each step of any."""
        self._each.append(action)

    @property
    def optimizers(self) -> list[Any]:
        """Those that have stepped, in order."""
        return list(self._optimizers.values())

    def _stepped(self, optimizer: Any, *_: Any) -> None:
        if self._leader is None:
            self._leader = optimizer
        if self.count < self._warmup and not isinstance(optimizer, optimizer_steps.BackwardPasses):
            self._optimizers.setdefault(id(optimizer), optimizer)
        for action in self._each:
            action(optimizer)
        if optimizer is not self._leader:
            return
        self.count += 1
        if self.count <= self._warmup:
            for warm in self._warming:
                warm()
        timed = self.count - self._warmup
        if torch.cuda.is_initialized():
            apart = max(1, self._steps // _WAITS)
            if timed < 0 or (timed % apart and timed < self._steps):
                return
            torch.cuda.synchronize()
        self.marks.append((self.count, perf_counter_ns()))
        if timed >= self._steps or (self._seconds is not None and self._is_over(timed)):
            self._on_end()

    def _is_over(self, timed: int) -> bool:
        first = next((mark for mark in self.marks if mark[0] >= self._warmup), None)
        assert self._seconds is not None
        return timed >= FEWEST_TIMED and first is not None and self.marks[-1][1] - first[1] > self._seconds * 1e9


class BackwardRoots:
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


class RoundingNoise:
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

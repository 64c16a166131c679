"""The roots of backward passes: what a program trains on, kept on the device and read when the run is over."""

from __future__ import annotations

import math
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

import torch

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

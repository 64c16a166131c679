"""A few slow steps (DS012): every sixth step saves the weights, and none does."""

from __future__ import annotations

import io
from collections.abc import Callable

import torch


def make(mended: bool) -> Callable[[], None]:
    """A training step; `mended` saves nothing before the end."""
    weights = {f"layer{number}": torch.randn(384, 384) for number in range(24)}
    turn = 0

    def step() -> None:
        nonlocal turn
        turn += 1
        x = torch.randn(64, 384)
        for weight in weights.values():
            x = torch.tanh(x @ weight)
        if not mended and turn % 6 == 0:
            torch.save(weights, io.BytesIO())

    return step

"""A few slow steps (DS012): every sixth step evaluates the model, and none does."""

from __future__ import annotations

from collections.abc import Callable

import torch


def evaluate(weights: list[torch.Tensor]) -> float:
    """What the model makes of a few more batches."""
    total = 0.0
    for _ in range(6):
        x = torch.randn(64, 384)
        for weight in weights:
            x = torch.tanh(x @ weight)
        total += x.mean().item()
    return total


def make(mended: bool) -> Callable[[], None]:
    """A training step; `mended` evaluates once, after the last."""
    weights = [torch.randn(384, 384) for _ in range(24)]
    turn = 0

    def step() -> None:
        nonlocal turn
        turn += 1
        x = torch.randn(64, 384)
        for weight in weights:
            x = torch.tanh(x @ weight)
        if not mended and turn % 6 == 0:
            evaluate(weights)

    return step

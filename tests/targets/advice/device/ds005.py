"""Idle device (DS005): pictures are drawn by Python between two steps, and once."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn


def drawn() -> list[float]:
    """A mask with every seventh place left out."""
    return [float(number % 7 != 0) for number in range(64 * 1024)]  # @mistake


def make(mended: bool) -> Callable[[], None]:
    """A training step; `mended` draws its mask once."""
    model = nn.Sequential(nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 1024))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True)
    batch, kept = torch.randn(4096, 1024), drawn()

    def step() -> None:
        numbers = kept if mended else drawn()
        scale = numbers[1]
        optimizer.zero_grad()
        loss = model(batch).mul(scale).square().mean()
        loss.backward()
        optimizer.step()
        loss.item()

    return step

"""Gradient clipping holds up the device (DS024): the norm is looked at as gradients are clipped, and is not."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn


def make(mended: bool) -> Callable[[], None]:
    """A training step; `mended` does not ask whether the norm is finite."""
    layers = [layer for _ in range(24) for layer in (nn.Linear(1024, 1024), nn.GELU())]
    model = nn.Sequential(*layers)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    batch = torch.randn(8192, 1024)

    def step() -> None:
        order = sorted(range(16000), key=lambda number: number % 7)  # what the CPU does for each batch
        assert order[0] == 0
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=not mended)  # @mistake
        optimizer.step()

    return step

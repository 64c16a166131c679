"""Memory formats converted around convolutions (DS017): pictures in `channels_last` alone, and the model, too."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn


def make(mended: bool) -> Callable[[], None]:
    """A training step; `mended` has the weights in the pictures' format."""
    model = nn.Sequential(*(part for _ in range(3) for part in (nn.Conv2d(256, 256, 3, padding=1), nn.ReLU())))
    if mended:
        model = model.to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True)
    batch = torch.randn(4, 256, 6, 6).to(memory_format=torch.channels_last)

    def step() -> None:
        optimizer.zero_grad()
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()

    return step

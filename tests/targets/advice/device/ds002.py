"""Blocking copies to the device (DS002): images in ordinary memory, and in pinned memory."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn


def make(mended: bool) -> Callable[[], None]:
    """A training step; `mended` copies out of pinned memory, beside what the CPU does."""
    model = nn.Sequential(nn.Conv2d(3, 32, 7, stride=4), nn.ReLU(), nn.Conv2d(32, 64, 3, stride=2), nn.ReLU())
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True)
    images = torch.randn(128, 3, 224, 224, device="cpu", pin_memory=mended)

    def step() -> None:
        batch = images.to("cuda", non_blocking=mended)  # @mistake
        optimizer.zero_grad()
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()
        loss.item()

    return step

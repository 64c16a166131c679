"""Many tiny kernels (DS004): an optimizer that updates one parameter after the other, and a fused one."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn


def make(mended: bool) -> Callable[[], None]:
    """A training step; `mended` has the optimizer update all parameters in one kernel."""
    model = nn.Sequential(*(nn.Linear(256, 256) for _ in range(48)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=mended, foreach=False)
    batch = torch.randn(64, 256)

    def step() -> None:
        optimizer.zero_grad()
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()  # @mistake
        loss.item()

    return step

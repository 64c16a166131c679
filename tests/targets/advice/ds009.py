"""Gradients zeroed in place (DS009): `set_to_none=False`, and the default."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn


def make(mended: bool) -> Callable[[], None]:
    """A training step; `mended` lets go of the gradients."""
    model = nn.Sequential(*(nn.Linear(120, 120, bias=False) for _ in range(48)))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True)
    batch = torch.randn(1, 120)

    def step() -> None:
        optimizer.zero_grad(set_to_none=mended)
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()

    return step

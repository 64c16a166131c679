"""An optimizer that loops over parameters (DS011): AdamW as it comes on the CPU, and fused."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn


def make(mended: bool) -> Callable[[], None]:
    """A training step; `mended` takes one fused step for all parameters."""
    model = nn.Sequential(*(nn.Linear(128, 128) for _ in range(32)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=mended or None)
    batch = torch.randn(64, 128)

    def step() -> None:
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()

    return step

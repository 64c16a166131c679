"""Anomaly detection left on (DS022), and off."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn


def make(mended: bool) -> Callable[[], None]:
    """A training step; `mended` looks for no anomalies."""
    model = nn.Sequential(*(part for _ in range(6) for part in (nn.Linear(256, 256), nn.LayerNorm(256), nn.GELU())))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True)
    batch = torch.randn(128, 256)
    torch.autograd.set_detect_anomaly(not mended)

    def step() -> None:
        optimizer.zero_grad()
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()

    return step

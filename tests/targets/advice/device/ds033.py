"""Gradients that nobody uses (DS033): layers that no optimizer changes, with gradients and without."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

AUDITED = True
"""The mistake shows in steps that are looked at."""


def make(mended: bool) -> Callable[[], None]:
    """A training step of a head alone; `mended` asks for no gradients of what lies below it."""
    layers = [layer for _ in range(8) for layer in (nn.Linear(2048, 2048), nn.GELU())]
    backbone, head = nn.Sequential(*layers), nn.Linear(2048, 10)
    backbone.requires_grad_(not mended)
    optimizer = torch.optim.SGD(head.parameters(), lr=1e-3, fused=True)
    batch = torch.randn(2048, 2048)

    def step() -> None:
        optimizer.zero_grad()
        features = backbone(batch)  # @mistake
        loss = head(features).square().mean()
        loss.backward()
        optimizer.step()
        loss.item()

    return step

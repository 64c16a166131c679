"""Device synchronisation in the hot loop (DS001): the loss of each part of a batch is read, and kept on the device."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

PARTS = 6


def make(mended: bool) -> Callable[[], None]:
    """A training step that gathers gradients over parts of a batch; `mended` sums the losses on the device."""
    layers = [layer for _ in range(16) for layer in (nn.Linear(1024, 1024), nn.GELU())]
    model = nn.Sequential(*layers)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True)
    batch = torch.randn(PARTS, 3072, 1024)

    def step() -> None:
        optimizer.zero_grad()
        total = 0.0
        for part in batch.unbind():
            order = sorted(range(8000), key=lambda number: number % 7)  # what the CPU does for each part
            assert order[0] == 0
            loss = model(part).square().mean()
            loss.backward()
            total += loss.detach() if mended else loss.item()  # @mistake
        optimizer.step()

    return step

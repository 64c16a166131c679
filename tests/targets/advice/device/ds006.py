"""float32 products without tensor cores (DS006): float32 as it is, and by TF32."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn


def make(mended: bool) -> Callable[[], None]:
    """A training step; `mended` allows TF32."""
    torch.set_float32_matmul_precision("high" if mended else "highest")
    model = nn.Sequential(nn.Linear(2048, 8192), nn.GELU(), nn.Linear(8192, 2048))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True)
    batch = torch.randn(4096, 2048)

    def step() -> None:
        optimizer.zero_grad()
        loss = model(batch).square().mean()  # @mistake
        loss.backward()
        optimizer.step()
        loss.item()

    return step

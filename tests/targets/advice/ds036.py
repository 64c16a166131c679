"""Computed with 64 bits (DS036): data that NumPy made is float64, and the model was made double to fit it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import nn

AUDITED = True
"""The mistake shows in steps that are looked at."""


class Regressor(nn.Module):
    """Two hidden layers over normalized columns."""

    def __init__(self, columns: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(columns, 512), nn.GELU(), nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 1)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = (x - x.mean(dim=0)) / (x.std(dim=0) + 1e-6)
        return self.layers(x).squeeze(-1)


def make(mended: bool) -> Callable[[], None]:
    """A training step; `mended` makes the data float32 where it comes from."""
    table = np.random.default_rng(0).normal(size=(2048, 65))
    data = torch.from_numpy(table).float() if mended else torch.from_numpy(table)
    model = Regressor(64) if mended else Regressor(64).double()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True)
    rows = torch.arange(256)

    def step() -> None:
        batch = data[rows]
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(batch[:, :64]), batch[:, 64])
        loss.backward()
        optimizer.step()

    return step

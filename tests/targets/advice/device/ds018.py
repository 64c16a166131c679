"""Parameters cast over and over (DS018): autocast in each call of a cell, and around all of them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

import torch
from torch import nn


class Cell(nn.Module):
    """A recurrent cell."""

    def __init__(self, width: int, mended: bool) -> None:
        super().__init__()
        self.rise, self.fall = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.mended = mended

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with nullcontext() if self.mended else torch.autocast("cuda", dtype=torch.bfloat16):
            return x + torch.tanh(self.fall(torch.relu(self.rise(x))))  # @mistake


def make(mended: bool) -> Callable[[], None]:
    """A training step; `mended` enters autocast once."""
    cell = Cell(4096, mended)
    optimizer = torch.optim.SGD(cell.parameters(), lr=1e-3, fused=True)
    batch = torch.randn(256, 4096)

    def step() -> None:
        optimizer.zero_grad()
        x = batch
        with torch.autocast("cuda", dtype=torch.bfloat16) if mended else nullcontext():
            for _ in range(12):
                x = cell(x)
        loss = x.float().square().mean()
        loss.backward()
        optimizer.step()
        loss.item()

    return step

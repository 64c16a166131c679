"""Recomputed activations (DS008): each block is checkpointed, and none is."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Block(nn.Module):
    """A feed-forward layer with a residual connection."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.rise, self.fall = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.nn.functional.gelu(self.rise(self.norm(x)))
        return x + self.fall(y)


class Stack(nn.Module):
    """Blocks on blocks."""

    def __init__(self, mended: bool) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block(128) for _ in range(4))
        self.mended = mended

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = block(x) if self.mended else checkpoint(block, x, use_reentrant=False)
        return x


def make(mended: bool) -> Callable[[], None]:
    """A training step; `mended` keeps its activations."""
    model = Stack(mended)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True)
    batch = torch.randn(256, 128)

    def step() -> None:
        optimizer.zero_grad()
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()

    return step

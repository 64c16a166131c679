"""The same work over and over (DS035): positions and a mask are computed in each forward pass, and kept."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

AUDITED = True
"""The mistake shows in steps that are looked at."""


def relative(length: int, width: int) -> torch.Tensor:
    """A bias for each pair of places, by their distance; shape (length, length)."""
    distance = (torch.arange(length)[:, None] - torch.arange(length)[None, :]).float()
    rates = torch.exp(-torch.arange(width).float() / width)
    bias = torch.cos(distance[..., None] * rates).mean(dim=-1)
    return bias.masked_fill(distance < 0, float("-inf"))


class Attention(nn.Module):
    """Attends to what came before, with a bias by distance."""

    def __init__(self, length: int, mended: bool) -> None:
        super().__init__()
        self.mended = mended
        self.query, self.key, self.value = (nn.Linear(64, 64) for _ in range(3))
        self.register_buffer("bias", relative(length, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        bias = self.bias if self.mended else relative(x.shape[1], 8)
        return nn.functional.scaled_dot_product_attention(self.query(x), self.key(x), self.value(x), attn_mask=bias)


def make(mended: bool) -> Callable[[], None]:
    """A training step; `mended` keeps the bias as a buffer."""
    model = Attention(256, mended)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True)
    batch = torch.randn(16, 256, 64)

    def step() -> None:
        optimizer.zero_grad()
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()

    return step

"""Unfused attention (DS010): attention written out, and torch's fused kernel."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn


class Attention(nn.Module):
    """Causal attention of several heads."""

    def __init__(self, width: int, heads: int, mended: bool) -> None:
        super().__init__()
        self.heads, self.mended = heads, mended
        self.project_in, self.project_out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = self.project_in(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        if self.mended:
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = q @ k.transpose(-2, -1) * (width // self.heads) ** -0.5
            hidden = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
            scores = scores.masked_fill(hidden, float("-inf"))
            y = torch.softmax(scores, dim=-1) @ v  # @mistake
        return self.project_out(y.transpose(1, 2).reshape(batch, length, width))


def make(mended: bool) -> Callable[[], None]:
    """A training step; `mended` calls `scaled_dot_product_attention`."""
    model = nn.Sequential(*(Attention(1024, 16, mended) for _ in range(4))).to(torch.bfloat16)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True)
    batch = torch.randn(8, 1024, 1024, dtype=torch.bfloat16)

    def step() -> None:
        optimizer.zero_grad()
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()
        loss.item()

    return step

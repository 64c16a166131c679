"""Modules alike called one after the other (DS046): attention by a list of heads, each with weights of its own."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional as F

AUDITED = True
"""The mistake shows in steps that are looked at."""
SIZE, HEADS = 64, 8


def attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """Of any number of heads; linear, so that no fused kernel is due."""
    return F.elu(query) @ (F.elu(key).transpose(-2, -1) @ value)


class Head(nn.Module):
    """One head of attention."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(SIZE, SIZE // HEADS, bias=False) for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return attention(self.query(x), self.key(x), self.value(x))


class AllHeads(nn.Module):
    """All heads in one call."""

    def __init__(self) -> None:
        super().__init__()
        self.projections = nn.Linear(SIZE, 3 * SIZE, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        query, key, value = self.projections(x).unflatten(2, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        return attention(query, key, value).transpose(1, 2).flatten(2)


class Block(nn.Module):
    """Attention with its projection; `mended` has all heads in one module."""

    def __init__(self, mended: bool) -> None:
        super().__init__()
        self.heads = AllHeads() if mended else nn.ModuleList([Head() for _ in range(HEADS)])
        self.projection = nn.Linear(SIZE, SIZE)
        self.mended = mended

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.mended:
            return x + self.projection(self.heads(x))
        parts = [head(x) for head in self.heads]
        return x + self.projection(torch.cat(parts, dim=-1))


def make(mended: bool) -> Callable[[], None]:
    """A training step."""
    model = nn.Sequential(*(Block(mended) for _ in range(3)), nn.Linear(SIZE, 32))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batches = torch.Generator().manual_seed(0)

    def step() -> None:
        x = torch.randn(8, 32, SIZE, generator=batches)
        labels = torch.randint(32, (8 * 32,), generator=batches)
        optimizer.zero_grad()
        F.cross_entropy(model(x).flatten(0, 1), labels).backward()
        optimizer.step()

    return step

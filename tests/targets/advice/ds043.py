"""Large tensors between small ones (DS043): the distances of all pairs are taken of differences that are written out."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

AUDITED = True
"""The mistake shows in steps that are looked at."""


class Prototypes(nn.Module):
    """Names the nearest of some learnt points."""

    def __init__(self, mended: bool) -> None:
        super().__init__()
        self.mended = mended
        self.body = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 32))
        self.points = nn.Parameter(torch.randn(64, 32))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.body(x)
        if self.mended:
            return torch.cdist(y, self.points).square().neg()
        return (y[:, None] - self.points).square().sum(dim=-1).neg()


def make(mended: bool) -> Callable[[], None]:
    """A training step; `mended` has an operator for distances."""
    model = Prototypes(mended)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batches = torch.Generator().manual_seed(0)

    def step() -> None:
        x = torch.randn(512, 64, generator=batches)
        labels = torch.randint(0, 64, (512,), generator=batches)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), labels).backward()
        optimizer.step()

    return step

"""Results that nobody uses (DS037): a classifier's head for edges is called in each step, and its output is dropped."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

AUDITED = True
"""The mistake shows in steps that are looked at."""


class Classifier(nn.Module):
    """Names the class of an image, and draws its edges."""

    def __init__(self, mended: bool) -> None:
        super().__init__()
        self.mended = mended
        self.body = nn.Sequential(nn.Conv2d(3, 24, 3, padding=1), nn.ReLU(), nn.Conv2d(24, 24, 3, padding=1), nn.ReLU())
        self.edges = nn.Sequential(nn.Conv2d(24, 24, 3, padding=1), nn.ReLU(), nn.Conv2d(24, 1, 1), nn.Sigmoid())
        self.head = nn.Linear(24, 10)

    def forward(self, images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
        features = self.body(images)
        if self.mended:
            return self.head(features.mean((2, 3))), None
        edges = self.edges(features)
        return self.head(features.mean((2, 3))), edges


def make(mended: bool) -> Callable[[], None]:
    """A training step; `mended` draws no edges."""
    model = Classifier(mended)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batches = torch.Generator().manual_seed(0)

    def step() -> None:
        images = torch.randn(8, 3, 64, 64, generator=batches)
        labels = torch.randint(0, 10, (8,), generator=batches)
        optimizer.zero_grad()
        logits, _ = model(images)
        nn.functional.cross_entropy(logits, labels).backward()
        optimizer.step()

    return step

"""Gradients that nobody uses (DS033): a backbone that no optimizer has is differentiated, and is frozen."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

AUDITED = True
"""The mistake shows in steps that are looked at."""


class Classifier(nn.Module):
    """A head on a backbone that is trained already."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU()
        )
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(32 * 64, 64), nn.ReLU(), nn.Linear(64, 10))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        features = self.backbone(x)
        return self.head(features)


def make(mended: bool) -> Callable[[], None]:
    """A training step; `mended` freezes the backbone."""
    model = Classifier()
    if mended:
        model.backbone.requires_grad_(False)
    optimizer = torch.optim.SGD(model.head.parameters(), lr=1e-3, momentum=0.9, fused=True)
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(torch.randn(64, 3, 16, 16), torch.randint(10, (64,))), batch_size=64
    )
    (batch, labels), *_ = loader

    def step() -> None:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(batch), labels)
        loss.backward()
        nn.utils.clip_grad_norm_(model.head.parameters(), 1.0)
        optimizer.step()

    return step

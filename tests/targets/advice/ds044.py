"""Copies of what could be read in place (DS044): each augmentation clones the images, and then only reads the clone."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

AUDITED = True
"""The mistake shows in steps that are looked at."""


class Jitter(nn.Module):
    """Makes each image brighter or darker by chance."""

    def __init__(self, mended: bool) -> None:
        super().__init__()
        self.mended = mended

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        shown = images if self.mended else images.clone()
        return shown * torch.empty(len(images), 1, 1, 1).uniform_(0.8, 1.25)


def make(mended: bool) -> Callable[[], None]:
    """A training step; `mended` reads the images themselves."""
    augmentations = nn.Sequential(*(Jitter(mended) for _ in range(6)))
    model = nn.Sequential(nn.AdaptiveAvgPool2d(8), nn.Flatten(), nn.Linear(3 * 64, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batches = torch.Generator().manual_seed(0)

    def step() -> None:
        images = torch.rand(32, 3, 160, 160, generator=batches)
        labels = torch.randint(0, 10, (32,), generator=batches)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(augmentations(images)), labels).backward()
        optimizer.step()

    return step

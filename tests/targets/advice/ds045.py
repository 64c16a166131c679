"""Several backward passes through one graph (DS045): each of three losses goes back through the trunk by itself."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional as F


class ThreeTasks(nn.Module):
    """A convolutional trunk with a class, a box and a score on top."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(3, 16, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(16, 16, 3, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(4),
            nn.Flatten(),
        )
        self.heads = nn.ModuleList([nn.Linear(256, size) for size in (10, 4, 1)])

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        features = self.trunk(x)
        return [head(features) for head in self.heads]


def make(mended: bool) -> Callable[[], None]:
    """A training step; `mended` adds the losses."""
    model = ThreeTasks()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batches = torch.Generator().manual_seed(0)

    def step() -> None:
        images = torch.randn(16, 3, 32, 32, generator=batches)
        label, box, score = model(images)
        losses = [
            F.cross_entropy(label, torch.randint(10, (16,), generator=batches)),
            F.smooth_l1_loss(box, torch.rand(16, 4, generator=batches)),
            F.binary_cross_entropy_with_logits(score, torch.rand(16, 1, generator=batches)),
        ]
        optimizer.zero_grad()
        if mended:
            sum(losses).backward()
        else:
            for loss in losses:
                loss.backward(retain_graph=True)
        optimizer.step()

    return step

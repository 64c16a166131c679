"""A graph without a backward pass (DS038): a teacher is called with autograd, and its logits are detached behind it."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional as F

AUDITED = True
"""The mistake shows in steps that are looked at."""


class Distillation(nn.Module):
    """A student's loss beside a larger teacher."""

    def __init__(self, mended: bool) -> None:
        super().__init__()
        self.mended = mended
        self.teacher = nn.Sequential(*(layer for _ in range(16) for layer in (nn.Linear(128, 128), nn.GELU())))
        self.student = nn.Sequential(nn.Linear(128, 64), nn.GELU(), nn.Linear(64, 128))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.set_grad_enabled(not self.mended):
            wanted = self.teacher(x).detach()
        return F.kl_div(self.student(x).log_softmax(1), wanted.softmax(1), reduction="batchmean")


def make(mended: bool) -> Callable[[], None]:
    """A training step; `mended` calls the teacher without autograd."""
    model = Distillation(mended)
    optimizer = torch.optim.SGD(model.student.parameters(), lr=0.01)
    batches = torch.Generator().manual_seed(0)

    def step() -> None:
        optimizer.zero_grad()
        model(torch.randn(256, 128, generator=batches)).backward()
        optimizer.step()

    return step

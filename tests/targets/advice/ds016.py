"""Gradients summed in every backward pass (DS016): four passes before each step, and `no_sync` in all but the last."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

import torch
from partner import with_partner
from torch import nn

WAITS = True


def make(mended: bool) -> Callable[[], None]:
    """A training step beside a partner; `mended` sums the gradients once."""
    return with_partner(_make, mended)


def _make(mended: bool) -> Callable[[], None]:
    model = nn.Sequential(*(nn.Linear(1024, 1024) for _ in range(3)))
    parallel = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True)
    batch = torch.randn(8, 1024)

    def step() -> None:
        optimizer.zero_grad()
        for number in range(4):
            with parallel.no_sync() if mended and number < 3 else nullcontext():
                parallel(batch).square().mean().backward()
        optimizer.step()

    return step

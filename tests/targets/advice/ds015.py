"""Many small collectives (DS015): gradients summed over the ranks one by one, and all in one tensor."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.distributed as dist
from partner import with_partner
from torch import nn

WAITS = True


def make(mended: bool) -> Callable[[], None]:
    """A training step beside a partner; `mended` sums in one call."""
    return with_partner(_make, mended)


def _make(mended: bool) -> Callable[[], None]:
    model = nn.Sequential(*(nn.Linear(64, 64) for _ in range(16)))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True)
    parameters = list(model.parameters())
    batch = torch.randn(512, 64)

    def step() -> None:
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        if mended:
            together = torch.cat([one.grad.flatten() for one in parameters])
            dist.all_reduce(together)
            parts = together.split([one.numel() for one in parameters])
            for one, part in zip(parameters, parts, strict=True):
                one.grad = part.view_as(one)
        else:
            for one in parameters:
                dist.all_reduce(one.grad)
        optimizer.step()

    return step

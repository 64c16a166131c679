"""Logs and metrics in every step (DS019): a tensor printed in each one, and a number in one of a hundred."""

from __future__ import annotations

import io
from collections.abc import Callable

import torch
from torch import nn


def make(mended: bool) -> Callable[[], None]:
    """A training step; `mended` prints seldom."""
    model = nn.Sequential(*(nn.Linear(128, 128) for _ in range(12)))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True)
    batch = torch.randn(64, 128)
    console = io.StringIO()
    count = 0

    def step() -> None:
        nonlocal count
        count += 1
        optimizer.zero_grad()
        loss = model(batch).square().mean()
        loss.backward()
        if mended:
            if count % 100 == 0:
                print(count, loss.item(), file=console)
        else:
            print(count, loss, model[0].weight.grad, file=console)
        optimizer.step()

    return step

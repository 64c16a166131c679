"""Many tiny operators (DS007): a loss that is summed one element at a time, and at once."""

from __future__ import annotations

from collections.abc import Callable

import torch


def make(mended: bool) -> Callable[[], None]:
    """A training step; `mended` works on the whole tensor."""
    weight = torch.randn(256, 256)
    target = torch.randn(64)

    def step() -> None:
        x = torch.randn(64, 256)
        for _ in range(20):
            x = torch.tanh(x @ weight)
        guess = x.mean(1)
        total = 0.0
        if mended:
            total = ((guess - target) ** 2).sum().item()
        else:
            for row in range(64):
                for _ in range(12):
                    total += (guess[row] - target[row]).square().item()
        assert total == total

    return step

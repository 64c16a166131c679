"""A line of Python that takes long (DS013): masks made from lists of numbers, and by torch."""

from __future__ import annotations

from collections.abc import Callable

import torch


def make(mended: bool) -> Callable[[], None]:
    """A training step; `mended` leaves the arithmetic to torch."""
    weight = torch.randn(256, 256)

    def step() -> None:
        x = torch.randn(64, 256)
        if mended:
            mask = (torch.arange(64 * 256) % 7 != 0).float()
        else:
            mask = torch.tensor([float(number % 7 != 0) for number in range(64 * 256)])
        x = x * mask.view(64, 256)
        for _ in range(20):
            x = torch.tanh(x @ weight)

    return step

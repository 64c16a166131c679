"""Loader workers started anew (DS021): for each short epoch, and kept by `persistent_workers`."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch.utils.data import DataLoader, TensorDataset

WAITS = True


def make(mended: bool) -> Callable[[], None]:
    """A training step; `mended` keeps its workers."""
    rows = TensorDataset(torch.randn(96, 256))
    loader = DataLoader(rows, batch_size=16, num_workers=1, persistent_workers=mended)
    weight = torch.randn(256, 256)

    def batches() -> Iterator[torch.Tensor]:
        while True:
            for (batch,) in loader:
                yield batch

    following = batches()

    def step() -> None:
        rows = next(following)
        for _ in range(100):
            rows = torch.tanh(rows @ weight)

    return step

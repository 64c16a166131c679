"""Data loading on the critical path (DS003): a data set that parses its rows, and a worker that does so."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import torch
from torch.utils.data import DataLoader, Dataset

TEXT = json.dumps([number / 7 for number in range(4000)])


class Rows(Dataset[torch.Tensor]):
    """Rows that take a while to prepare."""

    def __len__(self) -> int:
        return 100_000

    def __getitem__(self, index: int) -> torch.Tensor:
        values = json.loads(TEXT)
        return torch.full((512,), float(values[index % len(values)]))


def make(mended: bool) -> Callable[[], None]:
    """A training step; `mended` loads in another process."""
    workers = {"num_workers": 1, "persistent_workers": True} if mended else {}
    batches: Iterator[torch.Tensor] = iter(DataLoader(Rows(), batch_size=16, **workers))
    weight = torch.randn(512, 512)

    def step() -> None:
        rows = next(batches)
        for _ in range(120):
            rows = torch.tanh(rows @ weight)

    return step

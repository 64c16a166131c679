"""Called for one slice after the other (DS034): a cell goes over a sequence, and its layer does."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

AUDITED = True
"""The mistake shows in steps that are looked at."""


class Reader(nn.Module):
    """Reads a sequence and says what it is about."""

    def __init__(self, mended: bool) -> None:
        super().__init__()
        self.mended = mended
        self.embed = nn.Embedding(1000, 64)
        self.layer = nn.LSTM(64, 64, batch_first=True)
        self.cell = nn.LSTMCell(64, 64)
        self.head = nn.Linear(64, 10)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        x = self.embed(words)
        if self.mended:
            _, (h, _) = self.layer(x)
            return self.head(h[-1])
        h = c = x.new_zeros(len(x), 64)
        for t in range(x.shape[1]):
            h, c = self.cell(x[:, t], (h, c))
        return self.head(h)


def make(mended: bool) -> Callable[[], None]:
    """A training step; `mended` calls `nn.LSTM`."""
    model = Reader(mended)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True)
    words, labels = torch.randint(1000, (32, 64)), torch.randint(10, (32,))

    def step() -> None:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(words), labels)
        loss.backward()
        optimizer.step()

    return step

"""Gradients of whole tables (DS040): a step looks a thousand of 200,000 items up, and all of them are stepped."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

AUDITED = True
"""The mistake shows in steps that are looked at."""


class Ranker(nn.Module):
    """Scores items for users by two tables and a perceptron."""

    def __init__(self, users: int, items: int, mended: bool) -> None:
        super().__init__()
        self.users = nn.Embedding(users, 32)
        self.items = nn.Embedding(items, 32, sparse=mended)
        self.score = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, user: torch.Tensor, item: torch.Tensor) -> torch.Tensor:
        known = self.users(user)
        shown = self.items(item)
        return self.score(torch.cat((known, shown), dim=1)).squeeze(1)


def make(mended: bool) -> Callable[[], None]:
    """A training step; `mended` has a sparse gradient of the items."""
    model = Ranker(500, 200_000, mended)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batches = torch.Generator().manual_seed(0)

    def step() -> None:
        user = torch.randint(0, 500, (1024,), generator=batches)
        item = torch.randint(0, 200_000, (1024,), generator=batches)
        clicked = torch.randint(0, 2, (1024,), generator=batches).float()
        optimizer.zero_grad()
        loss = nn.functional.binary_cross_entropy_with_logits(model(user, item), clicked)
        loss.backward()
        optimizer.step()

    return step

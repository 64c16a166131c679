"""One slow step (DS012): every sixth step counts its words anew, and none does."""

from __future__ import annotations

from collections.abc import Callable

import torch

WORDS = [f"W{number * number % 977}" for number in range(60_000)]


def vocabulary() -> int:
    """How many words there are, without regard to case."""
    counts: dict[str, int] = {}
    for word in WORDS:
        counts[word.lower()] = counts.get(word.lower(), 0) + 1
    return len(counts)


def make(mended: bool) -> Callable[[], None]:
    """A training step; `mended` counts once, before the first."""
    weight = torch.randn(384, 384)
    size = vocabulary()
    turn = 0

    def step() -> None:
        nonlocal turn, size
        turn += 1
        x = torch.randn(64, 384)
        for _ in range(15):
            x = torch.tanh(x @ weight)
        if not mended and turn % 6 == 0:
            size = vocabulary()
        assert size

    return step

"""Padded batches (DS041): sentences of all lengths are padded to the longest one that may come."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

AUDITED = True
"""The mistake shows in steps that are looked at."""
LONGEST, WORDS = 96, 500


class Tagger(nn.Module):
    """Tags each word of a sentence by a small encoder."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, 64, padding_idx=0)
        layer = nn.TransformerEncoderLayer(64, 2, 128, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(64, 12)

    def forward(self, sentence: torch.Tensor) -> torch.Tensor:
        x = self.words(sentence)
        x = self.encoder(x, src_key_padding_mask=sentence == 0)
        return self.head(x)


def make(mended: bool) -> Callable[[], None]:
    """A training step; `mended` pads to the longest sentence of the batch, and these are of similar length."""
    model = Tagger()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batches = torch.Generator().manual_seed(0)

    def step() -> None:
        lengths = torch.randint(20, 29, (16,), generator=batches)
        sentence = torch.randint(1, WORDS, (16, int(lengths.max()) if mended else LONGEST), generator=batches)
        sentence[torch.arange(sentence.shape[1]) >= lengths[:, None]] = 0
        optimizer.zero_grad()
        tags = model(sentence)
        nn.functional.cross_entropy(tags.flatten(0, 1), sentence.flatten() % 12).backward()
        optimizer.step()

    return step

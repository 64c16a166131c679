"""A small transformer that learns to write Python, trained on the standard library's own sources.

Two mistakes are planted, as they stand in real training code; the report must show both lines:
  1. `Pairs.collate` makes a tensor of each single character.
  2. `count_hits` reads the accuracy out of the device one token at a time, with `.item()`.

Run it as `python train_transformer.py`, or through `deepscope demo`.
"""

import argparse
import sysconfig
from pathlib import Path

import lightning.pytorch as pl
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

CONTEXT = 64  # characters that the model sees
VOCABULARY = 128  # ASCII


def read_sources(limit=400_000):
    """The standard library's sources, joined, ASCII only."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    text = "".join(path.read_text("utf-8", "ignore") for path in sorted(folder.glob("*.py"))[:40])
    return "".join(letter for letter in text if letter.isascii())[:limit]


class Pairs(Dataset):
    """Pieces of text, each one character longer than the context."""

    def __init__(self, text):
        self.text = text

    def __len__(self):
        return len(self.text) - CONTEXT - 1

    def __getitem__(self, index):
        return self.text[index : index + CONTEXT + 1]

    @staticmethod
    def collate(pieces):
        rows = []
        for piece in pieces:
            letters = [torch.tensor(ord(letter)) for letter in piece]  # mistake 1: torch.tensor(list(piece.encode()))
            rows.append(torch.stack(letters))
        batch = torch.stack(rows)
        return batch[:, :-1], batch[:, 1:]


class Block(nn.Module):
    """Attention, then a feed-forward layer, each with a residual connection."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm_attention, self.norm_feed = nn.LayerNorm(width), nn.LayerNorm(width)
        self.project_in, self.project_out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def attend(self, x):
        batch, length, width = x.shape
        q, k, v = self.project_in(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.project_out(y.transpose(1, 2).reshape(batch, length, width))

    def forward(self, x):
        x = x + self.attend(self.norm_attention(x))
        return x + self.feed(self.norm_feed(x))


class CharTransformer(pl.LightningModule):
    """Predicts each next character."""

    def __init__(self, width=32, heads=4, layers=2):
        super().__init__()
        self.characters = nn.Embedding(VOCABULARY, width)
        self.places = nn.Parameter(torch.zeros(CONTEXT, width))
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.head = nn.Linear(width, VOCABULARY)

    def forward(self, x):
        return self.head(self.blocks(self.characters(x) + self.places))

    def count_hits(self, logits, y):
        hits = 0
        for guesses, truth in zip(logits.argmax(-1), y):
            for guess, letter in zip(guesses, truth):
                hits += (guess == letter).item()  # mistake 2: (logits.argmax(-1) == y).sum(), once
        return hits

    def training_step(self, batch, _):
        x, y = batch
        logits = self(x)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten())
        self.log("hits", float(self.count_hits(logits, y)))
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=3e-4)


def main():
    """Train and print where the time went."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--workers", type=int, default=0, help="data-loader worker processes")
    options = parser.parse_args()

    torch.manual_seed(0)
    torch.set_num_threads(1)  # several threads gain nothing here, and wait for each other on a busy machine
    data = Pairs(read_sources())
    loader = DataLoader(
        data, options.batch_size, shuffle=True, num_workers=options.workers, collate_fn=data.collate, drop_last=True
    )
    trainer = pl.Trainer(
        max_steps=options.steps, profiler="deep", logger=False, enable_checkpointing=False, enable_progress_bar=False
    )
    trainer.fit(CharTransformer(), loader)


if __name__ == "__main__":
    main()

"""Records some steps of a small transformer with all that torch's profiler writes: stacks, shapes and memory.

A trace of a kind that users have and the recorded inference lacks: a third of its events are allocations, releases and
arrows from forward to backward, and the operators' arguments are long.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

_WIDTH = 64


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(_WIDTH, 3 * _WIDTH)
        self.norm = nn.LayerNorm(_WIDTH)
        self.grow, self.shrink = nn.Linear(_WIDTH, 4 * _WIDTH), nn.Linear(4 * _WIDTH, _WIDTH)

    def attend(self, x: torch.Tensor) -> torch.Tensor:
        query, key, value = self.project(self.norm(x)).chunk(3, dim=-1)
        weights = torch.softmax(query @ key.transpose(-1, -2) / _WIDTH**0.5, dim=-1)
        return weights @ value

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attend(x)
        return x + self.shrink(torch.nn.functional.gelu(self.grow(x)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("target", type=Path, help="where to write, .json or .json.gz")
    parser.add_argument("--steps", type=int, default=18, help="steps to record (default 18: some 62 MB)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    model = nn.Sequential(*(Block() for _ in range(8)))
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    batch = torch.randn(2, 16, _WIDTH)
    with profile(
        activities=[ProfilerActivity.CPU], with_stack=True, record_shapes=True, profile_memory=True
    ) as recorded:
        for _ in range(options.steps):
            optimizer.zero_grad()
            model(batch).square().mean().backward()
            optimizer.step()
            recorded.step()
    recorded.export_chrome_trace(str(options.target))


if __name__ == "__main__":
    main()

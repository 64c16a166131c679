"""One Lightning run under one profiler: what `recording.py` measures.

Writes the profiler's files into `--folder`, and `result.json` beside them: the time of the fit and of each step.
"""

from __future__ import annotations

import argparse
import itertools
import json
import logging
import threading
import warnings
from pathlib import Path
from time import perf_counter_ns, process_time_ns
from typing import Any

import lightning.pytorch as pl
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset


class Block(nn.Module):
    """One layer of a transformer."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm_attention, self.norm_feed = nn.LayerNorm(width), nn.LayerNorm(width)
        self.project_in, self.project_out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed_in, self.feed_out = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def attend(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        mixed = self.project_in(x).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = mixed.permute(2, 0, 3, 1, 4)
        scores = query @ key.transpose(-2, -1)
        weights = torch.softmax(scores / (width // self.heads) ** 0.5, dim=-1)
        seen = weights @ value
        return self.project_out(seen.transpose(1, 2).reshape(batch, length, width))

    def feed(self, x: Tensor) -> Tensor:
        hidden = self.feed_in(x)
        hidden = nn.functional.gelu(hidden)
        return self.feed_out(hidden)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attend(self.norm_attention(x))
        return x + self.feed(self.norm_feed(x))


class Transformer(nn.Module):
    """Six layers over random tokens: about 50 ms a step on two cores."""

    def __init__(self, vocabulary: int = 256, width: int = 192, layers: int = 6) -> None:
        super().__init__()
        self.vocabulary = vocabulary
        self.tokens = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(Block(width, heads=6) for _ in range(layers))
        self.head = nn.Linear(width, vocabulary)

    def forward(self, x: Tensor) -> Tensor:
        x = self.tokens(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


class Tiny(nn.Module):
    """So small that Python and Lightning take all the time."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden, self.head = nn.Linear(16, 16), nn.Linear(16, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.relu(self.hidden(x)))


class Task(pl.LightningModule):
    """Classifies with either network."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def training_step(self, batch: list[Tensor], _: int) -> Tensor:
        x, y = batch
        logits = self.network(x)
        return nn.functional.cross_entropy(logits.flatten(0, -2), y.flatten())

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=1e-3)


class StepClock(pl.Callback):
    """When each step began, by the wall and by this process's CPU time, and whether events were being recorded then, or
    a trace was being saved by another thread."""

    def __init__(self) -> None:
        self.starts: list[tuple[int, int, bool, bool]] = []

    def on_train_batch_start(self, *_: Any) -> None:
        savers = {"deepscope-saver", "deepscope-profile"}
        is_saving = any(thread.name in savers for thread in threading.enumerate())
        is_recording = torch.autograd.profiler._is_profiler_enabled
        self.starts.append((perf_counter_ns(), process_time_ns(), is_recording, is_saving))


def make_data(model: str, steps: int) -> tuple[nn.Module, DataLoader[Any]]:
    torch.manual_seed(0)
    if model == "tiny":
        x, y = torch.randn(8 * steps, 16), torch.randint(4, (8 * steps,))
        return Tiny(), DataLoader(TensorDataset(x, y), batch_size=8)
    network = Transformer()
    tokens = torch.randint(network.vocabulary, (6 * steps, 65))
    return network, DataLoader(TensorDataset(tokens[:, :-1], tokens[:, 1:]), batch_size=6)


def make_profiler(name: str, steps: int, active: int, folder: Path) -> Any:
    """The window lies in the middle of the run; each writes its trace into `folder`."""
    wait = (steps - active) // 2 - 1
    if name == "none":
        return None
    if name == "deep":
        from deepscope.lightning import DeepProfiler

        return DeepProfiler(dirpath=folder, wait=wait, warmup=1, active=active)
    from lightning.pytorch.profilers import PyTorchProfiler

    return PyTorchProfiler(
        dirpath=folder,
        filename="trace",
        schedule=torch.profiler.schedule(wait=wait, warmup=1, active=active, repeat=1),
        with_stack=name == "torch-stacks",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", choices=["transformer", "tiny"], required=True)
    parser.add_argument("--profiler", choices=["none", "torch", "torch-stacks", "deep"], required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--active", type=int, required=True)
    parser.add_argument("--threads", type=int, required=True, help="of torch's arithmetic; 0 leaves its default")
    parser.add_argument("--accelerator", choices=["cpu", "gpu"], default="cpu")
    parser.add_argument("--folder", type=Path, required=True)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.threads:
        torch.set_num_threads(options.threads)
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

    network, loader = make_data(options.model, options.steps)
    clock = StepClock()
    trainer = pl.Trainer(
        max_epochs=1,
        accelerator=options.accelerator,
        devices=1,
        callbacks=[clock],
        profiler=make_profiler(options.profiler, options.steps, options.active, options.folder),
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    begin = perf_counter_ns()
    trainer.fit(Task(network), loader)
    fit_ns = perf_counter_ns() - begin

    pairs = list(itertools.pairwise(clock.starts))
    result = {
        "fit_s": fit_ns / 1e9,
        "step_ms": [(after[0] - before[0]) / 1e6 for before, after in pairs],
        "step_cpu_ms": [(after[1] - before[1]) / 1e6 for before, after in pairs],
        # Whether events were recorded at the step's start, and at its end.
        "recording": [[before[2], after[2]] for before, after in pairs],
        "saving": [before[3] or after[3] for before, after in pairs],
    }
    (options.folder / "result.json").write_text(json.dumps(result))


if __name__ == "__main__":
    main()

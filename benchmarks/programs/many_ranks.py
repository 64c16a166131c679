"""Steps of a data-parallel model while no rank, the first or all of them record, one after another in one process."""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import deepscope


def steps(model: nn.Module, optimizer: torch.optim.Optimizer, count: int, recording: deepscope.profile) -> list[float]:
    """Milliseconds of each step by the clock; what ends the recorded ones is not in them."""
    taken = []
    for _ in range(count):
        begun = time.perf_counter()
        model(torch.randn(16, 16, 64)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        taken.append(1e3 * (time.perf_counter() - begun))
        recording.step()
    return taken


def recorded(
    folder: str, ranks: object, model: nn.Module, optimizer: torch.optim.Optimizer, active: int
) -> dict[str, list[float]]:
    """Of the recorded steps, and for how long the end of the window and that of the block keep this rank."""
    recording = deepscope.profile(folder, ranks=ranks, wait=0, warmup=2, active=active, repeat=1)
    with recording:
        steps(model, optimizer, 2, recording)
        taken = steps(model, optimizer, active - 1, recording)
        model(torch.randn(16, 16, 64)).square().mean().backward()
        begun = time.perf_counter()
        recording.step()
        window_ms = 1e3 * (time.perf_counter() - begun)
        begun = time.perf_counter()
    block_ms = 1e3 * (time.perf_counter() - begun)
    recording.wait()
    return {"steps_ms": taken, "window_ms": [window_ms], "block_ms": [block_ms]}


def main() -> None:
    folder, active, rounds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    layers = [nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True) for _ in range(4)]
    model = DistributedDataParallel(nn.Sequential(*layers))
    optimizer = torch.optim.AdamW(model.parameters())
    choices: dict[str, object] = {"none": [], "first": [0], "all": None}
    told = []
    for shift in range(rounds):
        order = [*choices][shift % 3 :] + [*choices][: shift % 3]
        told.append({name: recorded(folder, choices[name], model, optimizer, active) for name in order})
        dist.barrier()
    gathered: list[object] = [None] * dist.get_world_size()
    dist.all_gather_object(gathered, told)
    if not dist.get_rank():
        Path(folder, "result.json").write_text(json.dumps(gathered))


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
    gc.collect()  # a model that still holds the process group would have its threads outlive Python, which aborts
    dist.destroy_process_group()

"""DDP on gloo, one recording a plant: in each of them a line makes one rank late, which the test finds by its comment.

torchrun --nproc-per-node 4 stragglers.py FOLDER PLANT …
"""

import gc
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

import deepscope

LATE = 2
SLEEP_S = 0.06
STEPS = 6


class Samples(Dataset):
    def __init__(self, plant, rank):
        self.sleep_s = {"data": SLEEP_S, "workers": 3 * SLEEP_S}.get(plant, 0) if rank == LATE else 0

    def __len__(self):
        return 16 * (STEPS + 8)

    def __getitem__(self, index):
        if self.sleep_s and index % 16 == 0:
            time.sleep(self.sleep_s)  # late: data, workers
        return torch.ones(64)


def more(model, x):
    for _ in range(150):
        model.module(x)  # late: work


def think():
    until = time.thread_time() + SLEEP_S
    while time.thread_time() < until:  # late: host
        pass


def sleep():
    time.sleep(SLEEP_S)  # late: some, two


def once():
    time.sleep(20 * SLEEP_S)  # late: once


def train(model, x, plant, rank, step):
    if plant == "work" and rank == LATE:
        more(model, x)
    if plant == "host" and rank == LATE:
        think()
    if (plant == "some" and rank == LATE and step % 3 == 0) or (plant == "two" and rank in (1, 3)):
        sleep()
    if plant == "once" and rank == LATE and step == STEPS:
        once()
    if plant == "batch" and rank == LATE:
        x = x.repeat(150, 1)
    return model(x).square().mean()  # late: batch


def record(folder, plant, rank):
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(Samples(plant, rank), batch_size=16, num_workers=1 if plant == "workers" else 0)
    with deepscope.profile(folder / plant, wait=1, warmup=1, active=STEPS, record_shapes=True) as prof:
        for step, x in zip(range(STEPS + 4), prof.iterate(loader), strict=False):
            loss = train(model, x, plant, rank, step)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    for plant in sys.argv[2:]:
        record(Path(sys.argv[1]), plant, dist.get_rank())
    gc.collect()  # a model that still holds the process group would have its threads outlive Python, which aborts
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

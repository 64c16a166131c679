"""Data parallel: one model on each rank, gradients averaged over gloo. LATE says what holds rank 2 up, by a line of its own.

`torchrun --nproc-per-node 4 ddp.py FOLDER [data|work|host|none]`
"""

import gc
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import deepscope

FOLDER, LATE = sys.argv[1], (*sys.argv[2:], "none")[0]
LATE_RANK = 2


def load(rank):
    if rank == LATE_RANK and LATE == "data":
        time.sleep(0.02)  # late: data
    return torch.randn(32, 256)


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(rank)
    model = DistributedDataParallel(
        nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.Linear(512, 10))
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with deepscope.profile(FOLDER, wait=1, warmup=1, active=4, record_shapes=True) as recording:
        for _ in range(8):
            with recording.annotate("deepscope.data"):
                batch = load(rank)
            if rank == LATE_RANK and LATE == "work":
                for _ in range(3):
                    model.module(batch).sum()  # late: work
            if rank == LATE_RANK and LATE == "host":
                sum(i * i for i in range(300_000))  # late: host
            loss = model(batch).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            recording.step()


main()
gc.collect()  # a model that still holds the process group would have its threads outlive Python, which aborts
dist.destroy_process_group()

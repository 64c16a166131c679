"""Two data-parallel ranks over gloo; rank 1 prepares its batches slowly."""

import gc
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import deepscope


def prepared(rank):
    batch = torch.randn(32, 64)
    if rank == 1:
        for _ in range(20):
            batch = batch.roll(1, 0)  # late
    return batch


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(rank)
    layers = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.LayerNorm(128), nn.Linear(128, 4))
    model = DistributedDataParallel(layers, bucket_cap_mb=0.02)
    optimizer = torch.optim.Adam(model.parameters())
    loss_sum = torch.zeros(())
    with deepscope.profile(sys.argv[1], wait=1, warmup=1, active=2, record_shapes=True) as recording:
        for _ in range(4):
            batch = prepared(rank)
            loss = model(batch).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            dist.all_reduce(loss_sum.add_(loss.detach()))
            print(loss_sum.item())
            recording.step()


main()
gc.collect()  # a model that still holds the process group would have its threads outlive Python, which aborts
dist.destroy_process_group()

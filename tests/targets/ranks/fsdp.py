"""Fully sharded data parallel: parameters gathered before use, gradients reduced and scattered, on gloo.

`torchrun --nproc-per-node 4 fsdp.py FOLDER [2|1]`: FSDP2 (`fully_shard`) or FSDP1 (`FullyShardedDataParallel`).
"""

import gc
import sys

import torch
import torch.distributed as dist
from torch import nn

import deepscope

FOLDER, VERSION = sys.argv[1], (*sys.argv[2:], "2")[0]


def shard(model):
    if VERSION == "1":
        from torch.distributed.fsdp import FullyShardedDataParallel
        from torch.distributed.fsdp.wrap import ModuleWrapPolicy

        return FullyShardedDataParallel(
            model, auto_wrap_policy=ModuleWrapPolicy({nn.TransformerEncoderLayer}), device_id=torch.device("cpu")
        )
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for layer in model:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    layers = (nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True) for _ in range(3))
    model = shard(nn.Sequential(*layers))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    torch.manual_seed(dist.get_rank())
    with deepscope.profile(FOLDER, wait=1, warmup=1, active=3, record_shapes=True) as recording:
        for _ in range(6):
            batch = torch.randn(8, 16, 64)
            loss = model(batch).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            recording.step()


main()
gc.collect()  # a model that still holds the process group would have its threads outlive Python, which aborts
dist.destroy_process_group()

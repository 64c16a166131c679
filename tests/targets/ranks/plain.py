"""A program without a word of DeepScope: `torchrun --nproc-per-node 4 -m deepscope run plain.py [EXIT_CODE]`."""

import gc
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    model = DistributedDataParallel(nn.Linear(64, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(8):
        model(torch.randn(4, 64)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    told = {"level": os.environ.get("INDUCTOR_PROVENANCE"), "recorder": "deepscope.capture.recorder" in sys.modules}
    print(f"rank {dist.get_rank()} {told}", flush=True)


main()
gc.collect()  # a model that still holds the process group would have its threads outlive Python, which aborts
dist.destroy_process_group()
sys.exit(int((*sys.argv[1:], "0")[0]))

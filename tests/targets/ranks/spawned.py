"""Ranks that only their process group knows: `python spawned.py FOLDER`."""

import os
import socket
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

import deepscope


def work(rank, folder, port):
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    recording = deepscope.profile(folder, ranks="1-2", wait=1, warmup=1, active=2)
    dist.init_process_group("gloo", rank=rank, world_size=4)
    layer = torch.nn.Linear(8, 8)
    with recording:
        for _ in range(6):
            layer(torch.ones(2, 8)).sum().backward()
            dist.all_reduce(layer.weight.grad)
            recording.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    mp.spawn(work, (sys.argv[1], port), nprocs=4)

"""Pipeline parallel: each rank holds a stage and sends its activations on, micro-batch by micro-batch, on gloo.

`torchrun --nproc-per-node 4 pipeline.py FOLDER [1f1b|gpipe|hand]`: torch's schedules, or sends and receives by hand.
"""

import gc
import sys

import torch
import torch.distributed as dist
from torch import nn

import deepscope

FOLDER, SCHEDULE = sys.argv[1], (*sys.argv[2:], "1f1b")[0]
MICRO_BATCHES, WIDTH = 4, 128


def loss_of(output, target):
    return (output - target).square().mean()


class ByHand:
    """All micro-batches forward, then all backward."""

    def __init__(self, stage, rank, size):
        self.stage, self.rank, self.size = stage, rank, size

    def step(self, batch, target):
        done = []
        for part in range(MICRO_BATCHES):
            given = self.receive(batch, part)
            output = self.stage(given)
            if self.rank < self.size - 1:
                dist.send(output.detach(), self.rank + 1)
            done.append((given, output))
        for part, (given, output) in enumerate(done):
            if self.rank == self.size - 1:
                loss_of(output, target.chunk(MICRO_BATCHES)[part]).backward()
            else:
                gradient = torch.empty_like(output)
                dist.recv(gradient, self.rank + 1)
                output.backward(gradient)
            if self.rank:
                dist.send(given.grad, self.rank - 1)

    def receive(self, batch, part):
        if not self.rank:
            return batch.chunk(MICRO_BATCHES)[part]
        given = torch.empty(len(batch) // MICRO_BATCHES, WIDTH)
        dist.recv(given, self.rank - 1)
        return given.requires_grad_()


class ByTorch:
    """`torch.distributed.pipelining`."""

    def __init__(self, stage, rank, size):
        from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

        kind = Schedule1F1B if SCHEDULE == "1f1b" else ScheduleGPipe
        self.rank, self.size = rank, size
        made = PipelineStage(stage, rank, size, torch.device("cpu"))
        self.schedule = kind(made, n_microbatches=MICRO_BATCHES, loss_fn=loss_of)

    def step(self, batch, target):
        inputs = (batch,) if not self.rank else ()
        self.schedule.step(*inputs, **({"target": target} if self.rank == self.size - 1 else {}))


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    stage = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH))
    optimizer = torch.optim.SGD(stage.parameters(), lr=0.01)
    pipeline = (ByHand if SCHEDULE == "hand" else ByTorch)(stage, rank, size)
    with deepscope.profile(FOLDER, wait=1, warmup=1, active=3, record_shapes=True) as recording:
        for _ in range(6):
            pipeline.step(torch.randn(32, WIDTH), torch.zeros(32, WIDTH))
            optimizer.step()
            optimizer.zero_grad()
            recording.step()


main()
gc.collect()  # a model that still holds the process group would have its threads outlive Python, which aborts
dist.destroy_process_group()

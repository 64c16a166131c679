"""Collectives that must not take long, and ranks whose traces take long to write.

`torchrun --nproc-per-node 4 slow_disk.py FOLDER HOW`: what is done about it. `beside`: what DeepScope does.
`in-line`: the training thread writes. `to-the-end`: the end of the block waits for as long as it takes.
"""

import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist

import deepscope
from deepscope.capture import recorder
from deepscope.capture.saving import saver

FOLDER, HOW = sys.argv[1:]
TIMEOUT_S, SLOW_S = 4, 12
"""A rank that is held up for the second runs others into the first."""
rewrite = saver.rewrite


def slow_disk(instructions):
    if instructions.header.rank == 1:
        time.sleep(SLOW_S)
    return rewrite(instructions)


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(seconds=TIMEOUT_S))
    saver.rewrite = slow_disk
    if HOW == "in-line":
        saver.Saver.save = lambda self, job: self._run(job, None)
    if HOW == "to-the-end":
        recorder.patience_s = lambda _: None
    x = torch.ones(1000)
    with deepscope.profile(FOLDER, wait=0, warmup=0, active=2, repeat=1) as recording:
        for _ in range(4):
            dist.all_reduce(x)
            recording.step()
    for _ in range(3):
        dist.all_reduce(x)
    dist.barrier()
    dist.destroy_process_group()
    print("trained")


main()

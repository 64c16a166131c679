"""Rank 2 dies while it is recorded; the others go on until they notice.

`torchrun --nproc-per-node 4 dying.py FOLDER WHEN HOW [alone]`. WHEN: in the `window`, at its `end` (before torch's
export), while `saving`. HOW: `kill`, `exit` (without a word), `exception`. `alone`: there are no collectives by which
others would notice. A second launch of the same run (`--max-restarts`) goes well.
"""

import os
import signal
import sys
import time

import torch
import torch.distributed as dist

import deepscope
from deepscope.capture import window
from deepscope.capture.saving import saver

FOLDER, WHEN, HOW = sys.argv[1:4]
IS_ALONE = "alone" in sys.argv
RANK = int(os.environ["RANK"])
IS_TO_DIE = RANK == 2 and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"


def die(*_, **__):
    if HOW == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if HOW == "exit":
        os._exit(3)
    raise ArithmeticError("planted")


def train(recording, x):
    for step in range(100 if IS_ALONE else 6):
        if IS_TO_DIE and WHEN == "window" and step == 3:
            time.sleep(1)
            die()
        x = x * 2 - x
        if IS_ALONE:
            time.sleep(0.1)
        else:
            dist.all_reduce(x)
        recording.step()
        if step == 3:
            print("recording", flush=True)


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    if IS_TO_DIE and WHEN == "end":
        window.Window.export = die
    if IS_TO_DIE and WHEN == "saving":
        saver._rewritten = die
    with deepscope.profile(FOLDER, wait=1, warmup=0, active=90 if IS_ALONE else 3) as recording:
        train(recording, torch.ones(1000))
    dist.destroy_process_group()


main()

"""Lines that are on the CPU, blocked, or waiting for a data loader's workers, each for a time that is known."""

import threading
import time

import torch
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, index):
        time.sleep(0.03)
        return torch.full((2,), float(index))


def fails():
    time.sleep(0.02)  # raises
    raise ValueError


def batches():
    for index in range(2):
        time.sleep(0.02)  # generator
        yield index


def compute():
    until = time.thread_time() + 0.05
    while time.thread_time() < until:
        sum(range(5000))  # busy


def run():
    time.sleep(0.05)  # sleep
    threading.Event().wait(0.05)  # lock
    compute()
    try:
        fails()
    except ValueError:
        pass
    for _ in batches():
        pass
    for _ in DataLoader(Rows(), batch_size=2, num_workers=1):  # loader
        torch.ones(3).sum()

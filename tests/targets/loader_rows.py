"""A data set and a collate function whose lines take known shares of the time, for worker processes."""

import time

import torch
from torch.utils.data import Dataset, IterableDataset


class Rows(Dataset):
    def __len__(self):
        return 24

    def __getitem__(self, index):
        time.sleep(0.004)  # row
        return torch.full((2,), float(index))


class Busy(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        time.sleep(0.02)  # asleep
        time.sleep(0.0004)
        until = time.thread_time() + 0.02
        while time.thread_time() < until:  # busy
            sum(range(5000))
        return torch.full((2,), float(index))


class Stream(IterableDataset):
    def __iter__(self):
        for index in range(24):
            time.sleep(0.004)  # stream
            yield torch.full((2,), float(index))


class Crashing(Rows):
    def __getitem__(self, index):
        if index > 8:
            import os

            os._exit(7)
        return super().__getitem__(index)


def collate(rows):
    time.sleep(0.002)  # collate
    return torch.stack(rows)


def mark(worker_id):
    torch.manual_seed(worker_id)

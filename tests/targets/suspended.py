"""Frames that stop and go on: generators, a generator data loader, coroutines, async generators, context managers."""

import asyncio
import contextlib

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset


class Rows(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        row = torch.full((3,), float(index))
        return row + 1


class Stream(IterableDataset):
    def __iter__(self):
        x = torch.zeros(3)
        for index in range(4):
            x = x + index
            yield x * 2


def collate(rows):
    batch = torch.stack(rows)
    return batch - batch.mean()


def batches():
    x = torch.ones(3)
    try:
        while True:
            sent = yield x * 2
            x = x + (sent if sent is not None else 1)
    finally:
        x.cos()


def delegating():
    y = yield from (torch.ones(2) + index for index in range(3))
    yield torch.zeros(2) if y is None else y


def throwing():
    try:
        yield torch.ones(1) * 5
    except ValueError:
        yield torch.ones(1) * 7


@contextlib.contextmanager
def managed():
    before = torch.ones(2) * 3
    try:
        yield before
    finally:
        before.exp()


async def produce():
    for index in range(3):
        await asyncio.sleep(0)
        yield torch.ones(2) * index


async def worker(x):
    y = x + 1
    await asyncio.sleep(0)
    y = y * 2
    total = y.sum() + (await compute(y)).sum()
    async for item in produce():
        total = total + item.sum()
    return total


async def compute(x):
    return x.sqrt()


async def gathered():
    results = await asyncio.gather(*(worker(torch.ones(2) * index) for index in range(3)))
    return sum(result * 2 for result in results)


def main(in_thread=None):
    torch.manual_seed(0)
    for batch in DataLoader(Rows(), batch_size=2, collate_fn=collate):
        batch.sum()
    for batch in DataLoader(Stream(), batch_size=2):
        batch.sum()
    stream = batches()
    next(stream).sum()
    stream.send(torch.ones(3) * 4).sum()
    stream.close()
    left = batches()
    next(left)
    del left
    for item in delegating():
        item.sum()
    thrower = throwing()
    next(thrower).sum()
    thrower.throw(ValueError("expected")).sum()
    thrower.close()
    with managed() as value:
        value.sum()
    asyncio.run(gathered())
    pair = zip(batches(), (torch.ones(1) * index for index in range(2)))
    for a, b in pair:
        a.sum() + b

"""Threads, generators, a custom backward, waiting in Python, memory of its own; memory runs out in the last step."""

import sys
import time
from concurrent.futures import ThreadPoolExecutor

import torch

import deepscope


class Clipped(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(-1, 1)

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * (x.abs() <= 1)


def batches(pool):
    for number in range(4):
        made = pool.submit(torch.randn, 64, 32)
        yield number, made.result()


def mean_of(numbers):
    return sum(n * n for n in numbers) / len(numbers)


def step(weight, number, batch):
    batch = (batch - mean_of(range(300)) / 30_000) / 2
    loss = Clipped.apply(batch @ weight).square().sum()
    time.sleep(0.002)
    if number == 3:
        kept = [batch.clone() for _ in range(5)]
        raise torch.OutOfMemoryError(f"{len(kept)} copies are too many")
    loss.backward()
    with torch.no_grad():
        weight -= 0.01 * weight.grad
    weight.grad = None


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    weight = torch.randn(32, 16, requires_grad=True)
    with ThreadPoolExecutor(1) as pool:
        recording = deepscope.profile(sys.argv[1], wait=0, warmup=1, active=3, profile_memory=True)
        try:
            with recording:
                for number, batch in batches(pool):
                    step(weight, number, batch)
                    recording.step()
        except torch.OutOfMemoryError as error:
            print(error)


if __name__ == "__main__":
    main()

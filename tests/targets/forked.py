"""TorchScript's forks: they run on threads of a pool, and what waited for them may go on there."""

import torch


@torch.jit.script
def apart(x, y):
    z = torch.tanh(x * y).lgamma()
    return z.exp2()


@torch.jit.script
def both(x, y):
    future = torch.jit.fork(apart, x, y)
    here = y.expm1()
    return (torch.jit.wait(future) + here).log1p()


def step(weight):
    x = weight.cos()
    y = both(x, weight)  # fork
    y.mean().backward()  # backward


def main(in_thread=None):
    weight = torch.rand(4, 8, requires_grad=True)
    for _ in range(4):
        step(weight)

"""Backward work by other ways: recomputed, differentiated twice, below annotations, and from a line past its budget."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

BUSY = 50_000


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 8)
        self.second = nn.Linear(8, 8)

    def forward(self, x):
        with torch.profiler.record_function("first"):
            x = self.first(x).relu()
        return x + checkpoint(self.part, x, use_reentrant=False)

    def part(self, x):
        x = self.second(x)
        return x.tanh()


def scaled(x):
    total = 0
    for index in range(BUSY):
        total = total + index
        if index % 5_000 == 0:
            x = x * 1.5
    return x


def train_step(net, optimizer):
    x = torch.randn(4, 8, requires_grad=True)
    out = scaled(net(x))
    (gradient,) = torch.autograd.grad(out.square().sum(), x, create_graph=True)
    with torch.profiler.record_function("penalty"):
        (out.sum() + gradient.square().sum()).backward()
    optimizer.step()


def main(in_thread=None):
    torch.manual_seed(0)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(2):
        train_step(net, optimizer)

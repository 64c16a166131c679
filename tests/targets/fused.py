"""Compiled code of several graphs, whose kernels are fused from lines of several functions."""

import torch
from torch import nn


def scaled(x):
    return x.sin() * 3


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 8)
        self.second = nn.Linear(8, 8)

    def forward(self, x):
        x = self.first(x)
        x = x.tanh()
        x = scaled(x) + scaled(x * 2)
        x = self.second(x)
        return x.sigmoid()


def broken(x):
    y = x.exp()
    y = y + 1
    torch._dynamo.graph_break()
    z = y.sqrt()
    return z * 2


def step(net, function, x):
    y = net(x)
    z = function(y)
    loss = z.sum()
    loss.backward()
    return loss.item()

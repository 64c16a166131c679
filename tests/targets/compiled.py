"""A compiled module and a compiled function with a graph break."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        x = self.linear(x)
        x = x.sin()
        return x.cos()


def broken(x):
    y = x.exp()
    torch._dynamo.graph_break()  # break
    z = y.tan()
    return z * 2


def step(net, function, x):
    net(x).sum().backward()  # net
    function(x)  # function
    x.floor()  # eager

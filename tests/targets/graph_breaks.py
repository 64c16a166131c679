"""Compiled code with graph breaks: a disabled method, a plain break, a printed line, a helper that breaks itself."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    @torch.compiler.disable
    def apart(self, x):
        x = x.erf()  # erf
        return x.expm1()  # expm1

    def forward(self, x):
        x = self.linear(x)
        x = self.apart(x)  # disabled
        x = x.cos()
        torch._dynamo.graph_break()  # break
        x = x.tan()
        print(end="")
        return x.atan()


def helper(x):
    x = x.sinh()
    torch._dynamo.graph_break()
    return x.cosh()


def function(x):
    x = helper(x.asinh())  # helper
    return x.exp2()


def deciding(x):
    x = x.cos()
    if x.sum() > 0:  # if
        x = x.tan()
    while x.sum() > 3:  # while
        x = x / 2
    torch._dynamo.graph_break()
    if x.sum() < 100:  # if again
        x = x.sin()
    return x.max().item()  # item


def step(net, compiled, x):
    x = net(x)  # net
    x = compiled(x)  # function
    x.sum().backward()  # backward

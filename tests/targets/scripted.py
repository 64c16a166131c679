"""TorchScript: scripted and traced modules, functions, a loop, an unused call, and operators between them that make
no node of their own."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(8, 16)
        self.down = nn.Linear(16, 8)

    def forward(self, x):
        hidden = self.up(x)
        return self.down(torch.tanh(hidden) * torch.sigmoid(hidden))


@torch.jit.script
def curve(x, y):
    z = torch.tanh(x * y) + x
    return z.exp()


@torch.jit.script
def rounds(x, times: int):
    for _ in range(times):
        x = torch.tanh(x) * x
    return x


def step(scripted, traced, weight):
    x = torch.randn(4, 8)
    x = x * weight
    weight.detach()
    x = scripted(x)
    x = x.sin()
    weight.detach().clone()
    x = traced(x)
    x = curve(x, weight)
    curve(weight, weight)
    x = x.abs()
    weight.detach()
    x = curve(x, weight)
    x = rounds(x, 2)
    x.mean().backward()


def main(in_thread=None):
    torch.manual_seed(0)
    scripted, traced = torch.jit.script(Net()), torch.jit.trace(Net(), torch.randn(4, 8))
    weight = torch.randn(4, 8, requires_grad=True)
    for _ in range(4):  # graphs are differentiated as a whole from the third run on
        step(scripted, traced, weight)

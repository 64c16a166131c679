"""Many short lines between operators, deep chains of calls, and a backward pass through all of it."""

import torch
from torch import nn

LAYERS = 12
DEPTH = 80


class Busy(nn.Module):
    """A hundred lines of bookkeeping for one operator."""

    def forward(self, x):
        total = 0
        odd = 0
        for index in range(25):
            total = total + index
            if index % 2:
                odd = odd + 1
        scale = total / (odd + 1)
        return x * scale


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)

    def weights(self, x):
        query = self.query(x)
        key = self.key(x)
        scale = query.shape[-1]
        scale = scale**-0.5
        scores = query @ key.transpose(-1, -2)
        scores = scores * scale
        return scores.softmax(-1)

    def forward(self, x):
        value = self.value(x)
        weights = self.weights(x)
        return weights @ value


def descend(layer, x, depth):
    if depth == 0:
        return layer(x)
    return turn(layer, x, depth - 1)


def turn(layer, x, depth):
    if depth == 0:
        return layer(x)
    return descend(layer, x, depth - 1)


class Deep(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return descend(self.layer, x, DEPTH)


def train_step(net, x, optimizer):
    loss = net(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def main(in_thread=None):
    torch.manual_seed(0)
    layers = [layer for _ in range(LAYERS) for layer in (Deep(Attention(8)), Busy(), nn.ReLU())]
    net = nn.Sequential(*layers)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(2):
        train_step(net, torch.randn(4, 6, 8), optimizer)

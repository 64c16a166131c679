"""Python that is dense in lines, with operators before, within, between and behind what is dense."""

import torch
from torch import nn


def count(n):
    total = 0
    for i in range(n):
        total += i
        if total % 7 == 0:
            total += 1
    return total


def halve(n):
    turns = 0
    while n > 1:
        n /= 1.01
        turns += 1
    return turns


def forever(x, n):
    x = x * 2
    while True:
        n -= 1
        if n < 0:
            break
    return x + 1


def now_and_then(x, n):
    for i in range(n):
        i += 1
        if i % 100 == 0:
            x = x + 1
    return x * 0.5


def caught(x, n):
    failures = 0
    for i in range(n):
        try:
            if i % 3 == 0:
                raise ValueError(i)
        except ValueError:
            failures += 1
    return x - failures


def nested(x, n):
    for _ in range(4):
        x = x.sin()
        for i in range(n):
            i += 1
        x = x.cos()
    return x


def fib(n, x):
    if n < 2:
        return n if n else int(x.abs().sum() > 0)
    return fib(n - 1, x) + fib(n - 2, x)


def ping(n, x):
    if n == 0:
        return x.exp()
    return pong(n - 1, x)


def pong(n, x):
    if n == 0:
        return x.tanh()
    return ping(n - 1, x)


def numbers(n):
    for i in range(n):
        yield i


def parts(x, n):
    for i in range(n):
        if i % 50 == 0:
            x = x + i
            yield x
        else:
            yield i


def small(a):
    return a + 1


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x):
        x = self.linear(x)
        count(60)
        return torch.relu(x)


def failing(x, n):
    x = x * 3
    for i in range(n):
        i += 1
    raise KeyError(x.detach().sum().item())


def step(x, net):
    total = count(400) + halve(1e6)
    y = net(x * total)
    y = forever(y, 300)
    y = now_and_then(y, 500)
    y = caught(y, 300)
    y = nested(y, 200)
    y = y + fib(10, x)
    for _ in range(20):
        y = ping(9, y) * 1e-3
    for i in numbers(300):
        total += i
    y = y.neg()
    for part in parts(x, 300):
        total = part
    for i in range(500):
        total = small(i)
    try:
        failing(y, 200)
    except KeyError:
        y = y + total
    y.register_hook(lambda gradient: gradient * count(200))
    y.sum().backward()
    return y.detach()


def main(in_thread=None):
    torch.manual_seed(0)
    net = Net()
    x = torch.randn(2, 3, requires_grad=True)
    for _ in range(3):
        step(x, net)
        x.grad = None
        count(300)
        torch.ones(3).sum()

"""Operators on one line several times, expressions over several lines, comprehensions, lambdas, decorators, properties."""

import functools

import torch


def twice(function):
    @functools.wraps(function)
    def call(*args):
        first = function(*args)
        return first + function(*args)

    return call


class Box:
    def __init__(self, value):
        self.value = value

    @property
    def doubled(self):
        half = self.value * 1.0
        return half + half

    def __matmul__(self, other):
        return self.value.matmul(other.value).relu()

    @staticmethod
    @twice
    def shift(x):
        return x - 0.5

    def __getitem__(self, index):
        return self.value[index] * 2


def defaults(x, scale=torch.ones(3) * 2):
    return (
        x * scale
        + (lambda t: t.sin())(x)
        - x.mean(
            dim=0,
            keepdim=True,
        )
    )


def comprehensions(x):
    rows = [row * 2 for row in x]
    nested = [cell.exp() for row in rows for cell in row if cell.sum() > -100]
    table = {index: value.cos() for index, value in enumerate(nested)}
    total = sum(value * 3 for value in table.values())
    larger = max(nested, key=lambda value: value.abs().item())
    ordered = sorted(nested, key=lambda value: value.neg().item())
    return total + larger + ordered[0]


def conditions(x):
    y = x.sin() if x.sum() > 0 else x.cos()
    z = y * 2
    w = z + 1
    while (w := w - 1).sum() > 0:
        w = w * 0.5
    assert x.isfinite().all(), f"not finite: {x.sum()}"
    text = f"{x.mean():.3f} {(x + 1).std():.3f}"
    a, *rest = x.unbind()
    del a
    return w + len(text) + sum(rest)


def main(in_thread=None):
    torch.manual_seed(0)
    x = torch.randn(3, 3, requires_grad=True)
    box = Box(x) @ Box(x.t() * 2)
    out = Box(box).doubled + Box.shift(x) + Box(x)[0]
    out = defaults(out)
    out = out * comprehensions(out)
    loss = (out + conditions(x)).sum()
    loss.backward()

"""Control flow: recursion, exceptions caught in a loop and far away, finally, early exits, code made at run time."""

import torch


def power(x, n):
    if n == 0:
        return torch.ones_like(x)
    half = power(x, n // 2)
    square = half * half
    return square * x if n % 2 else square


def failing(x, depth):
    y = x + depth
    if depth == 0:
        return y @ torch.ones(7, 7)
    return failing(y, depth - 1) * 2


class Quiet:
    def __init__(self, x):
        self.x = x

    def __enter__(self):
        return self.x * 2

    def __exit__(self, *error):
        self.x.sin()
        return True


def cleaned(x):
    try:
        return x * 2
    finally:
        x.cos()


def loop(x):
    for index in range(6):
        try:
            if index % 2:
                x = failing(x, 3)
            x = x + index
            if index == 4:
                break
        except RuntimeError:
            x = x * 0.5
            continue
        finally:
            x.sum()
    else:
        x.exp()
    return x


def main(in_thread=None):
    torch.manual_seed(0)
    x = torch.randn(3, requires_grad=True)
    y = power(x, 5)
    y = y + loop(y)
    with Quiet(y) as z:
        w = z + 1
        raise ValueError("expected")
    out = cleaned(w)
    scope = {"x": out}
    exec("y = x * 2\nz = y + 1", scope)
    made = eval("lambda t: t * 3")
    total = made(scope["z"]).sum()
    total.backward()

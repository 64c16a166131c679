"""An installed package of modules made for tests, and a program of the user's that trains with it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

__all__ = ["HotLibrary", "hot_library"]

BLOCKS = """
import threading

import torch
from torch import nn

from {name} import helpers


class Block(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.fc = nn.Linear(width, width)
        self.options = {{"scale": None}}

    def forward(self, x):
        scale = self.options.get("scale")
        if scale is None:
            scale = 2.0
        x = self.fc(x)
        x = helpers.activate(x, scale)
        for part in helpers.pieces(x):
            x = x + part
        try:
            helpers.fail(x)
        except ValueError:
            x = x.neg()
        return helpers.power(x, 3)


class Stack(nn.Module):
    def __init__(self, depth=4):
        super().__init__()
        self.blocks = nn.ModuleList([Block() for _ in range(depth)])

    def forward(self, x, transform=None):
        for block in self.blocks:
            x = block(x)
        if transform is not None:
            x = transform(x)
        return x


class Late(nn.Module):
    def forward(self, x, is_late):
        one = self.training
        two = one == 3
        three = two == 4
        if is_late:
            x = x.erf()
        four = three == 5
        five = four == 6
        x = x.cos()
        return x


class Threaded(nn.Module):
    def __init__(self, start=threading.Thread):
        super().__init__()
        self.block = Block()
        self.start = start

    def forward(self, x):
        found = []
        thread = self.start(target=lambda: found.append(self.block(x)))
        thread.start()
        thread.join()
        return found[0]
"""

HELPERS = """
import torch


def activate(x, scale):
    check(x)
    y = x * scale
    return y.tanh()


def check(x):
    names = ["a", "b"]
    if "c" in names:
        raise TypeError
    return None


def pieces(x):
    half = x / 2
    yield half
    yield half.relu()


def fail(x):
    x.sum()
    raise ValueError


def power(x, n):
    if n == 0:
        return x
    y = power(x, n - 1)
    return y.sigmoid()
"""

OPTIMIZER = """
import torch


class Plain(torch.optim.Optimizer):
    def __init__(self, parameters):
        super().__init__(parameters, {{}})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.sub_(p.grad, alpha=0.01)
"""

TRAIN = """
import torch

import {name}.blocks


def double(x):
    return x * 2.0


def step(model, optimizer, x):
    optimizer.zero_grad()
    y = model(x, double)
    loss = y.pow(2).sum()
    loss.backward()
    optimizer.step()
"""


class HotLibrary:
    """The package and the program, imported."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.root = folder / "project"
        self.installed = folder / "site-packages"
        package = self.installed / name
        texts = {"__init__": "", "blocks": BLOCKS, "helpers": HELPERS, "optimizer": OPTIMIZER}
        for path in (package, self.root):
            path.mkdir(parents=True)
        for file, text in texts.items():
            (package / f"{file}.py").write_text(text.format(name=name) if "{" in text else text)
        (self.root / f"train_{name}.py").write_text(TRAIN.format(name=name))
        (self.root / "pyproject.toml").write_text("")
        sys.path[:0] = [str(self.installed), str(self.root)]
        self.blocks = importlib.import_module(f"{name}.blocks")
        self.optimizer = importlib.import_module(f"{name}.optimizer")
        self.train: ModuleType = importlib.import_module(f"train_{name}")

    def file(self, module: str) -> str:
        return str(self.installed / self.name / f"{module}.py")

    def line_of(self, module: str, statement: str) -> int:
        """The line on which a statement of a module stands."""
        lines = Path(self.file(module)).read_text().splitlines()
        (found,) = (number for number, text in enumerate(lines, 1) if text.strip() == statement)
        return found

    def text_of(self, file: str, line: int) -> str:
        return Path(file).read_text().splitlines()[line - 1].strip()


@contextmanager
def hot_library(folder: Path, name: str) -> Iterator[HotLibrary]:
    """Another name for each test: what Python knows of a module outlives it."""
    before = list(sys.path)
    try:
        yield HotLibrary(name, folder)
    finally:
        sys.path[:] = before
        for module in [one for one in sys.modules if one.split(".")[0] in {name, f"train_{name}"}]:
            del sys.modules[module]

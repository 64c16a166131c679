"""A small training loop to be recorded: two linear layers, an optimizer, a data loader."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import textwrap
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from deepscope.capture import torch_compat
from warm_python import run_warm

__all__ = ["TESTS", "Net", "PlainSGD", "hide_what_is_alive", "load", "loader", "scopes_of", "step_names", "train_step"]

TESTS = Path(__file__).resolve().parent
"""What counts as the user's project in these recordings."""


def name_of(qualified: str) -> str:
    """A function's name as a recording has it: the qualified one from Python 3.11 on, whose code objects know it."""
    return qualified if sys.version_info >= (3, 11) else qualified.rpartition(".")[2]


needs_saved_values = pytest.mark.skipif(
    not torch_compat.shows_saved_values(), reason=f"torch {torch.__version__} cannot show what autograd keeps"
)
needs_watched_backward = pytest.mark.skipif(
    not hasattr(torch.autograd, "_engine_run_backward"), reason=f"torch {torch.__version__} has no one place to watch"
)


def hide_what_is_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process of its own: modules, optimizers and results of other tests hold nothing that is recorded."""
    from deepscope.capture import window_memory

    all_living = window_memory.LiveObjects
    known = all_living(tensors=True)
    hidden = {id(one) for kind in (known.modules, known.optimizers, known.tensors) for one in kind}

    def living(*, tensors: bool) -> window_memory.LiveObjects:
        found = all_living(tensors=tensors)
        for kind in ("modules", "optimizers", "tensors", "results"):
            setattr(found, kind, [one for one in getattr(found, kind) if id(one) not in hidden])
        return found

    living.known = known  # type: ignore[attr-defined]  # kept alive, so that no later object has one of their numbers
    monkeypatch.setattr(window_memory, "LiveObjects", living)


OutOfMemoryError = getattr(torch, "OutOfMemoryError", torch.cuda.OutOfMemoryError)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(8, 16)
        self.second = nn.Linear(16, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.first(x).relu()
        return self.second(hidden)


def loader(batches: int = 8) -> torch.utils.data.DataLoader[Any]:
    return torch.utils.data.DataLoader(torch.randn(4 * batches, 8), batch_size=4)


class PlainSGD(torch.optim.Optimizer):
    """Where something was compiled before in the process, torch 2.2 calls no hooks of its own optimizers."""

    def __init__(self, parameters: Iterable[torch.nn.Parameter], lr: float = 0.1) -> None:
        super().__init__(parameters, {"lr": lr})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        """One step down the gradients."""
        for group in self.param_groups:
            for one in group["params"]:
                if one.grad is not None:
                    one.add_(one.grad, alpha=-group["lr"])


def train_step(net: Net, optimizer: torch.optim.Optimizer, batch: torch.Tensor) -> float:
    loss = net(batch).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def load(path: Path, *, exact: bool = False) -> dict[str, Any]:
    """A trace as it stands in its file; `exact` with decimal times: a float since 1970 is 256 ns coarse."""
    data = path.read_bytes()
    text = gzip.decompress(data) if path.suffix == ".gz" else data
    trace: dict[str, Any] = json.loads(text, parse_float=Decimal if exact else None)
    return trace


def step_names(path: Path) -> list[str]:
    events = [event for event in load(path)["traceEvents"] if event["name"].startswith("ProfilerStep#")]
    return [event["name"] for event in sorted(events, key=lambda event: event["ts"])]


def scopes_of(path: Path) -> list[str]:
    return [event["name"] for event in load(path)["traceEvents"] if event.get("cat") == "python_line"]


def steps(*numbers: int) -> list[str]:
    """The steps' names in a trace."""
    return [f"ProfilerStep#{number}" for number in numbers]


def run_python(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A program in a process of its own, with these variables in its environment."""
    return run_warm(textwrap.dedent(program), **environment)

"""What tests of the audit share: small training programs, each makes a step, and a look at two steps."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import deepscope
from deepscope.capture.audit.step_audit import STEPS, Audited, StepAudit
from deepscope.capture.lines import UserCode
from deepscope.records import Profile
from recorded import TESTS

__all__ = [
    "PROGRAMS",
    "TELLS_WHOSE_BYTES",
    "Program",
    "looked_at",
    "looked_at_all",
    "recorded_and_looked_at",
    "text_at",
    "training",
]

TELLS_WHOSE_BYTES = pytest.mark.skipif(
    not hasattr(torch.UntypedStorage, "resizable"),
    reason=f"torch {torch.__version__} cannot tell whose bytes these are",
)


def looked_at(step: Callable[[], object], *, warm_up: int = 1, root: Path = TESTS) -> Audited:
    """What an audit of two steps finds behind so many others."""
    audit = StepAudit(UserCode(root))
    for _ in range(warm_up):
        step()
    audit.begin()
    for _ in range(STEPS):
        step()
        audit.step()
    return audit.audited()


def text_at(found: Audited, place: int) -> str:
    """The source text of a place of the account."""
    return linecache.getline(found.places[place].file, found.places[place].line).strip()


def looked_at_all(step: Callable[[], object]) -> Audited:
    """The same where nothing hinders it."""
    found = looked_at(step)
    assert found.account.left_out == ""
    return found


def recorded_and_looked_at(step: Callable[[], object], folder: Path) -> Profile:
    """The profile of three recorded steps, with what two behind them tell."""
    with deepscope.profile(folder, root=TESTS, wait=1, warmup=1, active=3, audit=True) as recording:
        for _ in range(9):
            step()
            recording.step()
    assert recording.profile is not None
    return recording.profile


class Program(NamedTuple):
    """One step of training, and the modules whose state it changes."""

    step: Callable[[], None]
    modules: list[nn.Module]


def _steps(model: nn.Module, optimizer: torch.optim.Optimizer, loss_of: Callable[[], torch.Tensor]) -> Program:
    def step() -> None:
        optimizer.zero_grad()
        loss_of().backward()
        optimizer.step()

    return Program(step, [model])


def training(model: nn.Module, loss_of: Callable[[], torch.Tensor]) -> Callable[[], None]:
    """A step with Adam."""
    return _steps(model, torch.optim.Adam(model.parameters()), loss_of).step


def perceptron() -> Program:
    model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 4))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    return _steps(model, optimizer, lambda: F.cross_entropy(model(torch.randn(32, 16)), torch.randint(4, (32,))))


def convolutions() -> Program:
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8 * 49, 4)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9, nesterov=True)
    return _steps(model, optimizer, lambda: F.cross_entropy(model(torch.randn(8, 3, 16, 16)), torch.randint(4, (8,))))


def transformer() -> Program:
    layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.1, batch_first=True)
    model = nn.ModuleList([nn.Embedding(50, 32, padding_idx=0), nn.TransformerEncoder(layer, 2), nn.Linear(32, 50)])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def loss() -> torch.Tensor:
        words = torch.randint(1, 50, (4, 12))
        hidden = model[1](model[0](words), src_key_padding_mask=words == 0)
        return F.cross_entropy(model[2](hidden).flatten(0, 1), words.flatten())

    return _steps(model, optimizer, loss)


def recurrent() -> Program:
    model = nn.ModuleList([nn.LSTM(8, 16, 2, dropout=0.1), nn.GRUCell(16, 8)])
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)

    def loss() -> torch.Tensor:
        hidden, _ = model[0](torch.randn(10, 4, 8))
        state = torch.zeros(4, 8)
        for one in hidden:
            state = model[1](one, state)
        return state.square().mean()

    return _steps(model, optimizer, loss)


def clipped_and_accumulated() -> Program:
    model = nn.Linear(16, 16)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=True)

    def step() -> None:
        optimizer.zero_grad(set_to_none=False)
        for _ in range(3):
            F.mse_loss(model(torch.randn(8, 16)), torch.randn(8, 16)).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()

    return Program(step, [model])


def adversarial() -> Program:
    generator = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 16))
    critic = nn.Sequential(nn.Linear(16, 32), nn.LeakyReLU(), nn.Linear(32, 1))
    of_generator, of_critic = (torch.optim.Adam(one.parameters()) for one in (generator, critic))

    def step() -> None:
        fake = generator(torch.randn(16, 8))
        of_critic.zero_grad()
        (critic(fake.detach()).mean() - critic(torch.randn(16, 16)).mean()).backward()
        of_critic.step()
        of_generator.zero_grad()
        critic(fake).mean().neg().backward()
        of_generator.step()

    return Program(step, [generator, critic])


def checkpointed() -> Program:
    model = nn.ModuleList([nn.Sequential(nn.Linear(16, 16), nn.Tanh(), nn.Dropout(0.1)) for _ in range(3)])
    optimizer = torch.optim.Adagrad(model.parameters())

    def loss() -> torch.Tensor:
        x = torch.randn(8, 16)
        for block in model:
            x = checkpoint(block, x, use_reentrant=False)
        return x.square().sum()

    return _steps(model, optimizer, loss)


class _Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x, scale)
        return x * scale

    @staticmethod
    def backward(ctx, gradient):
        x, scale = ctx.saved_tensors
        return gradient * scale, (gradient * x).sum()


def functions_and_penalty() -> Program:
    model = nn.Linear(8, 8)
    scale = nn.Parameter(torch.tensor(2.0))
    model.scale = scale
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)

    def loss() -> torch.Tensor:
        x = torch.randn(4, 8, requires_grad=True)
        y = _Scaled.apply(model(x), scale)
        (slope,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        return y.square().mean() + (slope.norm(dim=1) - 1).square().mean()

    return _steps(model, optimizer, loss)


def in_bfloat16() -> Program:
    model = nn.Sequential(nn.Linear(16, 32), nn.LayerNorm(32), nn.GELU(), nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)

    def loss() -> torch.Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return F.binary_cross_entropy_with_logits(model(torch.randn(8, 16)).float(), torch.rand(8, 1))

    return _steps(model, optimizer, loss)


def by_hand() -> Program:
    """Weights that are stepped without an optimizer, sparse gradients, and reads of the loss."""
    model = nn.EmbeddingBag(40, 8, sparse=True, mode="sum")
    head = nn.Linear(8, 2)
    optimizer = torch.optim.SparseAdam(model.parameters(), lr=1e-2)

    def step() -> None:
        optimizer.zero_grad()
        logits = head(model(torch.randint(0, 40, (6, 5))))
        loss = F.cross_entropy(logits, torch.randint(2, (6,)))
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for parameter in head.parameters():
                parameter -= 0.1 * parameter.grad
                parameter.grad = None
        assert loss.item() > 0

    return Program(step, [model, head])


PROGRAMS: dict[str, Callable[[], Program]] = {
    one.__name__: one
    for one in (
        perceptron,
        convolutions,
        transformer,
        recurrent,
        clipped_and_accumulated,
        adversarial,
        checkpointed,
        functions_and_penalty,
        in_bfloat16,
        by_hand,
    )
}

"""What a step computes with 64 bits, and where that begins, as the audit of real steps finds it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from audited_programs import PROGRAMS, looked_at_all, text_at, training
from deepscope.capture.audit.step_audit import Audited

pytestmark = pytest.mark.usefixtures("nothing_compiled")

TABLE = np.random.default_rng(0).normal(size=(8, 5))


def begins(found: Audited) -> str:
    (one,) = found.account.double
    return text_at(found, one.place)


def names(found: Audited, *, backward: bool) -> set[str]:
    (one,) = found.account.double
    return {use.name for use in (one.backward if backward else one.operators) if use.unused}


def test_a_model_that_was_made_double_computes_so_in_both_directions():
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)).double()
    data = torch.from_numpy(TABLE)

    def loss() -> torch.Tensor:
        batch = data[:6] * 2
        return nn.functional.mse_loss(model(batch[:, :4]), batch[:, 4:])

    found = looked_at_all(training(model, loss))
    assert begins(found) == "batch = data[:6] * 2"
    assert {"aten::addmm", "aten::tanh"} <= names(found, backward=False)
    assert {"aten::mm", "aten::tanh_backward"} <= names(found, backward=True)
    assert found.account.double[0].lines == 3  # the batch, the loss, the optimizer's step


def test_it_begins_where_64_bits_are_made_of_fewer():
    model, weights = nn.Linear(4, 1), torch.from_numpy(TABLE[:, :1])

    def loss() -> torch.Tensor:
        weights.mul(2)
        error = model(torch.randn(8, 4))
        return (error.to(torch.float64) * weights).square().mean()

    found = looked_at_all(training(model, loss))
    assert begins(found) == "return (error.to(torch.float64) * weights).square().mean()"
    assert "aten::addmm" not in names(found, backward=False)


class Curves(Dataset[torch.Tensor]):
    def __init__(self, *, is_cast: bool) -> None:
        self.is_cast = is_cast

    def __len__(self) -> int:
        return 64

    def __getitem__(self, number: int) -> torch.Tensor:
        curve = torch.linspace(0, number, 4, dtype=torch.float64).sin()
        return curve.float() if self.is_cast else curve


def over_curves(*, is_cast: bool) -> Callable[[], None]:
    model = nn.Linear(4, 1).to(torch.float32 if is_cast else torch.float64)
    batches = iter(DataLoader(Curves(is_cast=is_cast), batch_size=4))
    return training(model, lambda: model(next(batches)).sum())


def test_what_a_data_set_computes_does_not_count():
    assert looked_at_all(over_curves(is_cast=True)).account.double == []
    found = looked_at_all(over_curves(is_cast=False))
    assert begins(found) == "curve = torch.linspace(0, number, 4, dtype=torch.float64).sin()"
    assert "aten::addmm" in names(found, backward=False)
    assert not {"aten::sin", "aten::linspace"} & names(found, backward=False)


class Exact(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        return (grad.double() * 2).float()


def test_a_backward_pass_alone_may_have_them():
    model = nn.Linear(4, 1)
    found = looked_at_all(training(model, lambda: Exact.apply(model(torch.randn(8, 4))).square().mean()))
    assert begins(found) == "return (grad.double() * 2).float()"
    assert names(found, backward=False) == set()
    assert "aten::mul" in names(found, backward=True)


def test_numbers_of_pythons_and_programs_with_32_bits_have_none():
    model = nn.Linear(4, 1)
    scale = torch.tensor(0.5, dtype=torch.float64)
    plain = looked_at_all(training(model, lambda: (model(torch.randn(8, 4)) * 0.1 * scale).square().mean()))
    assert plain.account.double == []
    for make in PROGRAMS.values():
        assert looked_at_all(make().step).account.double == []

"""Derivatives that nobody uses, as the audit of real steps finds them, and all the ways to use one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from audited_programs import looked_at_all, recorded_and_looked_at, text_at, training
from deepscope.trace.format.audit import UnusedResults
from recorded import TESTS

pytestmark = pytest.mark.usefixtures("nothing_compiled")

INPUTS, FIELDS = 3, 2
Loss = Callable[[list[torch.Tensor]], Any]


def derivative(values: torch.Tensor, points: torch.Tensor) -> torch.Tensor:
    return torch.autograd.grad(values.sum(), points, create_graph=True)[0]


def hessians(field: nn.Module, points: torch.Tensor, joined: Callable[..., torch.Tensor]) -> list[torch.Tensor]:
    """Of each number of the field's, by both inputs."""
    values = field(points)
    found = []
    for number in range(FIELDS):
        first = derivative(values[:, number], points)
        rows = [derivative(first[:, place], points) for place in range(INPUTS)]
        found.append(joined(rows, dim=1))
    return found


def step_of(loss_of: Loss, *, joined: Callable[..., torch.Tensor] = torch.stack) -> Callable[[], None]:
    field = nn.Sequential(nn.Linear(INPUTS, 16), nn.Tanh(), nn.Linear(16, FIELDS))

    def loss() -> torch.Tensor:
        points = torch.randn(64, INPUTS, requires_grad=True)
        return torch.as_tensor(loss_of(hessians(field, points, joined))).square().mean()

    return training(field, loss)


def unused(loss_of: Loss, **options: Any) -> list[UnusedResults]:
    return [one for one in looked_at_all(step_of(loss_of, **options)).account.results if one.derivatives]


def test_rows_of_a_hessian_that_no_loss_reads_are_counted_at_the_line_that_takes_them():
    found = looked_at_all(step_of(lambda second: second[0][:, 0, 0] + second[0][:, 1, 1]))
    (one,) = [row for row in found.account.results if row.derivatives]
    assert (one.derivatives, one.all_derivatives, one.whole) == (4, 6, False)
    assert text_at(found, one.place) == "rows = [derivative(first[:, place], points) for place in range(INPUTS)]"
    products = [use for use in one.backward if use.name == "aten::mm"]
    assert 0 < sum(use.unused for use in products) < sum(use.times for use in products)


def joined_by_cat(rows: list[torch.Tensor], dim: int) -> torch.Tensor:
    return torch.cat([row.unsqueeze(dim) for row in rows], dim)


def joined_in_front(rows: list[torch.Tensor], dim: int) -> torch.Tensor:
    return torch.stack(rows, dim=0).movedim(0, dim)


READ: dict[str, tuple[Loss, int]] = {
    "one row": (lambda second: second[0][:, 1], 5),
    "rows by twos": (lambda second: second[1][:, ::2], 4),
    "a diagonal": (lambda second: second[0].diagonal(dim1=1, dim2=2).sum(-1), 3),
    "some points": (lambda second: second[0][3:9, 2:], 5),
    "one of two": (lambda second: second[1].exp(), 3),
    "turned": (lambda second: second[1].transpose(0, 1)[0] + second[1][:, 1:2, 1], 4),
}


@pytest.mark.parametrize("joined", [torch.stack, joined_by_cat, joined_in_front])
@pytest.mark.parametrize("name", READ)
def test_what_is_read_is_followed_to_the_parts_that_were_joined(name: str, joined: Callable[..., torch.Tensor]):
    loss_of, count = READ[name]
    (one,) = unused(loss_of, joined=joined)
    assert one.derivatives == count


KEPT: list[torch.Tensor] = []


def kept(second: list[torch.Tensor]) -> torch.Tensor:
    KEPT.extend(second)
    return second[0][:, 0]


USED: dict[str, Loss] = {
    "all rows": lambda second: second[0] + second[1],
    "a number of each": lambda second: second[0][:, :, 0] + second[1][:, :, 1],
    "printed": lambda second: (repr(second), second[0][:, 0])[1],
    "by NumPy": lambda second: ([one.detach().numpy() for one in second], second[0][:, 0])[1],
    "for a log": lambda second: second[0][:, 0] * max(one.abs().max().item() for one in second),
    "kept": kept,
}


@pytest.mark.parametrize("name", USED)
def test_derivatives_that_somebody_uses_are_not_found(name: str):
    assert unused(USED[name]) == []
    KEPT.clear()


def test_gradients_that_are_differentiated_once_more_with_those_before_them_are_used():
    field = nn.Sequential(nn.Linear(INPUTS, 16), nn.Tanh(), nn.Linear(16, 1))

    def loss() -> torch.Tensor:
        points = torch.randn(64, INPUTS, requires_grad=True)
        values = field(points)
        direction = derivative(values, points)
        (along,) = torch.autograd.grad(values.exp(), points, direction.mean(1, keepdim=True), create_graph=True)
        return along.square().mean()

    assert [one for one in looked_at_all(training(field, loss)).account.results if one.derivatives] == []


def test_the_finding_promises_a_bound_and_names_the_change(tmp_path: Path):
    field = nn.Sequential(nn.Linear(INPUTS, 128), nn.Tanh(), nn.Linear(128, 128), nn.Tanh(), nn.Linear(128, FIELDS))

    def loss() -> torch.Tensor:
        points = torch.randn(256, INPUTS, requires_grad=True)
        return hessians(field, points, torch.stack)[0][:, 0].square().mean()

    profile = recorded_and_looked_at(training(field, loss), tmp_path)
    (found,) = [one for one in profile.findings if one.code == "DS037" and "derivatives" in one.message]
    assert found.file == str(TESTS / "integration" / "recorder" / "test_audit_unused_derivatives.py")
    assert found.message.startswith("5 of 6 derivatives that are taken here are not used")
    assert "torch.autograd.grad" in found.remedy.text
    assert 0 < found.saving_ns < profile.totals.wall_ns
    assert not found.is_measured

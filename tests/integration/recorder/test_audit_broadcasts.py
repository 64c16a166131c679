"""Tensors that broadcasting makes large and a reduction small again, as the audit of real steps finds them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from audited_programs import looked_at_all, training
from deepscope.trace.format.audit import Broadcast

pytestmark = pytest.mark.usefixtures("nothing_compiled")

WIDTH = 16
Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def broadcasts(loss_of: Loss) -> list[Broadcast]:
    """Of a step that compares 32 outputs of a layer with 24 learnt points."""
    layer = nn.Linear(WIDTH, WIDTH)
    layer.points = nn.Parameter(torch.randn(24, WIDTH))

    def loss() -> torch.Tensor:
        return loss_of(layer(torch.randn(32, WIDTH)), layer.points).mean()

    return looked_at_all(training(layer, loss)).account.broadcasts


@pytest.mark.parametrize(
    ("loss_of", "name", "reduction"),
    [
        (lambda a, b: (a[:, None] - b).square().sum(-1), "sub", "sum"),
        (lambda a, b: (a[:, None] - b[None]).abs().amax(dim=2), "sub", "amax"),
        (lambda a, b: (a[:, None] - b).norm(dim=-1), "sub", "linalg_vector_norm"),
        (lambda a, b: (a[:, None] * b).sum(-1), "mul", "sum"),
        (
            lambda a, b: a.sum() + (a.argmax(1)[:, None, None] == b.argmax(1)[:, None] + torch.arange(9)).any(-1),
            "eq",
            "any",
        ),
    ],
)
def test_a_large_tensor_that_is_reduced_is_found_with_both_operators(loss_of: Loss, name: str, reduction: str):
    (found,) = broadcasts(loss_of)
    assert (found.name, found.reduction) == (f"aten::{name}", f"aten::{reduction}")
    assert found.given_elements in {32 * WIDTH, 24 * 9}
    assert found.shape in ([32, 24, WIDTH], [32, 24, 9])
    assert {use.name for use in found.operators if use.unused} >= {found.name, found.reduction}


def test_backward_work_of_the_line_belongs_to_it():
    (found,) = broadcasts(lambda a, b: (a[:, None] - b).square().sum(-1))
    assert sum(use.unused for use in found.backward) >= 3


@pytest.mark.parametrize(
    "loss_of",
    [
        torch.cdist,
        lambda a, b: (a + b[0]).square().sum(-1),  # no larger than an argument
        lambda a, b: (a[:, None] - b).softmax(-1) @ torch.ones(WIDTH),  # used as it is
        lambda a, b: F.softmax(a @ b.T, dim=1) @ b,
    ],
)
def test_what_is_used_as_it_is_or_is_no_larger_is_none(loss_of: Loss):
    assert broadcasts(loss_of) == []

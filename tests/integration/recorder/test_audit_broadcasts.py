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


def test_differences_in_a_few_dimensions_are_more_than_their_distances():
    (found,) = broadcasts(lambda a, b: (a[:, None, :3] - b[:, :3]).square().sum(-1))
    assert (found.shape, found.reduced_elements) == ([32, 24, 3], 32 * 24)
    assert broadcasts(lambda a, b: (a[:, None, :3] * b[:, :3]).sum(-1)) == []


def nearest_beyond(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Of each distance the next larger one of its row, by a table of all with all."""
    distances = torch.cdist(a, b)
    tile, others = distances.repeat(24, 1), (distances > 1).repeat(24, 1)
    chosen = others & (tile > distances.t().reshape(-1, 1))
    top = tile.amax(1, keepdim=True)
    return ((tile - top) * chosen).amin(1)


def test_tables_that_are_repeated_to_compare_all_with_all_are_one_finding():
    (found,) = broadcasts(nearest_beyond)
    assert (found.name, found.shape) == ("aten::repeat", [32 * 24, 24])
    names = {use.name for use in found.operators if use.unused}
    assert names >= {"aten::repeat", "aten::gt", "aten::bitwise_and", "aten::sub", "aten::mul", "aten::amin"}


@pytest.mark.parametrize(
    "loss_of",
    [
        lambda a, b: (a.repeat(10, 1) @ b.T).square().sum(-1),  # a layer's work on each copy
        lambda a, b: (a.repeat(10, 1) - torch.randn(320, WIDTH)).square().sum(-1),  # as large without a copy
        lambda a, b: (a.repeat(10, 1) * torch.rand_like(a.repeat(10, 1))).sum(-1),
        lambda a, b: F.dropout(a.repeat(10, 1)).square().sum(-1),
        lambda a, b: (a.repeat(10, 1) - F.relu(torch.cat([a + k * b[0] for k in range(10)]))).square().sum(-1),
        lambda a, b: a.repeat(3, 1).square().sum(-1),  # not much larger
    ],
)
def test_copies_that_meet_what_differs_for_each_of_them_are_none(loss_of: Loss):
    assert [one for one in broadcasts(loss_of) if one.name == "aten::repeat"] == []


@pytest.mark.parametrize("way", ["one_hot", "zeros"])
def test_a_product_with_a_one_hot_tensor_is_a_look_up(way: str):
    table = nn.Parameter(torch.randn(60, WIDTH))

    def loss() -> torch.Tensor:
        ids = torch.randint(60, (4, 8))
        if way == "one_hot":
            chosen = F.one_hot(ids, 60).to(table.dtype)
        else:
            chosen = torch.zeros(4, 8, 60).scatter_(-1, ids[..., None], 1)
        return (chosen @ table).square().mean()

    (found,) = looked_at_all(training(nn.ParameterList([table]), loss)).account.broadcasts
    assert (found.name, found.reduction, found.given_elements) == ("aten::scatter_", "aten::mm", 32)
    assert {use.name for use in found.operators if use.unused} >= {"aten::scatter_", "aten::mm"}


def test_a_one_hot_tensor_that_is_compared_is_none():
    layer = nn.Linear(WIDTH, 40)

    def loss() -> torch.Tensor:
        goal = F.one_hot(torch.randint(40, (32,)), 40).float()
        return F.binary_cross_entropy_with_logits(layer(torch.randn(32, WIDTH)), goal)

    assert looked_at_all(training(layer, loss)).account.broadcasts == []


def test_what_one_line_broadcasts_several_times_is_one_row():
    (found,) = broadcasts(lambda a, b: sum((a[:, None] - part).square().sum() for part in (b, b + 1, b[:12])))
    assert sum(use.unused for use in found.operators if use.name == "aten::sub") == 3
    assert (found.shape, found.result_bytes) == ([32, 24, WIDTH], 4 * 32 * (24 + 24 + 12) * WIDTH)


@pytest.mark.parametrize("reduce", [torch.logsumexp, torch.amax])
def test_sums_of_all_pairs_whose_largest_is_wanted_have_no_operator_of_their_own(reduce: Callable[..., torch.Tensor]):
    assert broadcasts(lambda a, b: reduce(a[:, None] + b, -1)) == []

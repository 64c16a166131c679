"""Tensors that are made large and small again, as the audit of real steps finds them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from audited_programs import looked_at_all, recorded_and_looked_at, text_at, training
from deepscope.capture.audit.step_audit import Audited
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


CLASSES = 5
Metric = Callable[[torch.Tensor, torch.Tensor], Any]


def dice(found: torch.Tensor, target: torch.Tensor) -> list[torch.Tensor]:
    scores = []
    for number in range(CLASSES):
        one, other = (found == number).float(), (target == number).float()
        scores.append(2 * (one * other).sum() / (one.sum() + other.sum() + 1))
    return scores


def overlap(found: torch.Tensor, target: torch.Tensor) -> list[torch.Tensor]:
    scores = []
    counts = target != 255
    for number in range(CLASSES):
        both = ((found == number) & (target == number) & counts).sum()
        either = (((found == number) | (target == number)) & counts).sum()
        scores.append(both / (either + 1))
    return scores


def confusion(found: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    table = torch.zeros(CLASSES, CLASSES)
    for row in range(CLASSES):
        for column in range(CLASSES):
            table[row, column] = ((target == row) & (found == column)).sum()
    return table


def accuracies(found: torch.Tensor, target: torch.Tensor) -> list[float]:
    hits = found == target
    return [((target == number) & hits).sum().item() / (target == number).sum().item() for number in range(CLASSES)]


def frequencies(found: torch.Tensor, target: torch.Tensor) -> list[float]:
    return [(target == number).float().mean().item() for number in range(CLASSES)]


def step_of(metric: Metric, *, size: int = 64) -> Callable[[], None]:
    net = nn.Conv2d(3, CLASSES, 1)

    def loss() -> torch.Tensor:
        images, target = torch.randn(8, 3, size, size), torch.randint(CLASSES, (8, size, size))
        logits = net(images)
        with torch.no_grad():
            values = metric(logits.argmax(1), target)
            float(sum(torch.as_tensor(one).sum() for one in values))
        return F.cross_entropy(logits, target)

    return training(net, loss)


def classes_of(audited: Audited) -> list[str]:
    return [text_at(audited, one.place) for one in audited.account.cheaper if one.kind == "classes"]


@pytest.mark.parametrize("metric", [dice, overlap, confusion, accuracies, frequencies])
def test_a_loop_over_classes_is_found_once_at_its_first_comparison(metric: Metric):
    audited = looked_at_all(step_of(metric))
    (text,) = classes_of(audited)
    assert "== number" in text or "== row" in text
    (one,) = [row for row in audited.account.cheaper if row.kind == "classes"]
    assert one.needed == pytest.approx(0.75 / CLASSES)
    assert {"aten::eq", "aten::sum"} & {use.name for use in one.operators if use.unused}
    repeated = [row for row in audited.account.same if row.again]
    assert not any(use.name == "aten::eq" and use.unused for row in repeated for use in row.operators)


def shuffled(found: torch.Tensor, target: torch.Tensor) -> list[torch.Tensor]:
    return [found[target == number].float().mean() for number in range(CLASSES)]


def weighed(found: torch.Tensor, target: torch.Tensor) -> list[torch.Tensor]:
    weights = torch.rand(target.shape)
    return [((target == number) * weights).sum() for number in range(CLASSES)]


def at_once(found: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return torch.bincount((target * CLASSES + found).flatten(), minlength=CLASSES**2)


def two(found: torch.Tensor, target: torch.Tensor) -> list[torch.Tensor]:
    return [(target == number).sum() for number in range(2)]


def given_away(found: torch.Tensor, target: torch.Tensor) -> list[float]:
    return [(target == number).numpy().sum() for number in range(CLASSES)]


@pytest.mark.parametrize("metric", [shuffled, weighed, at_once, two, given_away])
def test_what_is_not_only_counted_is_not_found(metric: Metric):
    assert classes_of(looked_at_all(step_of(metric))) == []


def test_small_tensors_are_a_matter_of_calls():
    assert classes_of(looked_at_all(step_of(dice, size=16))) == []


def test_the_finding_stands_at_the_loop_and_saves_most_of_it(tmp_path: Path):
    profile = recorded_and_looked_at(step_of(confusion, size=128), tmp_path)
    (found,) = [one for one in profile.findings if one.code == "DS047"]
    (line,) = [one for one in profile.lines if (one.file, one.line) == (found.file, found.line)]
    assert "(target == row)" in line.text
    assert "bincount" in found.remedy.text
    assert 0.5 * line.self_device_ns < found.saving_ns < line.self_cpu_ns  # Python may have waited for a core
    assert not [one for one in profile.findings if one.code in {"DS035", "DS007"} and one.line == found.line]

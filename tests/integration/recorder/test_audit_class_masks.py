"""Metrics that compare a tensor with one class after the other, as the audit of real steps finds them."""

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

pytestmark = pytest.mark.usefixtures("nothing_compiled")

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

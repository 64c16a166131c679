"""Logarithms of probabilities that a softmax normalises once more, as the audit of real steps finds them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from audited_programs import looked_at_all, text_at, training
from deepscope.capture.audit.step_audit import Audited

pytestmark = pytest.mark.usefixtures("nothing_compiled")

Loss = Callable[[torch.Tensor], torch.Tensor]
KEPT: list[torch.Tensor] = []


def behind_a_layer(loss: Loss) -> Audited:
    """Steps with this loss of a layer's output, (8, 6, 32)."""
    layer = nn.Linear(16, 32)
    return looked_at_all(training(layer, lambda: loss(layer(torch.randn(8, 6, 16)))))


def kinds(loss: Loss) -> list[str]:
    return [one.kind for one in behind_a_layer(loss).account.cheaper]


def labels() -> torch.Tensor:
    return torch.randint(32, (48,))


def divergence(x: torch.Tensor) -> torch.Tensor:
    before = torch.log(torch.softmax(x, dim=-1))
    after = F.log_softmax(before / 2.0, dim=-1)
    return F.kl_div(after, torch.rand(8, 6, 32), reduction="batchmean")


def test_a_line_whose_result_is_normalised_again_is_named_with_both_of_its_operators():
    found = behind_a_layer(divergence)
    (one,) = found.account.cheaper
    assert (text_at(found, one.place), one.kind) == ("before = torch.log(torch.softmax(x, dim=-1))", "softmax_before")
    assert {use.name for use in one.operators if use.unused} == {"aten::_softmax", "aten::log"}
    assert {use.name for use in one.backward if use.unused} >= {"aten::div", "aten::_softmax_backward_data"}
    assert one.needed == 0.05


def probabilities_of_both(x: torch.Tensor) -> torch.Tensor:
    logarithms = x.log_softmax(-1)
    return (logarithms * 0.5).softmax(-1).square().mean() - (logarithms / 3).log_softmax(-1)[..., 0].mean()


def in_another_layout(x: torch.Tensor) -> torch.Tensor:
    logarithms = x.transpose(1, 2).log_softmax(1)[..., :-1]
    return F.cross_entropy(logarithms.transpose(1, 2).flatten(0, 1) / 2, labels()[:40])


BEFORE: dict[str, Loss] = {
    "as it is": lambda x: F.cross_entropy(x.log_softmax(-1).flatten(0, 1), labels()),
    "written out": lambda x: x.softmax(-1).log().log_softmax(-1).square().mean(),
    "by a parameter": lambda x: (x.log_softmax(-1) * torch.tensor(2.0)).softmax(-1).square().mean(),
    "with a bias": lambda x: (x.log_softmax(-1) + torch.rand(32)).softmax(-1).square().mean(),
    "in another type": lambda x: (x.bfloat16().log_softmax(-1).float() / 2).log_softmax(-1).square().mean(),
    "for two": probabilities_of_both,
    "in another layout": in_another_layout,
}


@pytest.mark.parametrize("name", BEFORE)
def test_what_is_before_a_softmax_alone_need_not_be_normalised(name: str):
    assert kinds(BEFORE[name]) == ["softmax_before"]


def read_too(x: torch.Tensor) -> torch.Tensor:
    logarithms = x.log_softmax(-1).flatten(0, 1)
    return F.cross_entropy(logarithms, labels()) - (logarithms.exp() * logarithms).sum(-1).mean()


def test_logarithms_of_probabilities_that_are_read_as_such_are_not_normalised_again():
    found = behind_a_layer(read_too)
    (one,) = found.account.cheaper
    assert one.kind == "softmax_again"
    assert text_at(found, one.place).startswith("return F.cross_entropy(logarithms, labels())")
    assert [use.name for use in one.operators if use.unused] == ["aten::_log_softmax"]


def scaled_for_one_of_two(x: torch.Tensor) -> torch.Tensor:
    logarithms = x.log_softmax(-1).flatten(0, 1)
    return F.nll_loss(logarithms, labels()) + (logarithms / 2).log_softmax(-1).square().mean()


def scaled_and_read(x: torch.Tensor) -> torch.Tensor:
    scaled = x.log_softmax(-1) / 2
    return scaled.softmax(-1).square().mean() + scaled.mean()


def copied_and_read(x: torch.Tensor) -> torch.Tensor:
    logarithms = x.log_softmax(-1)
    likely = logarithms[:, :-1].flatten(0, 1)
    return (logarithms / 2).softmax(-1).square().mean() + F.nll_loss(likely, labels()[:40])


def kept(x: torch.Tensor) -> torch.Tensor:
    logarithms = x.log_softmax(-1)
    KEPT.append(logarithms.detach())
    return (logarithms / 2).softmax(-1).square().mean()


def seen_by_numpy(x: torch.Tensor) -> torch.Tensor:
    logarithms = x.log_softmax(-1)
    assert logarithms.detach().numpy().max() <= 0
    return (logarithms / 2).softmax(-1).square().mean()


def written_to(x: torch.Tensor) -> torch.Tensor:
    logarithms = x.detach().log_softmax(-1)
    logarithms[:, 0] *= 3 * torch.rand(32)
    return logarithms.softmax(-1).square().mean() * x.mean()


def two_chunks(x: torch.Tensor) -> torch.Tensor:
    return x.log_softmax(-1).unflatten(-1, (2, 16)).log_softmax(-1).square().mean()


@pytest.mark.parametrize(
    "loss",
    [
        lambda x: F.cross_entropy(x.softmax(-1).flatten(0, 1), labels()),
        lambda x: x.softmax(-1).softmax(-1).square().mean(),
        lambda x: (x.softmax(-1) + 1e-9).log().log_softmax(-1).square().mean(),
        lambda x: x.log_softmax(-1).log_softmax(1).square().mean(),
        lambda x: x.log_softmax(-1)[..., :16].log_softmax(-1).square().mean(),
        lambda x: (x.log_softmax(-1) * torch.rand(32)).log_softmax(-1).square().mean(),
        lambda x: x.log_softmax(-1).square().log_softmax(-1).square().mean(),
        scaled_for_one_of_two,
        scaled_and_read,
        copied_and_read,
        kept,
        seen_by_numpy,
        written_to,
        two_chunks,
    ],
)
def test_a_softmax_that_changes_something_is_none(loss: Loss):
    assert kinds(loss) == []

"""Functions of torch that are written out, and what a softmax normalises again, as the audit finds them."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from audited_programs import looked_at_all, text_at, training
from deepscope.capture.audit.step_audit import Audited

pytestmark = pytest.mark.usefixtures("nothing_compiled")

Function = Callable[[torch.Tensor], torch.Tensor]


def gelu_by_tanh(x: torch.Tensor) -> torch.Tensor:
    return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))


def gelu_by_tanh_without_a_power(x: torch.Tensor) -> torch.Tensor:
    return 0.5 * x * (1 + torch.tanh(0.7978845608 * x * (1 + 0.044715 * x * x)))


def gelu_by_tanh_with_a_number_in_a_tensor(x: torch.Tensor) -> torch.Tensor:
    root = torch.sqrt(torch.tensor(2.0 / torch.pi))
    return 0.5 * x * (1 + torch.tanh(root * (x + 0.044715 * torch.pow(x, 3))))


def gelu_by_erf(x: torch.Tensor) -> torch.Tensor:
    return x * 0.5 * (1.0 + torch.erf(x / math.sqrt(2.0)))


def swish(x: torch.Tensor) -> torch.Tensor:
    return x * torch.sigmoid(x)


def leaky(x: torch.Tensor) -> torch.Tensor:
    return torch.where(x > 0, x, 0.2 * x)


def rectified(x: torch.Tensor) -> torch.Tensor:
    return torch.max(x, torch.zeros_like(x))


def rectified_by_where(x: torch.Tensor) -> torch.Tensor:
    return torch.where(x > 0, x, torch.zeros_like(x))


def softmax(x: torch.Tensor) -> torch.Tensor:
    powers = torch.exp(x - x.max(dim=-1, keepdim=True).values)
    return powers / powers.sum(dim=-1, keepdim=True)


def logarithm_of_softmax(x: torch.Tensor) -> torch.Tensor:
    return torch.log(torch.softmax(x, dim=-1))


def logarithm_among_others(x: torch.Tensor) -> torch.Tensor:
    chosen = x[:, :-1].contiguous() / 2.0
    return torch.log(F.softmax(chosen, dim=-1)) * x[:, 1:]


def logarithm_of_a_module(x: torch.Tensor) -> torch.Tensor:
    return nn.Softmax(-1)(x).log().sum(-1)


def cross_entropy(x: torch.Tensor) -> torch.Tensor:
    labels = F.one_hot(torch.randint(32, (64,)), 32).float()
    return -(labels * F.log_softmax(x, dim=-1)).sum(dim=-1)


class LayerNorm(nn.Module):
    def __init__(self, *, by_deviation: bool) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(32)), nn.Parameter(torch.zeros(32))
        self.by_deviation = by_deviation

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mean = x.mean(-1, keepdim=True)
        if self.by_deviation:
            return self.weight * (x - mean) / (x.std(-1, keepdim=True) + 1e-6) + self.bias
        variance = (x - mean).pow(2).mean(-1, keepdim=True)
        return self.weight * ((x - mean) * torch.rsqrt(variance + 1e-6)) + self.bias


def kinds(function: Function) -> list[str]:
    """Of the cheaper operators behind a layer."""
    layer = nn.Linear(16, 32)
    model = nn.ModuleList([layer, function] if isinstance(function, nn.Module) else [layer])
    loss = lambda: function(layer(torch.randn(64, 16))).square().mean()  # noqa: E731
    return [one.kind for one in looked_at_all(training(model, loss)).account.cheaper]


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (gelu_by_tanh, "gelu"),
        (gelu_by_tanh_without_a_power, "gelu"),
        (gelu_by_tanh_with_a_number_in_a_tensor, "gelu"),
        (gelu_by_erf, "gelu"),
        (swish, "silu"),
        (leaky, "leaky_relu"),
        (rectified, "relu"),
        (rectified_by_where, "relu"),
        (softmax, "softmax"),
        (logarithm_of_softmax, "log_softmax"),
        (logarithm_among_others, "log_softmax"),
        (logarithm_of_a_module, "log_softmax"),
        (cross_entropy, "cross_entropy"),
        (LayerNorm(by_deviation=True), "layer_norm"),
        (LayerNorm(by_deviation=False), "layer_norm"),
    ],
)
def test_a_function_that_is_written_out(function: Function, kind: str):
    assert kinds(function) == [kind]


def gate(x: torch.Tensor) -> torch.Tensor:
    a, b = x.chunk(2, -1)
    return torch.tanh(a) * torch.sigmoid(b)


def two_sources(x: torch.Tensor) -> torch.Tensor:
    return x * torch.sigmoid(other(x))


other = nn.Linear(32, 32)


def standardized_by_column(x: torch.Tensor) -> torch.Tensor:
    return (x - x.mean(0, keepdim=True)) / (x.std(0, keepdim=True) + 1e-6)


def entropy(x: torch.Tensor) -> torch.Tensor:
    shares = torch.softmax(x, dim=-1)
    return (shares * shares.log()).sum(-1)


def logarithm_of_some(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, dim=-1)[:, 0].log()


def whole_softmax(x: torch.Tensor) -> torch.Tensor:
    powers = torch.exp(x)
    return powers / powers.sum()


@pytest.mark.parametrize(
    "function",
    [
        F.gelu,
        F.silu,
        torch.relu,
        nn.LayerNorm(32),
        gate,
        two_sources,
        standardized_by_column,
        entropy,
        logarithm_of_some,
        whole_softmax,
    ],
)
def test_operators_of_torch_and_other_functions_are_none(function: Function):
    assert kinds(function) == []


Loss = Callable[[torch.Tensor], torch.Tensor]
KEPT: list[torch.Tensor] = []


def behind_a_layer(loss: Loss) -> Audited:
    """Steps with this loss of a layer's output, (8, 6, 32)."""
    layer = nn.Linear(16, 32)
    return looked_at_all(training(layer, lambda: loss(layer(torch.randn(8, 6, 16)))))


def kinds_behind(loss: Loss) -> list[str]:
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
    assert kinds_behind(BEFORE[name]) == ["softmax_before"]


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
    assert kinds_behind(loss) == []

"""Functions of torch that are written out, as the audit of real steps finds them."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from audited_programs import looked_at_all, training

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

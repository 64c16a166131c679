"""Loops that compute anew for all that they have joined so far, as the audit of real steps finds them."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from audited_programs import looked_at_all, text_at, training
from deepscope.capture.audit.step_audit import Audited

pytestmark = pytest.mark.usefixtures("nothing_compiled")


def found_in(found: Audited) -> list[tuple[str, int, int, int]]:
    """The line, how often it computes, and the first and the last length."""
    return [(text_at(found, one.place), one.times, one.shortest, one.longest) for one in found.account.prefixes]


class Decoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(20, 16)
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        self.head = nn.Linear(16, 20)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.layer(self.table(tokens)))


def sampled(model: nn.Module, count: int) -> torch.Tensor:
    tokens = torch.zeros(2, 3, dtype=torch.long)
    with torch.no_grad():
        for _ in range(count):
            logits = model(tokens)
            tokens = torch.cat([tokens, logits[:, -1:].argmax(-1)], dim=1)
    return tokens


def test_sampling_without_a_cache():
    model = Decoder()
    found = looked_at_all(training(model, lambda: model(sampled(model, 10)).square().mean()))
    assert found_in(found) == [("logits = model(tokens)", 9, 4, 12)]
    (one,) = found.account.prefixes
    assert one.needed == pytest.approx(9 / sum(range(4, 13)))
    names = {use.name for use in one.operators if use.unused}
    assert {"aten::embedding", "aten::addmm"} <= names
    # Nine of the ten calls, and that of all tokens, with which the step trains, is another line's.
    assert {(use.times, use.unused) for use in one.operators if use.name == "aten::embedding"} == {(11, 9)}


def test_a_recurrent_layer_that_begins_anew_each_time():
    model = nn.GRU(8, 8, batch_first=True)

    def loss() -> torch.Tensor:
        x = torch.randn(2, 1, 8)
        for _ in range(9):
            y, _ = model(x)
            x = torch.cat((x, y[:, -1:]), 1)
        return x.square().mean()

    found = looked_at_all(training(model, loss))
    assert found_in(found) == [("y, _ = model(x)", 8, 2, 9)]


def test_results_that_are_gathered_are_none():
    model = nn.Linear(8, 8)

    def loss() -> torch.Tensor:
        x, gathered = torch.randn(2, 1, 8), torch.zeros(2, 1, 8)
        for _ in range(10):
            x = torch.tanh(model(x))
            gathered = torch.cat([gathered, x], dim=1)
        return gathered.square().mean()

    found = looked_at_all(training(model, loss))
    assert found_in(found) == []
    assert [one.need for one in found.account.copies] == ["grown"]


def test_a_few_joins_are_none():
    model = Decoder()
    assert found_in(looked_at_all(training(model, lambda: model(sampled(model, 5)).square().mean()))) == []


@pytest.mark.parametrize("written_out", [False, True])
@pytest.mark.parametrize("shape", [(2, 1, 16), (1, 16)])
def test_a_cache_of_keys_and_values_is_none(shape: tuple[int, ...], *, written_out: bool):
    """What is joined is read by attention, and not computed again."""
    attention = nn.functional.scaled_dot_product_attention
    model = nn.Linear(16, 48)

    def loss() -> torch.Tensor:
        x = torch.randn(shape)
        keys = values = torch.zeros(shape)
        for _ in range(10):
            query, key, value = model(x).chunk(3, -1)
            keys = torch.cat([keys, key], -2)
            values = torch.cat([values, value], -2)
            x = torch.softmax(query @ keys.mT, -1) @ values if written_out else attention(query, keys, values)
        return x.square().mean()

    assert found_in(looked_at_all(training(model, loss))) == []

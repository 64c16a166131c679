"""Modules alike that are called one after the other, as the audit of real steps finds them."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from audited_programs import looked_at_all, text_at, training
from deepscope.capture.audit.step_audit import Audited

pytestmark = pytest.mark.usefixtures("nothing_compiled")


def found_in(found: Audited) -> list[tuple[str, str, int, str]]:
    """The line, the class, the number and the first operator of each row."""
    return [(text_at(found, one.place), one.module, one.modules, one.operator) for one in found.account.alike]


def test_an_embedding_for_each_column_is_one_row_and_no_loop_over_slices():
    tables = nn.ModuleList([nn.Embedding(10 + 5 * number, 4) for number in range(6)])

    def loss() -> torch.Tensor:
        columns = torch.randint(10, (8, 6))
        parts = []
        for number, table in enumerate(tables):
            parts.append(table(columns[:, number]))
        return torch.cat(parts, 1).square().mean()

    found = looked_at_all(training(tables, loss))
    assert found_in(found) == [("parts.append(table(columns[:, number]))", "Embedding", 6, "aten::embedding")]
    assert found.account.slices == []
    (one,) = found.account.alike
    # The lookup, its gradient, and what gives that to the parameter, which is two operators in torch 2.2.
    assert one.operators in (6 * 3, 6 * 4)
    assert one.parameters == 6


class Head(nn.Module):
    def __init__(self, size: int = 16, out: int = 4) -> None:
        super().__init__()
        self.query, self.value = nn.Linear(size, out), nn.Linear(size, out)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weights = torch.softmax(self.query(x), -1)
        return weights * self.value(x)


class Block(nn.Module):
    def __init__(self, heads: list[nn.Module]) -> None:
        super().__init__()
        self.heads = nn.ModuleList(heads)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([head(x) for head in self.heads], -1)


def test_heads_of_all_blocks_are_one_row_with_their_own_lines():
    blocks = nn.Sequential(*(Block([Head() for _ in range(4)]) for _ in range(3)))
    found = looked_at_all(training(blocks, lambda: blocks(torch.randn(8, 16)).square().mean()))
    assert found_in(found) == [("return torch.cat([head(x) for head in self.heads], -1)", "Head", 4, "aten::addmm")]


def test_layers_that_follow_each_other_are_none():
    layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(6)])

    def loss() -> torch.Tensor:
        x = torch.randn(4, 8)
        for layer in layers:
            x = torch.relu(layer(x))
        return x.square().mean()

    assert found_in(looked_at_all(training(layers, loss))) == []


@pytest.mark.parametrize(
    "heads",
    [
        [Head() for _ in range(3)],
        [Head(out=number + 1) for number in range(6)],
        [nn.Sequential(nn.Linear(16, 4), nn.BatchNorm1d(4)) for _ in range(6)],
        [nn.Sequential(nn.Linear(16, 4), layer) for layer in (nn.ReLU(), nn.Tanh(), nn.GELU(), nn.Sigmoid())],
    ],
    ids=["few", "shapes", "batch norm", "operators"],
)
def test_modules_that_one_call_cannot_replace_are_none(heads):
    block = Block(heads)
    assert found_in(looked_at_all(training(block, lambda: block(torch.randn(8, 16)).square().mean()))) == []


def test_modules_that_feed_each_other_by_a_sum_are_none():
    heads = nn.ModuleList([Head(out=16) for _ in range(5)])

    def loss() -> torch.Tensor:
        total = torch.randn(8, 16)
        for head in heads:
            total = total + head(total)
        return total.square().mean()

    assert found_in(looked_at_all(training(heads, loss))) == []


def test_one_module_for_each_slice_stays_a_loop_over_slices():
    head = nn.Linear(6, 3)

    def loss() -> torch.Tensor:
        x = torch.randn(12, 5, 6)
        total = x.new_zeros(())
        for t in range(5):
            total = total + head(x[:, t]).square().mean()
        return total

    found = looked_at_all(training(head, loss))
    assert found_in(found) == []
    assert [one.times for one in found.account.slices] == [5]

"""Tables of which a step looks some rows up while their gradient has all, as the audit of real steps finds them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from audited_programs import looked_at_all, recorded_and_looked_at
from deepscope.trace.format.audit import TableGradient

pytestmark = pytest.mark.usefixtures("nothing_compiled")

ROWS, WIDTH = 1000, 8


def stepping(
    modules: nn.Module,
    loss_of: Callable[[], torch.Tensor],
    optimizer: torch.optim.Optimizer | None = None,
    passes: int = 1,
) -> Callable[[], None]:
    chosen = optimizer or torch.optim.SGD(modules.parameters(), lr=0.1)

    def step() -> None:
        chosen.zero_grad()
        for _ in range(passes):
            loss_of().backward()
        chosen.step()

    return step


def tables(step: Callable[[], None]) -> list[TableGradient]:
    return looked_at_all(step).account.tables


def test_rows_are_counted_once_however_often_they_are_looked_up():
    table = nn.Embedding(ROWS, WIDTH)
    (found,) = tables(stepping(table, lambda: table(torch.tensor([1, 1, 2, 999])).sum()))
    assert (found.rows, found.used_rows, found.elements, found.stepped_elements) == (1000, 3, 8000, 8000)
    assert (found.optimizer, found.keeps_rows, found.clipped) == ("SGD", True, False)


def test_two_lines_and_two_backward_passes_are_one_gradient():
    table = nn.Embedding(ROWS, WIDTH)
    rows = iter(torch.arange(400).reshape(100, 4))

    def loss() -> torch.Tensor:
        history = table(next(rows))
        shown = table(next(rows))
        return (history * shown).sum()

    (found,) = tables(stepping(table, loss, passes=2))
    assert found.used_rows == 16


def test_tables_of_one_line_have_their_parts_of_its_time_whoever_calls_it():
    users, items = nn.Embedding(3 * ROWS, WIDTH), nn.Embedding(ROWS, WIDTH)

    def look_up(table: nn.Embedding) -> torch.Tensor:
        return table(torch.tensor([1, 2, 5]))

    def loss() -> torch.Tensor:
        user = look_up(users)
        item = look_up(items)
        return (user * item).sum()

    found = tables(stepping(nn.ModuleList([users, items]), loss))
    shares = [use.share for one in found for use in one.operators if use.name == "aten::embedding_dense_backward"]
    assert shares == pytest.approx([0.75, 0.25], abs=0.08)
    assert sum(shares) == pytest.approx(1, abs=0.001)


@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_bags_are_tables(mode: str):
    table = nn.EmbeddingBag(ROWS, WIDTH, mode=mode)
    (found,) = tables(stepping(table, lambda: table(torch.tensor([[1, 2], [2, 5]])).sum()))
    assert (found.rows, found.used_rows) == (1000, 3)


def test_the_largest_of_bags_have_no_sparse_gradient():
    table = nn.EmbeddingBag(ROWS, WIDTH, mode="max")
    assert tables(stepping(table, lambda: table(torch.tensor([[1, 2], [2, 5]])).sum())) == []


def test_a_sparse_table_has_no_such_gradient():
    table = nn.Embedding(ROWS, WIDTH, sparse=True)
    assert tables(stepping(table, lambda: table(torch.tensor([1, 2])).sum())) == []


def test_a_table_whose_weights_are_used_otherwise_has_a_gradient_of_all_rows():
    table = nn.Embedding(ROWS, WIDTH)
    tied = stepping(table, lambda: F.cross_entropy(table(torch.tensor([1, 2])) @ table.weight.T, torch.tensor([3, 4])))
    assert tables(tied) == []
    turns = iter(range(100))

    def loss() -> torch.Tensor:  # in the second of two passes
        return table(torch.tensor([1, 2])).sum() if next(turns) % 2 else table.weight.square().sum()

    assert tables(stepping(table, loss, passes=2)) == []


@pytest.mark.parametrize(
    "make",
    [
        lambda given: torch.optim.Adam(given),
        lambda given: torch.optim.SGD(given, lr=0.1, momentum=0.9),
        lambda given: torch.optim.SGD(given, lr=0.1, weight_decay=0.01),
    ],
)
def test_other_optimizers_change_rows_without_a_gradient(make: Callable[..., torch.optim.Optimizer]):
    table = nn.Embedding(ROWS, WIDTH)
    (found,) = tables(stepping(table, lambda: table(torch.tensor([1, 2])).sum(), make(table.parameters())))
    assert not found.keeps_rows


def test_a_table_that_nobody_steps_is_none_of_these():
    table, head = nn.Embedding(ROWS, WIDTH), nn.Linear(WIDTH, 1)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    assert tables(stepping(table, lambda: head(table(torch.tensor([1, 2]))).sum(), optimizer)) == []


def test_clipping_is_told():
    table = nn.Embedding(ROWS, WIDTH)
    optimizer = torch.optim.SGD(table.parameters(), lr=0.1)

    def step() -> None:
        optimizer.zero_grad()
        table(torch.tensor([1, 2])).sum().backward()
        nn.utils.clip_grad_norm_(table.parameters(), 0.1)
        optimizer.step()

    (found,) = tables(step)
    assert found.clipped


@pytest.mark.parametrize("sparse", [False, True])
def test_the_finding_stands_where_rows_are_looked_up_and_mended_there_is_none(sparse: bool, tmp_path: Path):
    table = nn.Embedding(400_000, 32, sparse=sparse)

    def loss() -> torch.Tensor:
        return table(torch.randint(0, 400_000, (64,))).square().sum()

    profile = recorded_and_looked_at(stepping(table, loss), tmp_path)
    found = [one for one in profile.findings if one.code == "DS040"]
    assert len(found) == (0 if sparse else 1)
    for one in found:
        assert one.function.endswith("loss")
        assert 0.3 * profile.totals.device_ns < one.saving_ns < profile.totals.device_ns
        assert one.evidence["rows_per_step"] in range(50, 65)
        assert "results are the same" in one.remedy.text

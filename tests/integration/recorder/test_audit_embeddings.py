"""Padding in batches, and tables of which a step looks some rows up, as the audit of real steps finds them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from audited_programs import looked_at_all, recorded_and_looked_at, training
from deepscope.trace.format.audit import PaddedWork, TableGradient

pytestmark = pytest.mark.usefixtures("nothing_compiled")

WORDS, ROWS, WIDTH = 100, 1000, 8


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


def padding(step: Callable[[], object]) -> list[PaddedWork]:
    return looked_at_all(step).account.padding


def sentences(lengths: list[int], length: int, *, index: int = 0, before: bool = False) -> torch.Tensor:
    """Rows of indices from 10 on, all different, and behind or before them the padding's."""
    rows = torch.full((len(lengths), length), index)
    for number, count in enumerate(lengths):
        own = torch.arange(10 + number, 10 + number + count)
        rows[number, slice(length - count, None) if before else slice(0, count)] = own
    return rows


def encoder(indices: torch.Tensor, *, padding_idx: int | None = None) -> Callable[[], None]:
    words, layer = nn.Embedding(WORDS, WIDTH, padding_idx=padding_idx), nn.Linear(WIDTH, WIDTH)

    def loss() -> torch.Tensor:
        hidden = layer(words(indices)).relu()
        pooled = hidden.mean(dim=1)
        return pooled.square().mean()

    return training(nn.ModuleList([words, layer]), loss)


@pytest.mark.parametrize(
    ("index", "before", "padding_idx"), [(0, False, 0), (0, False, None), (0, True, None), (99, False, None)]
)
def test_padding_is_the_embeddings_own_or_a_run_that_rows_end_or_begin_with(
    index: int, before: bool, padding_idx: int | None
):
    indices = sentences([4, 7, 9, 2], 16, index=index, before=before)
    (found,) = padding(encoder(indices, padding_idx=padding_idx))
    assert (found.rows, found.length, found.padded, found.longest) == (4, 16, 4 * 16 - 22, 9)


def test_work_on_all_positions_counts_and_what_is_done_with_their_mean_does_not():
    (found,) = padding(encoder(sentences([4, 7, 9, 2], 16)))
    used = {use.name.removeprefix("aten::") for use in found.operators if use.unused}
    assert {"embedding", "addmm", "relu"} <= used
    assert not {"mean", "pow"} & used
    assert any("mm" in use.name for use in found.backward)


@pytest.mark.parametrize(
    "indices",
    [
        sentences([16, 16, 16], 16),
        torch.zeros(4, 16, dtype=torch.int64),  # segments
        torch.arange(16).lt(6).long().expand(4, 16),  # two segments
        torch.arange(16).expand(4, 16),  # positions
        torch.arange(10, 26),  # no batch
        (torch.arange(16) - torch.arange(16)[:, None]).clamp(-8, 8) + 20,  # distances
        torch.cat([sentences([6, 7], 12), sentences([5, 8], 12)], dim=1),  # the index stands between others, too
    ],
)
def test_rows_without_padding_have_none(indices: torch.Tensor):
    assert padding(encoder(indices)) == []


def test_an_encoder_and_a_decoder_have_each_their_own_work():
    words, first, second = nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
    source, target = sentences([4, 7, 9, 2], 16), sentences([4, 4, 5, 3], 10)

    def loss() -> torch.Tensor:
        memory = first(words(source))
        state = second(words(target)) + memory.mean(dim=1, keepdim=True)
        return state.square().mean()

    of_source, of_target = padding(training(nn.ModuleList([words, first, second]), loss))
    assert (of_source.length, of_target.length) == (16, 10)
    assert sum(use.unused for use in of_source.operators if use.name == "aten::addmm") == 1
    assert sum(use.unused for use in of_target.operators if use.name == "aten::add") >= 1
    assert sum(use.unused for use in of_source.operators if use.name == "aten::add") == 0


def test_a_teacher_and_a_student_at_one_line_are_told_once_with_the_backward_work_of_the_one():
    indices = sentences([4, 7, 9, 2], 16)

    class Encoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.layer = nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, WIDTH)

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            return self.layer(self.words(tokens)).mean(dim=1)

    teacher, student = Encoder(), Encoder()

    def loss() -> torch.Tensor:
        wanted = teacher(indices).detach()
        return (student(indices) - wanted).square().mean()

    (found,) = padding(training(student, loss))
    assert (found.rows, found.positions, found.padded) == (8, 128, 2 * (64 - 22))
    assert {(use.times, use.unused) for use in found.operators if use.name == "aten::addmm"} == {(2, 2)}
    assert all(use.unused == use.times for use in found.backward)

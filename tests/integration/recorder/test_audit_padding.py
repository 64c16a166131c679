"""Padding in batches of sequences, as the audit of real steps finds it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from audited_programs import looked_at_all, training
from deepscope.trace.format.audit import PaddedWork

pytestmark = pytest.mark.usefixtures("nothing_compiled")

WORDS, WIDTH = 100, 8


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

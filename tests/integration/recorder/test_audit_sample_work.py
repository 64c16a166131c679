"""What each epoch computes anew of the same samples, as the audit of real steps finds it."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset, IterableDataset

from audited_programs import TELLS_WHOSE_BYTES, looked_at_all, recorded_and_looked_at, text_at, training
from deepscope.capture.audit.flow import Flow
from deepscope.capture.audit.operator_calls import key_of
from deepscope.trace.format.audit import SameWork

pytestmark = pytest.mark.usefixtures("nothing_compiled")
SAMPLES = [(torch.randn(8, generator=torch.Generator().manual_seed(one)), one % 4) for one in range(96)]


class Samples(Dataset):
    def __len__(self) -> int:
        return len(SAMPLES)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return SAMPLES[index]


class Augmented(Samples):
    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        x, y = SAMPLES[index]
        return x.flip(0) if torch.rand(()) < 0.5 else x, y


class _Noise(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        return gradient * torch.rand_like(gradient)


class AugmentedByGradients(Samples):
    """Which draws random numbers in a backward pass alone."""

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        x, y = SAMPLES[index]
        x = x.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(_Noise.apply(x).sum(), x)
        return x.detach() + gradient, y


class Words(Samples):
    """Of several lengths."""

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return SAMPLES[index][0].repeat(2)[: 5 + index % 4], index % 4


class Stream(IterableDataset):
    def __iter__(self) -> Iterator[tuple[torch.Tensor, int]]:
        yield from SAMPLES


def padded(rows: list[tuple[torch.Tensor, int]]) -> tuple[torch.Tensor, torch.Tensor]:
    words = nn.utils.rnn.pad_sequence([x for x, _ in rows], batch_first=True)
    return words, torch.tensor([y for _, y in rows])


class Trained:
    """A head behind a frozen backbone, and batches of a loader."""

    def __init__(self, dataset: Dataset | None = None, **options: Any) -> None:
        self.loader = DataLoader(dataset or Samples(), batch_size=4, **options)
        self.batches = self.epochs()
        self.backbone = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 8)).requires_grad_(False).eval()
        self.head = nn.Linear(8, 4)

    def epochs(self) -> Iterator[Any]:
        while True:
            yield from self.loader

    def step(self, features_of: Callable[[torch.Tensor], torch.Tensor] | None = None) -> Callable[[], None]:
        def loss() -> torch.Tensor:
            x, y = next(self.batches)
            features = (features_of or self.backbone)(x)
            return F.cross_entropy(self.head(features), y)

        return training(self.head, loss)


def of_batch(step: Callable[[], object]) -> list[SameWork]:
    return [one for one in looked_at_all(step).account.same if one.of_batch]


def names(rows: list[SameWork]) -> set[str]:
    return {use.name for one in rows for use in one.operators if use.unused}


@pytest.mark.parametrize("loaded_before", [False, True])
def test_a_frozen_backbone_is_found_where_it_is_called(*, loaded_before: bool):
    """Some libraries get the next batch while a step still has the one before."""
    one = Trained()

    def ahead(batches: Iterator[Any]) -> Iterator[Any]:
        current = next(batches)
        for following in batches:
            yield current
            current = following

    if loaded_before:
        one.batches = ahead(one.batches)
    found = looked_at_all(one.step())
    (row,) = [row for row in found.account.same if row.of_batch]
    assert text_at(found, row.place) == "features = (features_of or self.backbone)(x)"
    assert {use.name: use.unused for use in row.operators} == {"aten::addmm": 2, "aten::relu": 1}
    assert row.stored_bytes == 4 * 8 * 4  # what the head reads, and not what is in between
    assert row.result_bytes == 4 * (8 + 2 * 32) * 4


def over_rows(
    take: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], *, behind: Callable[[torch.Tensor], Any] = id
) -> Callable[[], None]:
    """Steps on rows of one tensor, drawn anew; a model whose parameters nobody steps says what the head is to learn."""
    old, head = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 8)), nn.Linear(8, 8)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    observed = torch.randn(64, 8)
    drawn = iter(torch.randperm(64).split(8))

    def step() -> None:
        x = take(observed, next(drawn))
        with torch.no_grad():
            goal = old(x)
        optimizer.zero_grad()
        F.mse_loss(head(x), goal).backward()
        optimizer.step()
        behind(observed)

    return step


@TELLS_WHOSE_BYTES
@pytest.mark.parametrize(
    "take",
    [
        lambda rows, numbers: rows[numbers],
        lambda rows, numbers: rows.index_select(0, numbers) * rows[numbers].mean(-1, keepdim=True).sign(),
    ],
)
def test_an_old_policy_on_rows_of_one_tensor_is_found(take: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]):
    assert {"aten::addmm", "aten::tanh"} <= names(of_batch(over_rows(take)))


@pytest.mark.parametrize(
    "take",
    [
        lambda rows, numbers: rows[numbers] - rows[numbers].mean(0),  # of the others in the batch
        lambda rows, numbers: rows[:, numbers % 8],  # no samples
        lambda rows, numbers: rows[numbers] / rows[numbers].square().sum(),
        lambda rows, numbers: rows[numbers] + torch.randn(8, 8),
        lambda rows, numbers: rows[numbers] + 0.1 * rows[numbers.flip(0)],  # pairs, which are others in each epoch
    ],
)
def test_rows_that_are_mixed_or_changed_are_no_samples(take: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]):
    assert not {"aten::addmm", "aten::tanh"} & names(of_batch(over_rows(take)))


def test_rows_of_a_tensor_that_steps_change_are_no_samples():
    assert of_batch(over_rows(lambda rows, numbers: rows[numbers], behind=lambda rows: rows.add_(1))) == []


def test_samples_from_worker_processes_are_such_too():
    one = Trained(num_workers=1)
    assert names(of_batch(one.step())) == {"aten::addmm", "aten::relu"}


def test_a_teacher_of_raw_batches_and_one_of_several_lengths_are_found():
    for options in ({}, {"dataset": Words(), "collate_fn": padded}):
        one = Trained(**options)
        table, student = nn.Embedding(50, 8).requires_grad_(False), nn.Linear(1, 8)
        optimizer = torch.optim.SGD(student.parameters(), lr=0.1)

        def teacher(x: torch.Tensor, one: Trained = one, table: nn.Embedding = table) -> torch.Tensor:
            place = torch.arange(x.shape[1])
            return one.backbone(x[:, :, None] * table.weight[: x.shape[1]] + table(place))

        def step(
            one: Trained = one, teacher: Callable[..., Any] = teacher, student: nn.Module = student, by: Any = optimizer
        ) -> None:
            x, _ = next(one.batches)
            with torch.no_grad():
                goal = teacher(x).softmax(-1)
            by.zero_grad()
            F.kl_div(student(x[:, :, None]).log_softmax(-1), goal, reduction="batchmean").backward()
            by.step()

        assert names(of_batch(step)) >= {"aten::addmm", "aten::relu", "aten::_softmax"}


def noisy(one: Trained, x: torch.Tensor) -> torch.Tensor:
    return one.backbone(x + 0.1 * torch.randn_like(x))


def noisy_in_place(one: Trained, x: torch.Tensor) -> torch.Tensor:
    return one.backbone(x.add_(torch.randn_like(x)))


def mixed_by_python(one: Trained, x: torch.Tensor) -> torch.Tensor:
    share = random.random()
    return one.backbone(share * x + (1 - share) * x.flip(0))


def cut_by_python(one: Trained, x: torch.Tensor) -> torch.Tensor:
    one.at = (getattr(one, "at", 0) + 1) % 4
    return one.backbone(F.pad(x[:, one.at : one.at + 4], (0, 4)))


def scaled_by_a_tensor(one: Trained, x: torch.Tensor) -> torch.Tensor:
    return one.backbone(x * torch.tensor([random.random() for _ in range(8)]))


def chosen_by_numbers(one: Trained, x: torch.Tensor) -> torch.Tensor:
    return one.backbone(x[torch.tensor([random.randrange(4) for _ in range(4)])])


def written_by_numpy(one: Trained, x: torch.Tensor) -> torch.Tensor:
    x.numpy()[:] *= random.random()
    return one.backbone(x)


def dropped(one: Trained, x: torch.Tensor) -> torch.Tensor:
    return one.backbone(F.dropout(x))


def with_batch_statistics(one: Trained, x: torch.Tensor) -> torch.Tensor:
    return one.backbone(F.batch_norm(x, None, None, training=True))


def without_the_mean(one: Trained, x: torch.Tensor) -> torch.Tensor:
    return one.backbone(x - x.mean(0))


def of_pairs(one: Trained, x: torch.Tensor) -> torch.Tensor:
    return one.backbone(F.pad(x @ x.t(), (0, 4)))


def of_differences(one: Trained, x: torch.Tensor) -> torch.Tensor:
    return one.backbone((x[:, None] - x[None]).square().sum(1))


def averaged(one: Trained, x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        for parameter in one.backbone.parameters():
            parameter.mul_(0.99)
    return one.backbone(x)


def averaged_afterwards(one: Trained, x: torch.Tensor) -> torch.Tensor:
    features = one.backbone(x)
    torch._foreach_mul_(list(one.backbone.parameters()), 0.99)
    return features


def with_the_batch_before(one: Trained, x: torch.Tensor) -> torch.Tensor:
    before, one.before = getattr(one, "before", x), x * 2
    return one.backbone(x + before)


def averaged_by_data(one: Trained, x: torch.Tensor) -> torch.Tensor:
    for parameter in one.backbone.parameters():
        parameter.data = parameter.data * 0.99
    return one.backbone(x)


def trained_too(one: Trained, x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return F.pad(one.head(x), (0, 4))


@pytest.mark.parametrize(
    "features_of",
    [
        noisy, noisy_in_place, mixed_by_python, cut_by_python, scaled_by_a_tensor, chosen_by_numbers, written_by_numpy,
        dropped, with_batch_statistics, without_the_mean, of_pairs, of_differences, averaged, averaged_afterwards,
        averaged_by_data, with_the_batch_before, trained_too,
    ],
)  # fmt: skip
def test_what_is_no_function_of_the_sample_is_not_found(features_of: Callable[[Trained, torch.Tensor], torch.Tensor]):
    one = Trained()
    rows = of_batch(one.step(lambda x: features_of(one, x)))
    assert "aten::addmm" not in names(rows)


@pytest.mark.parametrize("dataset", [Augmented, AugmentedByGradients])
def test_samples_that_loading_changes_at_random_are_other_ones_in_each_epoch(dataset: type[Samples]):
    assert of_batch(Trained(dataset()).step()) == []


def test_a_stream_has_no_epochs_and_numbers_without_a_loader_no_samples():
    assert of_batch(Trained(Stream()).step()) == []
    one = Trained()
    one.batches = iter([(x[None], torch.tensor([y])) for x, y in SAMPLES])
    assert of_batch(one.step()) == []


def test_what_no_backward_pass_uses_is_not_found():
    one = Trained()
    seen = []

    def step_of(scored: Callable[[], object]) -> Callable[[], None]:
        step = training(one.head, lambda: one.head(torch.randn(4, 8)).square().mean())

        def both() -> None:
            scored()
            step()

        return both

    assert of_batch(step_of(lambda: seen.append(one.backbone(next(one.batches)[0]).mean()))) == []
    assert of_batch(lambda: seen.append(one.backbone(next(one.batches)[0]))) == []


def test_a_model_that_is_fine_tuned_and_its_copy_that_follows_it_are_not_found():
    one = Trained()
    one.backbone.requires_grad_(True)
    model = nn.Sequential(one.backbone, one.head)
    slow = copy.deepcopy(model).requires_grad_(False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step() -> None:
        x, _ = next(one.batches)
        optimizer.zero_grad()
        F.mse_loss(model(x), slow(x)).backward()
        optimizer.step()
        with torch.no_grad():
            for mine, its in zip(slow.parameters(), model.parameters(), strict=True):
                mine.lerp_(its, 0.1)

    assert of_batch(step) == []


def test_the_finding_has_most_of_a_step_and_says_what_has_to_be_stored(tmp_path: Path):
    one = Trained()
    wide = (nn.Linear(8, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 8))
    one.backbone = nn.Sequential(*wide).requires_grad_(False)
    profile = recorded_and_looked_at(one.step(), tmp_path)
    (found,) = [row for row in profile.findings if row.code == "DS035"]
    assert "what it gives for a sample is the same in each epoch" in found.message
    assert found.evidence["stored_bytes_per_step"] == 128
    assert 0 < found.saving_ns < profile.totals.wall_ns
    assert not found.is_measured


def test_sparse_weights_in_training_are_not_taken_for_samples_that_are_sparse_too() -> None:
    trained, frozen = Trained(), torch.rand(8, 16)

    def features(x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            weights = trained.head.weight.to_sparse()
            x.to_sparse()
            return x * torch.sparse.mm(weights, frozen).sum()

    found = looked_at_all(trained.step(features))
    assert [one for one in found.account.same if one.of_batch] == []


def test_what_is_made_where_a_tensor_was_is_not_taken_for_it():
    flow = Flow()
    gone = flow.follow(torch.ones(3) for _ in range(8))
    assert gone
    assert gone.isdisjoint(map(key_of, [torch.ones(3) for _ in range(64)]))

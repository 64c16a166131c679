"""What a step computes anew though it is the same, as the audit of real steps finds it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import parametrizations, parametrize

from audited_programs import TELLS_WHOSE_BYTES, looked_at_all, recorded_and_looked_at, text_at, training
from deepscope.trace.format.audit import SameWork

pytestmark = pytest.mark.usefixtures("nothing_compiled")


def same(one: SameWork) -> set[str]:
    return {use.name for use in one.operators if use.unused}


def positions(length: int, width: int) -> torch.Tensor:
    place = torch.arange(length, dtype=torch.float32)[:, None]
    rate = torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
    table = torch.zeros(length, width)
    table[:, 0::2] = torch.sin(place * rate)
    table[:, 1::2] = torch.cos(place * rate)
    return table


class Tagger(nn.Module):
    def __init__(self, length: int = 32, *, mended: bool = False) -> None:
        super().__init__()
        self.mended = mended
        self.mix = nn.Linear(16, 16)
        self.register_buffer("table", positions(length, 16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        table = self.table if self.mended else positions(x.shape[1], 16)
        return self.mix(x + table)


def tagging(model: nn.Module, batch: Callable[[], torch.Tensor]) -> Callable[[], None]:
    return training(model, lambda: model(batch()).square().mean())


def test_positions_that_each_forward_pass_computes_are_found_in_their_function():
    found = looked_at_all(tagging(Tagger(), lambda: torch.randn(2, 32, 16)))
    (one,) = found.account.same
    assert found.places[one.place].function == "positions"
    assert {"aten::arange", "aten::exp", "aten::sin", "aten::cos", "aten::zeros"} <= same(one)
    assert looked_at_all(tagging(Tagger(mended=True), lambda: torch.randn(2, 32, 16))).account.same == []


def adjacency(edges: torch.Tensor, weights: torch.Tensor, layout: str) -> torch.Tensor:
    found = torch.sparse_coo_tensor(edges, weights.sqrt(), (50, 50), check_invariants=False)
    return found.coalesce() if layout == "coo" else found.to_sparse_csr() if layout == "csr" else found.to_dense()


@TELLS_WHOSE_BYTES
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("layout", ["coo", "csr", "dense"])
@pytest.mark.parametrize("changing", ["", "edges", "weights"])
def test_a_sparse_matrix_that_is_made_anew_is_the_same_if_its_places_and_its_numbers_are(layout: str, changing: str):
    edges, weights, mix = torch.randint(50, (2, 400)), torch.rand(400), nn.Linear(8, 8)

    def loss() -> torch.Tensor:
        places = torch.randint(50, (2, 400)) if changing == "edges" else edges
        numbers = torch.rand(400) if changing == "weights" else weights
        matrix = adjacency(places, numbers, layout)
        return torch.sparse.mm(matrix, mix(torch.randn(50, 8))).square().mean()

    made = set().union(*(same(one) for one in looked_at_all(training(mix, loss)).account.same))
    last = {"coo": "aten::_coalesce", "csr": "aten::_to_sparse_csr", "dense": "aten::_to_dense"}[layout]
    assert (last in made) == (not changing)
    assert ("aten::sqrt" in made) == (changing != "weights")


def test_lengths_that_change_from_step_to_step_are_not_the_same():
    lengths = iter(range(20, 40))
    found = looked_at_all(tagging(Tagger(), lambda: torch.randn(2, next(lengths), 16)))
    # But for the rates, which do not depend on the length.
    assert all("aten::sin" not in same(one) and "aten::zeros" not in same(one) for one in found.account.same)


def test_a_tensor_of_zeros_that_is_written_to_is_needed_anew():
    def step() -> torch.Tensor:
        total = torch.zeros(100)
        total += torch.randn(100)
        return total

    assert looked_at_all(step).account.same == []


def test_random_numbers_and_what_comes_of_a_batch_differ():
    batches = torch.randn(10, 6)
    numbers = iter(range(10))

    def step() -> torch.Tensor:
        return batches[next(numbers)].exp() + torch.rand(6).log() + torch.empty(6).zero_() * 2

    found = looked_at_all(step).account.same
    assert all(not {"aten::exp", "aten::log", "aten::rand", "aten::add"} & same(one) for one in found)


def test_a_frozen_weight_that_is_prepared_in_each_step_is_the_same_and_a_trained_one_is_not():
    frozen, trained = nn.Linear(8, 8).requires_grad_(False), nn.Linear(8, 8)
    optimizer = torch.optim.SGD(trained.parameters(), lr=0.1)

    def step() -> None:
        optimizer.zero_grad()
        scaled = F.normalize(frozen.weight)
        own = F.normalize(trained.weight)
        F.linear(F.linear(torch.randn(4, 8), own), scaled).sum().backward()
        optimizer.step()

    found = looked_at_all(step)
    (one,) = [one for one in found.account.same if "aten::div" in same(one)]
    texts = {text_at(found, use.place) for use in one.operators if use.unused}
    assert "scaled = F.normalize(frozen.weight)" in texts
    assert "own = F.normalize(trained.weight)" not in texts


def test_statistics_that_each_step_updates_are_not_the_same():
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
    assert looked_at_all(tagging(model, lambda: torch.randn(8, 4))).account.same == []


@pytest.mark.parametrize("mended", [False, True])
def test_the_finding_stands_in_the_function_and_mended_there_is_none(mended: bool, tmp_path: Path):
    step = tagging(Tagger(20_000, mended=mended), lambda: torch.randn(1, 20_000, 16))
    profile = recorded_and_looked_at(step, tmp_path)
    found = [one for one in profile.findings if one.code == "DS035"]
    assert len(found) == (0 if mended else 1)
    for one in found:
        assert one.function == "positions"
        lines = [line for line in profile.lines if line.function == "positions"]
        spent = sum(line.self_device_ns for line in lines)
        assert 0 < one.saving_ns <= spent  # of a step that the machine held up, little counts


@TELLS_WHOSE_BYTES
@pytest.mark.parametrize("kind", ["given", "written", "numpys"])
def test_work_on_a_tensor_from_before_the_loop_is_the_same_unless_somebody_writes_to_it(kind: str):
    array = np.random.default_rng(0).random((4, 8), dtype=np.float32)
    words = torch.from_numpy(array) if kind == "numpys" else torch.randn(4, 8)
    others = torch.randn(2)
    encoder = nn.Linear(8, 8).requires_grad_(False)
    image = nn.Linear(8, 8)

    def loss() -> torch.Tensor:
        if kind == "written":
            torch._foreach_mul_([words, others], 0.5)
        array[:] += 1
        classes = encoder(words)
        return (image(torch.randn(2, 8)) @ classes.t()).square().mean()

    found = looked_at_all(training(image, loss)).account.same
    assert [(one.given, "aten::addmm" in same(one)) for one in found] == ([(True, True)] if kind == "given" else [])


SIZE = 24


def build_mask(size: int) -> torch.Tensor:
    rows = [[float(column > row) for column in range(size)] for row in range(size)]
    return torch.tensor(rows)


def filters(size: int) -> torch.Tensor:
    bank = np.zeros((size, size), dtype=np.float32)
    for row in range(size):
        for column in range(size):
            bank[row, column] = max(0.0, 1 - abs(row - column) / 4)
    return torch.from_numpy(bank).log1p()


def inline(size: int) -> torch.Tensor:
    return F.relu(torch.as_tensor([row * 0.5 for row in range(size)]).neg())


LISTS = itertools.count()
SHARED = np.zeros((SIZE, SIZE), dtype=np.float32)


def drawn(size: int) -> torch.Tensor:
    return torch.tensor([next(LISTS) + row for row in range(size * size)]).float()


def flags(size: int) -> torch.Tensor:
    return torch.tensor([0.0] * (size * size))


def action(size: int) -> torch.Tensor:
    return torch.tensor([float(number == 3) for number in range(size)])


def written_to(size: int) -> torch.Tensor:
    mask = torch.tensor([float(number % 7) for number in range(size * size)])
    mask += torch.rand(())
    return mask


def looked_into(size: int) -> torch.Tensor:
    mask = torch.tensor([float(number % 7) for number in range(size * size)])
    mask.numpy()[3] = np.random.default_rng().random()
    return mask


def shared(size: int) -> torch.Tensor:
    SHARED[:] = np.arange(size * size).reshape(size, size)
    values = torch.from_numpy(SHARED)
    SHARED[0, 0] = np.random.default_rng().random()
    return values.exp()


def beside_others(size: int) -> torch.Tensor:
    return torch.tensor([float(number % 7) for number in range(size * size)]) * torch.rand(())


def adding(make: Callable[[int], torch.Tensor]) -> Callable[[], None]:
    """A step that adds what is made to what a layer makes of random numbers."""
    layer = nn.Linear(8, 1)

    def loss() -> torch.Tensor:
        made = make(SIZE)
        return (layer(torch.randn(4, 8)).mean() + made).square().mean()

    return training(layer, loss)


@pytest.mark.parametrize("make", [build_mask, filters, inline])
def test_a_tensor_of_pythons_numbers_is_the_same_where_its_bytes_are(make: Callable[[int], torch.Tensor]):
    found = looked_at_all(adding(make))
    rows = [one for one in found.account.same if one.built]
    if make is inline:
        assert rows == []  # few numbers are so by chance
        return
    (one,) = rows
    assert [found.places[place].function for place in one.built] == [make.__name__]
    assert one.whole
    assert [text_at(found, place) for place in one.callers] == ["made = make(SIZE)"]
    assert ("aten::log1p" in same(one)) == (make is filters)


@pytest.mark.parametrize("make", [drawn, flags, action, written_to, looked_into, shared, beside_others])
def test_a_tensor_of_pythons_numbers_that_may_differ_is_not_the_same(make: Callable[[int], torch.Tensor]):
    found = looked_at_all(adding(make)).account.same
    assert [one.built for one in found if one.built] == []
    assert not {"aten::exp", "aten::add_", "aten::mul"} & {name for one in found for name in same(one)}


@pytest.mark.parametrize("make", [build_mask, filters])
def test_the_python_that_makes_it_is_a_part_of_the_saving_and_of_no_other_finding(
    make: Callable[[int], torch.Tensor], tmp_path: Path
):
    profile = recorded_and_looked_at(adding(lambda size: make(5 * size)), tmp_path)
    (found,) = [one for one in profile.findings if one.code == "DS035"]
    assert found.function == make.__name__
    lines = [line for line in profile.lines if line.function == make.__name__]
    spent = sum(line.python_cpu_ns + line.self_cpu_ns for line in lines)
    assert 0.03 * spent < found.saving_ns < profile.totals.wall_ns  # as above
    assert "of numbers of Python's that do not change" in found.message
    assert make.__name__ not in {one.function for one in profile.findings if one.code == "DS013"}


def again(step: Callable[[], object]) -> list[SameWork]:
    """What one step computes more than once."""
    return [one for one in looked_at_all(step).account.same if one.again]


@pytest.mark.parametrize("is_cached", [False, True])
def test_a_parametrized_weight_is_computed_again_by_each_call_of_a_loop(is_cached: bool):
    cell = parametrizations.orthogonal(nn.Linear(16, 16, bias=False))

    def loss() -> torch.Tensor:
        state = torch.randn(4, 16)
        with parametrize.cached() if is_cached else nullcontext():
            for _ in range(5):
                state = torch.tanh(cell(state))
        return state.square().mean()

    found = again(training(cell, loss))
    assert len(found) == (0 if is_cached else 1)
    for one in found:
        uses = {use.name: (use.times, use.unused) for use in one.operators}
        assert uses["aten::tanh"] == (5, 0)
        assert max(unused for _, unused in uses.values()) == 4
        assert one.backward


def test_a_model_that_is_called_twice_with_a_batch_is_named_at_the_second_call():
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))

    def loss() -> torch.Tensor:
        x, y = torch.randn(8, 16), torch.randint(4, (8,))
        first = F.cross_entropy(model(x), y)
        second = model(x).square().mean()
        return first + second

    found = looked_at_all(training(model, loss))
    (one,) = (row for row in found.account.same if row.again)
    assert text_at(found, one.place) == "second = model(x).square().mean()"
    assert {use.name: use.unused for use in one.operators} == {
        "aten::addmm": 2, "aten::relu": 1, "aten::pow": 0, "aten::mean": 0,
    }  # fmt: skip


def test_a_batch_that_changes_in_between_is_another_one():
    model = nn.Linear(16, 4)

    def loss(change: Callable[[torch.Tensor], object]) -> torch.Tensor:
        x = torch.randn(8, 16)
        first = torch.sin(x)
        change(x)
        return model(first).sum() + model(torch.sin(x)).square().sum()

    for change in (torch.Tensor.zero_, lambda x: x[0].add_(1), lambda x: x.numpy().fill(1), lambda x: x.data_ptr()):
        assert again(training(model, lambda change=change: loss(change))) == []
    assert len(again(training(model, lambda: loss(id)))) == 1


def test_what_a_step_needs_twice_is_not_the_same_again():
    layer = nn.Linear(16, 16)

    def dropped() -> torch.Tensor:
        x = layer(torch.randn(8, 16))
        return F.dropout(x).sum() + F.dropout(x).square().sum()

    def written() -> torch.Tensor:
        x = torch.randn(8, 16)
        first, second = x * 2, x * 2
        first[0] = 0
        return layer(first).sum() + layer(second).square().sum()

    def detached() -> torch.Tensor:
        x = layer(torch.randn(8, 16))
        return layer(x.detach()).sum() - layer(x).sum()

    for loss in (dropped, written, detached):
        assert again(training(layer, loss)) == [], loss.__name__


@pytest.mark.parametrize("trains", [True, False])
def test_batch_norms_compute_the_same_again_while_their_statistics_change(*, trains: bool):
    layer, norm = nn.Linear(16, 16), nn.BatchNorm1d(16).train(trains)

    def loss() -> torch.Tensor:
        x = torch.randn(8, 16)
        return layer(norm(x)).sum() + layer(norm(x)).square().sum()

    (one,) = again(training(nn.ModuleList([layer, norm]), loss))
    assert {use.name for use in one.operators if use.unused} >= {"aten::addmm"}


def test_a_batch_norm_behind_one_that_changed_its_statistics_is_not_the_same():
    layer, norm = nn.Linear(16, 16), nn.BatchNorm1d(16)

    def loss() -> torch.Tensor:
        x = layer(torch.randn(8, 16))
        before = norm.eval()(x).sum()
        trained = norm.train()(x).square().sum()
        return before + trained + norm.eval()(x).sum()

    assert again(training(nn.ModuleList([layer, norm]), loss)) == []


def test_graphs_that_a_backward_pass_has_let_go_of_are_made_again():
    layer = nn.Linear(16, 16)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)

    def step() -> None:
        x = torch.randn(8, 16)
        optimizer.zero_grad()
        layer(x).sum().backward()
        layer(x).square().sum().backward()
        optimizer.step()
        layer(x)

    assert again(step) == []


def test_a_backward_pass_through_another_graph_lets_go_of_nothing():
    layer, critic = nn.Linear(8, 8), nn.Linear(8, 1)
    optimizers = [torch.optim.SGD(one.parameters(), lr=0.01) for one in (layer, critic)]

    def step() -> None:
        x = torch.randn(16, 8)
        first = torch.tanh(layer(x))
        optimizers[1].zero_grad()
        critic(first.detach()).mean().backward()
        optimizers[1].step()
        second = torch.tanh(layer(x))
        optimizers[0].zero_grad()
        critic(second).mean().backward()
        optimizers[0].step()

    (one,) = again(step)
    assert {use.name for use in one.operators if use.unused} == {"aten::addmm", "aten::tanh"}


class Scored:
    """A classifier of batches that all differ; the batch before is scored as the next step begins, as scripts do."""

    def __init__(self) -> None:
        self.layer = nn.Linear(16, 4)
        self.optimizer = torch.optim.Adam(self.layer.parameters(), lr=0.01)
        self.hits = torch.zeros(())

    def train(self, x: torch.Tensor) -> torch.Tensor:
        scores = self.layer(x)
        self.optimizer.zero_grad()
        scores.square().sum().backward()
        self.optimizer.step()
        return scores.detach()

    def count(self, scores: torch.Tensor) -> None:
        self.hits += (scores.argmax(1) == 0).sum()


@pytest.mark.parametrize("graph", [True, False])
def test_a_second_pass_for_a_metric_after_the_update_is_found(*, graph: bool):
    one = Scored()

    def step() -> None:
        x = torch.randn(8, 16)
        one.train(x)
        with nullcontext() if graph else torch.no_grad():
            one.count(one.layer(x))

    (found,) = again(step)
    assert found.rerun
    assert same(found) == {"aten::addmm"}
    assert again(lambda: one.count(one.train(torch.randn(8, 16)))) == []


def test_a_second_pass_is_found_where_a_step_ends_before_it():
    one, last = Scored(), torch.randn(8, 16)

    def step() -> None:
        nonlocal last
        with torch.no_grad():
            one.count(one.layer(last))
        last = torch.randn(8, 16)
        one.train(last)

    (found,) = again(step)
    assert found.rerun


def test_fakes_that_are_made_again_for_the_discriminator_are_found():
    maker, critic = nn.Linear(8, 8), nn.Linear(8, 1)
    optimizers = [torch.optim.SGD(one.parameters(), lr=0.01) for one in (maker, critic)]

    def step() -> None:
        noise = torch.randn(16, 8)
        optimizers[0].zero_grad()
        critic(maker(noise)).mean().backward()
        optimizers[0].step()
        optimizers[1].zero_grad()
        critic(maker(noise).detach()).mean().neg().backward()
        optimizers[1].step()

    (found,) = again(step)
    assert found.rerun
    assert same(found) == {"aten::addmm"}


def test_passes_with_a_backward_pass_of_their_own_and_comparisons_are_not_made_again():
    layer = nn.Linear(16, 16)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)

    def sharpness_aware() -> None:
        x = torch.randn(8, 16)
        for _ in range(2):
            optimizer.zero_grad()
            layer(x).square().mean().backward()
            optimizer.step()

    log = []

    def adapted() -> None:
        support, query = torch.randn(8, 16), torch.randn(8, 16)
        for _ in range(2):
            with torch.no_grad():
                log.append(layer(query).mean() + 0)
            optimizer.zero_grad()
            layer(support).square().mean().backward()
            optimizer.step()

    assert again(sharpness_aware) == again(adapted) == []

"""Calls one after the other that one would do for, as the audit of real steps finds them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from audited_programs import looked_at_all, recorded_and_looked_at, text_at, training
from deepscope.capture.audit.step_audit import Audited
from deepscope.trace.format.audit import SlicedCalls

pytestmark = pytest.mark.usefixtures("nothing_compiled")

LINES = Path(__file__).read_text(encoding="utf-8").splitlines()


def the_loop(found: Audited, text: str) -> SlicedCalls:
    (one,) = found.account.slices
    assert text_at(found, one.place) == text
    return one


def test_a_cell_over_time_is_a_chain_and_its_layer_is_none():
    cell, layer, head = nn.LSTMCell(8, 16), nn.LSTM(8, 16, batch_first=True), nn.Linear(16, 2)

    def by_step() -> torch.Tensor:
        x = torch.randn(4, 12, 8)
        h = c = x.new_zeros(4, 16)
        for t in range(x.shape[1]):
            h, c = cell(x[:, t], (h, c))
        return head(h).square().mean()

    one = the_loop(looked_at_all(training(nn.ModuleList([cell, head]), by_step)), "h, c = cell(x[:, t], (h, c))")
    assert (one.times, one.dimension, one.shape) == (12, 1, [4, 12, 8])
    assert (one.module, one.is_chain) == ("LSTMCell", True)

    def at_once() -> torch.Tensor:
        _, (h, _) = layer(torch.randn(4, 12, 8))
        return head(h[-1]).square().mean()

    assert looked_at_all(training(nn.ModuleList([layer, head]), at_once)).account.slices == []


class Actor(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.trunk, self.policy, self.value = (
            nn.Sequential(nn.Linear(8, 16), nn.Tanh()),
            *(nn.Linear(16, n) for n in (4, 1)),
        )

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        hidden = self.trunk(x)
        return self.policy(hidden), self.value(hidden).squeeze(-1)


def test_a_policy_that_gets_one_environment_after_the_other_is_found_with_its_distributions():
    actor = Actor()

    def loss() -> torch.Tensor:
        with torch.no_grad():
            for row in torch.randn(16, 8):
                logits, _ = actor(row)
                chosen = torch.distributions.Categorical(logits=logits)
                chosen.log_prob(chosen.sample())
        return actor(torch.randn(32, 8))[1].square().mean()

    found = looked_at_all(training(actor, loss))
    (one,) = found.account.slices
    assert (one.times, one.shape, one.module) == (16, [16, 8], "Actor")
    assert "logits, _ = actor(row)" in {text_at(found, place) for place in (one.place, *one.others)}


@pytest.mark.parametrize("way", ["index", "slice", "iterate", "unsqueeze"])
def test_a_model_that_gets_samples_one_by_one_is_found_with_its_loss(way: str):
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 3))

    def samples(x: torch.Tensor) -> list[torch.Tensor]:
        if way == "iterate":
            return [one[None] for one in x]
        if way == "index":
            return [x[i].unsqueeze(0) for i in range(len(x))]
        return [x[i : i + 1] for i in range(len(x))] if way == "slice" else [one.unsqueeze(0) for one in x]

    def loss() -> torch.Tensor:
        x, y = torch.randn(16, 1, 8, 8), torch.randint(3, (16,))
        total = torch.zeros(())
        for one, label in zip(samples(x), y, strict=True):
            out = model(one)
            total = total + F.cross_entropy(out, label[None])
        return total / 16

    found = looked_at_all(training(model, loss))
    one = max(found.account.slices, key=lambda calls: calls.operators)
    assert (one.times, one.dimension, one.shape) == (16, 0, [16, 1, 8, 8])
    assert (one.module, one.is_chain) == ("Sequential", False)


def test_all_that_one_loop_calls_is_one_row():
    model = nn.Linear(6, 3)

    def loss() -> torch.Tensor:
        x, y = torch.randn(16, 6), torch.randint(3, (16,))
        total = torch.zeros(())
        for i in range(16):
            out = model(x[i : i + 1])
            total = total + F.cross_entropy(out, y[i : i + 1])
        return total

    found = looked_at_all(training(model, loss))
    (one,) = found.account.slices
    texts = {text_at(found, place) for place in (one.place, *one.others)}
    assert texts == {"out = model(x[i : i + 1])", "total = total + F.cross_entropy(out, y[i : i + 1])"}
    assert one.times == 16
    assert one.operators > 16 * 4


def test_a_batch_that_goes_through_at_once_has_no_loop():
    model = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)

    def loss() -> torch.Tensor:
        x = torch.randn(8, 10, 16)
        left, right = model(x).chunk(2, dim=0)
        return (left - right).square().mean() + sum(part.mean() for part in torch.randn(8, 4).chunk(4))

    assert looked_at_all(training(model, loss)).account.slices == []


def test_a_head_for_each_step_of_a_layer_is_found_and_not_the_layer_s_own_slices():
    layer, head = nn.GRU(8, 16, batch_first=True), nn.Linear(16, 3)

    def loss() -> torch.Tensor:
        hidden, _ = layer(torch.randn(4, 12, 8))
        outputs = []
        for t in range(hidden.size(1)):
            outputs.append(head(hidden[:, t, :]))  # noqa: PERF401
        return torch.stack(outputs).square().mean()

    found = looked_at_all(training(nn.ModuleList([layer, head]), loss))
    one = the_loop(found, "outputs.append(head(hidden[:, t, :]))  # noqa: PERF401")
    assert (one.times, one.module, one.is_chain) == (12, "Linear", False)


@pytest.mark.parametrize("stride", [4, 8])
def test_windows_that_overlap_are_slices_and_pieces_are_not(stride: int):
    project = nn.Linear(2 * 8, 5)

    def loss() -> torch.Tensor:
        x = torch.randn(6, 2, 64)
        windows = []
        for start in range(0, 64 - 7, stride):
            window = x[:, :, start : start + 8].reshape(6, -1)
            windows.append(project(window))
        return torch.stack(windows).square().mean()

    found = looked_at_all(training(project, loss))
    assert len(found.account.slices) == (1 if stride < 8 else 0)
    for one in found.account.slices:
        assert text_at(found, one.place) == "windows.append(project(window))"
        assert (one.times, one.dimension, one.module, one.is_chain) == (15, 2, "Linear", False)


def test_what_goes_on_with_each_slice_belongs_to_the_loop():
    means = nn.Parameter(torch.randn(5, 6))

    def loss() -> torch.Tensor:
        logits = []
        for one in torch.randn(16, 6):
            difference = one - means
            squares = difference.square() @ torch.ones(6)
            logits.append(-squares)
        return torch.stack(logits).logsumexp(1).mean()

    found = looked_at_all(training(nn.ParameterList([means]), loss))
    (row,) = found.account.slices
    texts = {text_at(found, place) for place in (row.place, *row.others)}
    assert texts == {
        "difference = one - means",
        "squares = difference.square() @ torch.ones(6)",
        "logits.append(-squares)",
    }


class OwnStep(torch.optim.SGD):
    """Where something was compiled before, torch 2.2 calls no hooks of its own optimizers."""

    def step(self, closure: Any = None) -> Any:
        return super().step(closure)


def test_slices_between_which_an_optimizer_steps_cannot_be_joined():
    model = nn.Linear(6, 3)
    optimizer = OwnStep(model.parameters(), lr=0.1)

    def step() -> None:
        for one in torch.randn(16, 6):
            optimizer.zero_grad()
            model(one).sum().backward()
            optimizer.step()

    assert looked_at_all(step).account.slices == []


def test_a_recurrence_of_ones_own_is_a_chain():
    weight = nn.Linear(8, 8)

    def loss() -> torch.Tensor:
        state = torch.zeros(4, 8)
        for one in torch.randn(12, 4, 8):
            state = torch.tanh(weight(state) + one)
        return state.sum()

    assert all(one.is_chain for one in looked_at_all(training(weight, loss)).account.slices)


def test_samples_whose_statistics_are_learned_one_by_one_are_a_chain():
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(4 * 36, 3))

    def loss() -> torch.Tensor:
        x = torch.randn(8, 1, 8, 8)
        return torch.stack([model(x[i : i + 1]).sum() for i in range(8)]).mean()

    (one,) = looked_at_all(training(model, loss)).account.slices
    assert one.is_chain


def test_samples_that_a_data_loader_gets_one_by_one_are_its_own():
    data = torch.utils.data.TensorDataset(torch.randn(64, 6))
    loader = iter(torch.utils.data.DataLoader(data, batch_size=16))
    model = nn.Linear(6, 3)
    assert looked_at_all(training(model, lambda: model(next(loader)[0]).sum())).account.slices == []


class Tagger(nn.Module):
    def __init__(self, *, mended: bool) -> None:
        super().__init__()
        self.mended = mended
        self.score = nn.Sequential(nn.Linear(32, 64), nn.Tanh(), nn.Linear(64, 5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.mended:
            return self.score(x)
        scores = []
        for t in range(x.shape[1]):
            scores.append(self.score(x[:, t]))  # noqa: PERF401
        return torch.stack(scores, dim=1)


@pytest.mark.parametrize("mended", [False, True])
def test_the_finding_stands_at_the_call_in_the_loop_and_mended_there_is_none(mended: bool, tmp_path: Path):
    model = Tagger(mended=mended)
    step = training(
        model, lambda: F.cross_entropy(model(torch.randn(8, 64, 32)).flatten(0, 1), torch.randint(5, (512,)))
    )
    profile = recorded_and_looked_at(step, tmp_path)
    found = [one for one in profile.findings if one.code == "DS034"]
    assert len(found) == (0 if mended else 1)
    for one in found:
        assert LINES[one.line - 1].strip().startswith("scores.append(self.score(x[:, t]))")
        assert 0.3 * profile.totals.wall_ns < one.saving_ns < profile.totals.wall_ns
        assert "Sequential is called 64 times a step" in one.message
    # What one call saves is promised once.
    assert [one for one in profile.findings if one.code == "DS007"] == []


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

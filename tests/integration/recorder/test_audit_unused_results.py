"""Results that nobody uses, as the audit of real steps finds them; and all the ways to use one that are not found."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from audited_programs import looked_at_all, recorded_and_looked_at, training
from deepscope.capture.audit.hooks import UnseenUses, foreign_extensions
from deepscope.trace.format.audit import UnusedResults

pytestmark = pytest.mark.usefixtures("nothing_compiled")

WIDTH = 16


def results(step: Callable[[], object]) -> list[UnusedResults]:
    return [one for one in looked_at_all(step).account.results if not one.is_number]


def names(found: UnusedResults) -> list[str]:
    return sorted(use.name.removeprefix("aten::") for use in found.operators if use.unused)


class WithAuxiliary(nn.Module):
    """A perceptron with a second head."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 1)
        self.auxiliary = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 4))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        hidden = self.body(x).relu()
        other = self.auxiliary(hidden)
        return self.head(hidden), other


def test_a_head_whose_output_nobody_takes_is_named_at_its_call():
    model = WithAuxiliary()
    audited = looked_at_all(training(model, lambda: model(torch.randn(8, WIDTH))[0].square().mean()))
    (found,) = audited.account.results
    assert found.whole
    assert names(found) == ["addmm", "relu"]
    assert audited.places[found.place].function.endswith("forward")
    assert sum(use.unused for use in found.operators) == 3


def test_a_head_whose_output_is_a_part_of_the_loss_is_used():
    model = WithAuxiliary()
    assert results(training(model, lambda: sum(one.square().mean() for one in model(torch.randn(8, WIDTH))))) == []  # type: ignore[arg-type,return-value]


def test_attention_weights_that_are_dropped_are_told_of_their_module():
    attention = nn.MultiheadAttention(WIDTH, 2, batch_first=True)

    def loss() -> torch.Tensor:
        x = torch.randn(4, 8, WIDTH)
        mixed, _ = attention(x, x, x)
        return mixed.square().mean()

    (found,) = results(training(attention, loss))
    assert (found.module, found.whole) == ("MultiheadAttention", False)
    assert names(found) == ["mean"]


def with_metric(use: Callable[[torch.Tensor], object]) -> Callable[[], None]:
    """A step that computes an accuracy, which `use` gets."""
    model = nn.Linear(WIDTH, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step() -> None:
        target = torch.randint(4, (8,))
        logits = model(torch.randn(8, WIDTH))
        optimizer.zero_grad()
        F.cross_entropy(logits, target).backward()
        optimizer.step()
        right = (logits.argmax(1) == target).float().mean()
        use(right)

    return step


def test_a_metric_that_is_dropped_is_not_used():
    (found,) = results(with_metric(lambda right: None))
    assert names(found) == ["_to_copy", "argmax", "eq", "mean"]
    assert found.whole


KEPT: list[Any] = []
SUM = torch.zeros(())
USES: dict[str, Callable[[torch.Tensor], object]] = {
    "item": lambda one: one.item(),
    "float": float,
    "format": lambda one: f"{one:.2f}",
    "repr": repr,
    "numpy": lambda one: one.numpy(),
    "asarray": np.asarray,
    "tolist": lambda one: one.tolist(),
    "append": KEPT.append,
    "append detached": lambda one: KEPT.append(one.detach()),
    "sum": lambda one: SUM.add_(one),
    "list to tensor": lambda one: torch.tensor([one, one]),
    "list to Tensor": lambda one: torch.Tensor([one, one]),
    "condition": lambda one: 1 if one > 0.5 else 0,
    "pickle": pickle.dumps,
    "save": lambda one: torch.save(one, io.BytesIO()),
    "deepcopy": copy.deepcopy,
    "dlpack": lambda one: one.__dlpack__(),
    "data_ptr": lambda one: one.data_ptr(),
    "assert": lambda one: torch._assert_async(one >= 0),
}


@pytest.mark.parametrize("name", USES)
def test_whatever_uses_a_metric_makes_it_used(name: str):
    assert results(with_metric(USES[name])) == []


def test_a_result_of_which_a_later_step_makes_use_is_used():
    model = nn.Linear(WIDTH, 1)
    last: list[torch.Tensor] = []

    def loss() -> torch.Tensor:
        out = model(torch.randn(8, WIDTH))
        before = sum((one.mean() for one in last), torch.zeros(()))
        last[:] = [out.detach() * 2]
        return out.square().mean() + before

    assert results(training(model, loss)) == []


def test_forward_passes_for_running_statistics_are_used():
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.BatchNorm1d(WIDTH))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step() -> None:
        optimizer.zero_grad()
        model(torch.randn(8, WIDTH)).square().mean().backward()
        optimizer.step()
        with torch.no_grad():
            model(torch.randn(8, WIDTH))

    assert results(step) == []


def test_the_methods_are_put_back_as_they_were():
    before = dict(torch.Tensor.__dict__)
    results(with_metric(lambda right: right.tolist()))
    assert {name: one for name, one in torch.Tensor.__dict__.items() if before.get(name) is not one} == {}
    assert before.keys() == torch.Tensor.__dict__.keys()


def test_what_another_library_put_over_a_method_stays(monkeypatch: pytest.MonkeyPatch):
    seen: list[torch.Tensor] = []
    uses = UnseenUses(lambda tensor, _: seen.append(tensor))
    uses.begin()
    ours = torch.Tensor.tolist
    monkeypatch.setattr(torch.Tensor, "tolist", lambda self: ["theirs", *ours(self)])
    uses.end()
    assert torch.ones(1).tolist() == ["theirs", 1.0]
    assert seen == []
    monkeypatch.undo()
    del torch.Tensor.tolist
    assert torch.ones(1).tolist() == [1.0]


def test_where_extensions_take_tensors_what_no_operator_reads_is_not_called_unused(monkeypatch: pytest.MonkeyPatch):
    assert foreign_extensions() == []
    import sys
    import types

    extension = types.ModuleType("selective_scan_cuda")
    extension.__file__ = "/somewhere/selective_scan_cuda.so"
    extension.fwd = type("Function", (), {"__doc__": "fwd(arg0: torch.Tensor) -> None", "__call__": id})()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "selective_scan_cuda", extension)
    account = looked_at_all(with_metric(lambda right: None)).account
    assert account.results == []
    assert "selective_scan_cuda" in account.hidden


def test_the_finding_stands_at_the_line_and_mended_there_is_none(tmp_path: Path):
    net = nn.Linear(WIDTH, 1)
    unused = nn.Sequential(*(nn.Linear(256, 256) for _ in range(4)))

    def loss(mended: bool) -> torch.Tensor:
        if not mended:
            unused(torch.ones(512, 256))
        return net(torch.randn(8, WIDTH)).square().mean()

    for mended in (False, True):
        profile = recorded_and_looked_at(training(net, lambda mended=mended: loss(mended)), tmp_path / str(mended))  # type: ignore[misc]
        found = [one for one in profile.findings if one.code == "DS037"]
        assert len(found) == (0 if mended else 1)
        for one in found:
            assert one.function.endswith("loss")
            assert 0.3 * profile.totals.device_ns < one.saving_ns < profile.totals.device_ns
            assert "addmm" in one.message


def test_two_calls_from_different_places_are_told_by_their_part_of_the_line(tmp_path: Path):
    model = WithAuxiliary()

    def loss() -> torch.Tensor:
        x = torch.randn(8, WIDTH)
        main, other = model(x)
        again, _ = model(x)
        return main.square().mean() + other.square().mean() + again.square().mean()

    (found,) = results(training(model, loss))
    assert {(use.times, use.unused) for use in found.operators if use.name == "aten::addmm"} == {(4, 2)}


def numbers(step: Callable[[], object]) -> list[UnusedResults]:
    """What is read as numbers alone."""
    return [one for one in looked_at_all(step).account.results if one.is_number]


def test_statistics_that_a_hook_reads_as_numbers_are_named_where_it_begins():
    layer, read = nn.Linear(WIDTH, WIDTH), {}

    def record(output: torch.Tensor) -> None:
        values = output.detach().abs()
        read["mean"] = values.mean().item()
        read["most"] = float(values.flatten().kthvalue(8).values)

    layer.register_forward_hook(lambda module, args, output: record(output))
    (found,) = numbers(training(layer, lambda: layer(torch.randn(8, WIDTH)).square().mean()))
    assert found.whole
    assert names(found) == ["abs", "kthvalue", "mean"]


@pytest.mark.parametrize("use", ["loss", "kept", "scale"])
def test_what_more_than_a_number_is_made_of_is_used(use: str):
    layer = nn.Linear(WIDTH, WIDTH)
    kept: list[object] = []

    def loss() -> torch.Tensor:
        out = layer(torch.randn(8, WIDTH))
        size = out.detach().square().mean()
        if use == "loss":
            whole = out.square().mean()
            kept.append(whole.item())
            return whole + size
        kept.append(size.item())
        if use == "kept":
            kept.append(size)
        return out.sum() / size if use == "scale" else out.sum()

    assert numbers(training(layer, loss)) == []

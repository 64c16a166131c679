"""Results and derivatives that nobody uses, as the audit of real steps finds them; and all the ways to use one."""

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

from audited_programs import looked_at_all, recorded_and_looked_at, text_at, training
from deepscope.capture.audit.hooks import UnseenUses, foreign_extensions
from deepscope.trace.format.audit import UnusedResults
from recorded import TESTS

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


INPUTS, FIELDS = 3, 2
Loss = Callable[[list[torch.Tensor]], Any]


def derivative(values: torch.Tensor, points: torch.Tensor) -> torch.Tensor:
    return torch.autograd.grad(values.sum(), points, create_graph=True)[0]


def hessians(field: nn.Module, points: torch.Tensor, joined: Callable[..., torch.Tensor]) -> list[torch.Tensor]:
    """Of each number of the field's, by both inputs."""
    values = field(points)
    found = []
    for number in range(FIELDS):
        first = derivative(values[:, number], points)
        rows = [derivative(first[:, place], points) for place in range(INPUTS)]
        found.append(joined(rows, dim=1))
    return found


def step_of(loss_of: Loss, *, joined: Callable[..., torch.Tensor] = torch.stack) -> Callable[[], None]:
    field = nn.Sequential(nn.Linear(INPUTS, 16), nn.Tanh(), nn.Linear(16, FIELDS))

    def loss() -> torch.Tensor:
        points = torch.randn(64, INPUTS, requires_grad=True)
        return torch.as_tensor(loss_of(hessians(field, points, joined))).square().mean()

    return training(field, loss)


def unused(loss_of: Loss, **options: Any) -> list[UnusedResults]:
    return [one for one in looked_at_all(step_of(loss_of, **options)).account.results if one.derivatives]


def test_rows_of_a_hessian_that_no_loss_reads_are_counted_at_the_line_that_takes_them():
    found = looked_at_all(step_of(lambda second: second[0][:, 0, 0] + second[0][:, 1, 1]))
    (one,) = [row for row in found.account.results if row.derivatives]
    assert (one.derivatives, one.all_derivatives, one.whole) == (4, 6, False)
    assert text_at(found, one.place) == "rows = [derivative(first[:, place], points) for place in range(INPUTS)]"
    products = [use for use in one.backward if use.name == "aten::mm"]
    assert 0 < sum(use.unused for use in products) < sum(use.times for use in products)


def joined_by_cat(rows: list[torch.Tensor], dim: int) -> torch.Tensor:
    return torch.cat([row.unsqueeze(dim) for row in rows], dim)


def joined_in_front(rows: list[torch.Tensor], dim: int) -> torch.Tensor:
    return torch.stack(rows, dim=0).movedim(0, dim)


READ: dict[str, tuple[Loss, int]] = {
    "one row": (lambda second: second[0][:, 1], 5),
    "rows by twos": (lambda second: second[1][:, ::2], 4),
    "a diagonal": (lambda second: second[0].diagonal(dim1=1, dim2=2).sum(-1), 3),
    "some points": (lambda second: second[0][3:9, 2:], 5),
    "one of two": (lambda second: second[1].exp(), 3),
    "turned": (lambda second: second[1].transpose(0, 1)[0] + second[1][:, 1:2, 1], 4),
}


@pytest.mark.parametrize("joined", [torch.stack, joined_by_cat, joined_in_front])
@pytest.mark.parametrize("name", READ)
def test_what_is_read_is_followed_to_the_parts_that_were_joined(name: str, joined: Callable[..., torch.Tensor]):
    loss_of, count = READ[name]
    (one,) = unused(loss_of, joined=joined)
    assert one.derivatives == count


KEPT: list[torch.Tensor] = []


def kept(second: list[torch.Tensor]) -> torch.Tensor:
    KEPT.extend(second)
    return second[0][:, 0]


USED: dict[str, Loss] = {
    "all rows": lambda second: second[0] + second[1],
    "a number of each": lambda second: second[0][:, :, 0] + second[1][:, :, 1],
    "printed": lambda second: (repr(second), second[0][:, 0])[1],
    "by NumPy": lambda second: ([one.detach().numpy() for one in second], second[0][:, 0])[1],
    "for a log": lambda second: second[0][:, 0] * max(one.abs().max().item() for one in second),
    "kept": kept,
}


@pytest.mark.parametrize("name", USED)
def test_derivatives_that_somebody_uses_are_not_found(name: str):
    assert unused(USED[name]) == []
    KEPT.clear()


def test_gradients_that_are_differentiated_once_more_with_those_before_them_are_used():
    field = nn.Sequential(nn.Linear(INPUTS, 16), nn.Tanh(), nn.Linear(16, 1))

    def loss() -> torch.Tensor:
        points = torch.randn(64, INPUTS, requires_grad=True)
        values = field(points)
        direction = derivative(values, points)
        (along,) = torch.autograd.grad(values.exp(), points, direction.mean(1, keepdim=True), create_graph=True)
        return along.square().mean()

    assert [one for one in looked_at_all(training(field, loss)).account.results if one.derivatives] == []


def test_derivatives_that_are_joined_to_a_gradient_are_used():
    layer = nn.Linear(INPUTS, FIELDS)
    flat = nn.Parameter(torch.zeros(INPUTS * FIELDS + FIELDS))
    optimizer = torch.optim.SGD([flat], lr=0.1)

    def step() -> None:
        optimizer.zero_grad()
        loss = layer(torch.randn(64, INPUTS)).square().mean()
        derivatives = torch.autograd.grad(loss, list(layer.parameters()))
        flat.backward(torch.cat([one.flatten() for one in derivatives]))
        optimizer.step()

    assert [one for one in looked_at_all(step).account.results if one.derivatives] == []


def test_the_finding_promises_a_bound_and_names_the_change(tmp_path: Path):
    field = nn.Sequential(nn.Linear(INPUTS, 128), nn.Tanh(), nn.Linear(128, 128), nn.Tanh(), nn.Linear(128, FIELDS))

    def loss() -> torch.Tensor:
        points = torch.randn(256, INPUTS, requires_grad=True)
        return hessians(field, points, torch.stack)[0][:, 0].square().mean()

    profile = recorded_and_looked_at(training(field, loss), tmp_path)
    (found,) = [one for one in profile.findings if one.code == "DS037" and "derivatives" in one.message]
    assert found.file == str(TESTS / "integration" / "recorder" / "test_audit_unused_results.py")
    assert found.message.startswith("5 of 6 derivatives that are taken here are not used")
    assert "torch.autograd.grad" in found.remedy.text
    assert 0 < found.saving_ns < profile.totals.wall_ns
    assert not found.is_measured

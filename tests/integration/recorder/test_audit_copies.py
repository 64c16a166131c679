"""Copies that a step could do without, as the audit of real steps finds them."""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from audited_programs import TELLS_WHOSE_BYTES, looked_at_all, training
from deepscope.capture.audit import step_audit
from deepscope.capture.audit.step_audit import STEPS
from deepscope.trace.format.audit import NeedlessCopies

pytestmark = [
    pytest.mark.usefixtures("nothing_compiled"),
    TELLS_WHOSE_BYTES,
]

WIDTH = 128
Loss = Callable[[torch.Tensor, nn.Module], torch.Tensor]


def copies(loss_of: Loss) -> list[NeedlessCopies]:
    """Of a step whose loss is computed of a layer's outputs (8, 16, 128) and of the module with the layer."""
    model = nn.Module()
    model.layer = nn.Linear(WIDTH, WIDTH)
    model.weight = nn.Parameter(torch.randn(2 * WIDTH, WIDTH))
    model.position = nn.Parameter(torch.randn(1, 16, WIDTH))

    def loss() -> torch.Tensor:
        return loss_of(model.layer(torch.randn(8, 16, WIDTH)), model).square().mean()

    return looked_at_all(training(model, loss)).account.copies


def of_expression(text: str) -> Loss:
    """The loss of an expression of `x` and `m`, as a function of a file of the user's."""

    def loss(x: torch.Tensor, m: nn.Module) -> torch.Tensor:
        value: torch.Tensor = eval(compile(text, __file__, "eval"), {"torch": torch, "F": F, "copy": copy}, locals())
        return value

    return loss


def test_a_copy_of_a_skip_connection_is_needed_for_nothing():
    def loss(x: torch.Tensor, m: nn.Module) -> torch.Tensor:
        skip = x.clone()
        x = torch.tanh(m.layer(x))
        return x * skip

    (found,) = copies(loss)
    assert (found.name, found.need, found.reader, found.times) == ("aten::clone", "none", "aten::mul", 1)
    assert (found.shape, found.result_bytes) == ([8, 16, WIDTH], 8 * 16 * WIDTH * 4)
    assert {use.name for use in found.operators if use.unused} == {"aten::clone"}


@pytest.mark.parametrize(
    "text",
    [
        "x + x.detach().clone()",
        "x + torch.tensor(x.detach())",
        "x + x.to(x.dtype, copy=True)",
        "x + copy.deepcopy(x.detach())",
        "x + copy.deepcopy({'a': [x.detach()]})['a'][0]",
        "x @ m.weight.clone().t()",
        "x[:, :4].clone().relu() if x[:, :4].is_contiguous() else x[:4].clone().relu()",
    ],
)
@pytest.mark.filterwarnings("ignore:To copy construct from a tensor")
def test_what_is_only_read_need_not_be_copied(text: str):
    (found,) = copies(of_expression(text))
    assert (found.need, found.times) == ("none", 1)


ATTENTION = "F.scaled_dot_product_attention(*3 * [x.view(8, 16, 4, 32).transpose(1, 2).contiguous()])"


@pytest.mark.parametrize(
    ("text", "name", "reader"),
    [
        ("x @ m.weight.t().contiguous()", "clone", "mm"),
        ("torch.bmm(x, x.transpose(1, 2).contiguous())", "clone", "bmm"),
        ("x + m.position.expand(8, -1, -1).contiguous()", "clone", "add"),
        ("x + m.position.repeat(8, 1, 1)", "repeat", "add"),
        ("x * x.mean(2, keepdim=True).repeat(1, 1, 128)", "repeat", "mul"),
        (
            f"{ATTENTION}.transpose(1, 2).reshape(8, 16, 128) @ m.layer.weight",
            "clone",
            "_scaled_dot_product_flash_attention_for_cpu",
        ),
    ],
)
def test_readers_that_take_the_source_as_it_lies_need_no_copy(text: str, name: str, reader: str):
    (found,) = copies(of_expression(text))
    assert (found.name, found.need, found.reader) == (f"aten::{name}", "layout", f"aten::{reader}")


def test_a_cast_in_each_turn_of_a_loop_is_needed_once():
    def loss(x: torch.Tensor, m: nn.Module) -> torch.Tensor:
        mask = x.detach() > 0
        for _ in range(4):
            x = torch.tanh(x) * mask.to(x.dtype)
        return x

    (found,) = copies(loss)
    assert (found.name, found.need, found.times) == ("aten::_to_copy", "once", 3)
    (use,) = (use for use in found.operators if use.unused)
    assert (use.times, use.unused) == (4, 3)


def written_to(x: torch.Tensor, m: nn.Module) -> torch.Tensor:
    y = x.clone()
    y[:, 0] = 0
    return y + x


def source_written_to(x: torch.Tensor, m: nn.Module) -> torch.Tensor:
    skip = x.clone()
    x.mul_(2)
    return x + skip


def source_written_to_before_the_backward_pass(x: torch.Tensor, m: nn.Module) -> torch.Tensor:
    y = x.clone() * m.position
    x.mul_(2)
    return y + x


def copy_of_a_copy_whose_source_changes(x: torch.Tensor, m: nn.Module) -> torch.Tensor:
    first = x.clone()
    second = first.clone()
    del first
    x.mul_(2)
    return x + second


def given_to_numpy(x: torch.Tensor, m: nn.Module) -> torch.Tensor:
    y = x.detach().clone()
    y.numpy()[0] = 0
    return x + y


KEPT: list[torch.Tensor] = []
STATE = {"kept": torch.zeros(1), "shown": torch.zeros(1)}


def kept_till_the_weights_have_changed(x: torch.Tensor, m: nn.Module) -> torch.Tensor:
    x = x @ STATE["kept"].t() if STATE["kept"].dim() > 1 else x @ m.layer.weight.t()
    STATE["kept"] = m.layer.weight.detach().clone()
    return x


def part_that_is_kept_for_the_next_step(x: torch.Tensor, m: nn.Module) -> torch.Tensor:
    y = x + STATE["shown"]
    STATE["shown"] = x[:1].detach().clone()
    return y


def kept_in_a_list(x: torch.Tensor, m: nn.Module) -> torch.Tensor:
    KEPT.append(x.detach().clone())
    return x + KEPT[-1]


def memory_of_numpy(x: torch.Tensor, m: nn.Module) -> torch.Tensor:
    return x + torch.from_numpy(torch.ones(16, WIDTH).numpy()).clone()


def in_autocast(x: torch.Tensor, m: nn.Module) -> torch.Tensor:
    with torch.autocast("cpu", torch.bfloat16):
        return x @ m.weight.t() + x @ m.weight.t()


def another_backward_pass_in_between(x: torch.Tensor, m: nn.Module) -> torch.Tensor:
    for _ in range(2):
        loss = (x.detach() @ m.weight.t().to(torch.float64).float()).mean()
        loss.backward()
    return x


NEEDED = [
    written_to,
    source_written_to,
    source_written_to_before_the_backward_pass,
    given_to_numpy,
    kept_till_the_weights_have_changed,
    part_that_is_kept_for_the_next_step,
    kept_in_a_list,
    memory_of_numpy,
    in_autocast,
    another_backward_pass_in_between,
]


@pytest.mark.parametrize("loss_of", NEEDED, ids=lambda one: one.__name__)
def test_a_copy_that_is_needed_is_none(loss_of: Loss):
    assert copies(loss_of) == []


@pytest.mark.parametrize(
    "text",
    [
        "x.transpose(1, 2).contiguous().view(8, -1)",
        "x.transpose(1, 2).reshape(8, -1)",
        "x.transpose(1, 2).contiguous().relu()",  # which is slower on what lies across
        "x[:, :, :64].contiguous().exp()",
        "x.transpose(0, 1).contiguous() @ m.weight.t()",
        "x.mean(2, keepdim=True).expand(-1, -1, 128).contiguous().exp()",
        "m.position.repeat(8, 2, 1)",
        "F.scaled_dot_product_attention(*3 * [x.transpose(1, 2).contiguous()])",
        f"{ATTENTION}.relu()",
        f"{ATTENTION}.view(8, -1)",
        "x.float().to(torch.float64).float()",
        "torch.as_strided(x.transpose(1, 2).contiguous(), (8, 128), (2048, 1)) @ m.weight.t()",
    ],
)
def test_readers_that_need_the_copys_layout_have_it(text: str):
    assert copies(of_expression(text)) == []


def test_of_two_copies_in_a_row_one_is_needed_where_the_first_source_changes():
    assert sum(one.times for one in copies(copy_of_a_copy_whose_source_changes)) == 1


def test_a_state_that_goes_on_into_the_next_step_need_not_be_copied():
    state = [torch.zeros(8, 16, WIDTH)]

    def loss(x: torch.Tensor, m: nn.Module) -> torch.Tensor:
        y = x + state[0]
        state[0] = torch.tanh(y).detach().clone()
        return y

    (found,) = copies(loss)
    assert (found.need, found.reader) == ("none", "aten::add")


def test_copies_of_all_parts_of_a_tensor_keep_no_less_in_memory_than_it():
    def loss(x: torch.Tensor, m: nn.Module) -> torch.Tensor:
        parts = (one.transpose(1, 2).contiguous() for one in (x @ m.weight.t()).view(8, 16, 8, 32).chunk(2, dim=2))
        first, second = parts
        del parts
        return (
            F.scaled_dot_product_attention(first, second, second).transpose(1, 2).reshape(8, 16, WIDTH) @ m.weight.t()
        )

    (found,) = copies(loss)
    assert (found.need, found.times) == ("layout", 2)


def test_a_weight_that_no_module_has_is_known_by_its_optimizer():
    weight = nn.Parameter(torch.randn(WIDTH, WIDTH))
    optimizer = torch.optim.SGD([weight], lr=0.1)

    def step() -> None:
        optimizer.zero_grad()
        (torch.randn(8, WIDTH) @ weight.t().contiguous()).square().mean().backward()
        optimizer.step()

    (found,) = looked_at_all(step).account.copies
    assert (found.need, found.reader) == ("layout", "aten::mm")


def test_a_copy_that_is_a_finding_of_another_rule_is_none():
    def loss(x: torch.Tensor, m: nn.Module) -> torch.Tensor:
        x.clone().square()
        return x * MASK.frozen.clone()

    assert copies(loss) == []


MASK = nn.Module()
MASK.register_buffer("frozen", torch.ones(16, WIDTH))


def test_where_extensions_take_tensors_any_copy_may_be_needed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(step_audit, "foreign_extensions", lambda: ["fast_kernels"])
    assert copies(of_expression("x + x.clone()")) == []


def trained(*, with_audit: bool) -> list[torch.Tensor]:
    """The weights after four steps with copies of all kinds."""
    torch.manual_seed(7)
    model = nn.Module()
    model.layer = nn.Linear(WIDTH, WIDTH)
    model.position = nn.Parameter(torch.randn(1, 16, WIDTH))
    seen: list[weakref.ref[torch.Tensor]] = []

    def loss() -> torch.Tensor:
        assert [one for one in seen if one() is not None] == []
        x = model.layer(torch.randn(8, 16, WIDTH)) + model.position.repeat(8, 1, 1)
        copied = x.clone()
        seen[:] = [weakref.ref(x), weakref.ref(copied)]
        heads = copied.view(8, 16, 4, 32).transpose(1, 2).contiguous()
        attended = F.dropout(F.scaled_dot_product_attention(heads, heads, heads), 0.1)
        return (attended.transpose(1, 2).reshape(x.shape) @ model.layer.weight.t().contiguous()).square().mean()

    step = training(model, loss)
    if with_audit:
        assert looked_at_all(step).account.copies
    else:
        for _ in range(1 + STEPS):
            step()
    step()
    return [*model.parameters(), torch.get_rng_state()]


def test_results_are_the_same_to_the_bit_and_no_tensor_outlives_its_step():
    pairs = zip(trained(with_audit=False), trained(with_audit=True), strict=True)
    assert all(torch.equal(one, other) for one, other in pairs)


def test_a_default_device_does_not_hide_whose_copy_it_is():
    with torch.device("cpu"):
        assert len(copies(of_expression("x + x.clone()"))) == 1


def test_a_copy_that_a_library_makes_is_its_own(tmp_path: Path):
    code = compile("def skip(x):\n    return x.clone()\n", str(tmp_path / "library.py"), "exec")
    names: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {}
    exec(code, names)
    assert copies(lambda x, m: x + names["skip"](x)) == []


@pytest.mark.parametrize(("turns", "is_list"), [(12, False), (6, False), (12, True)])
def test_what_grows_in_a_loop_is_copied_again_and_again(turns: int, is_list: bool):
    cell = nn.Linear(4, 4)

    def loss() -> torch.Tensor:
        x = torch.randn(3, 4)
        out, parts = x[:, None], [x]
        for _ in range(turns):
            x = torch.tanh(cell(x))
            if is_list:
                parts.append(x)
            else:
                out = torch.cat([out, x[:, None]], dim=1)
        return (torch.stack(parts, 1) if is_list else out).square().mean()

    grown = [one for one in looked_at_all(training(cell, loss)).account.copies if one.need == "grown"]
    if is_list or turns < 8:
        assert grown == []
    else:
        (one,) = grown
        assert (one.name, one.times, one.shape) == ("aten::cat", turns - 1, [3, turns + 1, 4])

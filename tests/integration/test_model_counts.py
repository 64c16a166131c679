"""Parameters, FLOPs and activations of models: published figures, other counters side by side, and sums that hold."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch._subclasses import FakeTensorMode
from torch.nn import functional
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

import deepscope
from deepscope.analysis.build import build_profile
from deepscope.errors import OptionError
from deepscope.measure.counts import ModelCounts
from deepscope.trace.read import read_trace
from recorded import TESTS
from vision_models import ResNet, VisionTransformer

MODELS: dict[str, tuple[Callable[[], nn.Module], int, float]] = {
    "resnet18": (lambda: ResNet((2, 2, 2, 2), 1), 11_689_512, 1.814),
    "resnet50": (lambda: ResNet((3, 4, 6, 3), 4), 25_557_032, 4.089),
    "vit_b_16": (VisionTransformer, 86_567_656, 17.564),
}
"""How to make them; parameters and billions of multiply-adds at 224 by 224 as torchvision publishes them:
https://docs.pytorch.org/vision/stable/models.html#table-of-all-available-classification-weights"""

PRODUCTS = {"aten::convolution", "aten::addmm", "aten::mm", "aten::bmm", "aten::baddbmm"}


def image(batch: int = 1) -> torch.Tensor:
    return torch.zeros(batch, 3, 224, 224, device="meta")


def made(name: str) -> nn.Module:
    with torch.device("meta"):
        return MODELS[name][0]().eval()


def check_sums(counts: ModelCounts) -> None:
    for field in ("calls", "flops", "backward_flops", "activation_bytes", "moved_bytes"):
        whole = getattr(counts.total, field)
        assert sum(getattr(row, field) for row in counts.by_operator) == whole
        assert sum(getattr(row, field) for row in counts.by_both) == whole
    assert counts.by_module[0].path == ""
    for field in ("flops", "activation_bytes", "backward_flops", "moved_bytes"):
        assert getattr(counts.by_module[0], field) == getattr(counts.total, field)
    assert sum(row.self_flops for row in counts.by_module) == counts.total.flops
    assert sum(row.self_activation_bytes for row in counts.by_module) == counts.total.activation_bytes
    assert sum(row.self_parameters for row in counts.by_module) == counts.total.parameters
    assert counts.by_module[0].parameters == counts.total.parameters


@pytest.mark.parametrize("name", MODELS)
def test_published_figures_are_found(name: str):
    _, parameters, multiply_adds = MODELS[name]
    counts = deepscope.count_model(made(name), image())
    assert counts.total.parameters == parameters
    assert counts.total.flops / 2e9 == pytest.approx(multiply_adds, abs=0.0006)
    check_sums(counts)


@pytest.mark.parametrize("name", MODELS)
def test_products_are_those_of_fvcore(name: str):
    """It counts a multiplication and an addition as one, takes norms and pooling in, and activations by element."""
    fvcore = pytest.importorskip("fvcore.nn", reason="fvcore is not installed: pip install fvcore")
    model = MODELS[name][0]().eval()
    x = torch.zeros(1, 3, 224, 224)
    counts = deepscope.count_model(model, x)
    theirs = fvcore.FlopCountAnalysis(model, x).unsupported_ops_warnings(False)
    products = {one: value for one, value in theirs.by_operator().items() if one in {"conv", "linear", "matmul"}}
    assert counts.total.flops == 2 * sum(products.values())
    activations = fvcore.ActivationCountAnalysis(model, x).unsupported_ops_warnings(False)
    ours = sum(row.activation_bytes for row in counts.by_operator if row.operator in PRODUCTS)
    assert ours == 4 * activations.total()
    assert counts.total.parameters == fvcore.parameter_count(model)[""]


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_flops_are_those_of_torchs_counter(name: str, backward: bool):
    model = made(name).train()
    counts = deepscope.count_model(model, image(2), backward=backward)
    with FlopCounterMode(display=False) as counter:
        result = model(image(2))
        if backward:
            result.sum().backward()
    assert counts.total.flops == counter.get_total_flops()
    theirs = counter.get_flop_counts()["Global"]
    ours = {row.operator: row.flops for row in counts.by_operator if row.flops}
    assert ours == {f"aten::{packet.__name__}": flops for packet, flops in theirs.items()}
    assert (counts.total.backward_flops > 0) == backward
    check_sums(counts)


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x @ x.t() @ x

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        return gradient * (x.t() @ x).sum()


class Squared(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return Square.apply(x)


class Mixed(nn.Module):
    """A module under two names, one made in a call, checkpointing, an autograd function, a dict in and out."""

    def __init__(self, reentrant: bool | None = None) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
        self.again = self.first
        self.kept = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
        self.squared = Squared()
        self.reentrant = reentrant
        self.dropout = nn.Dropout(0.5)
        self.norm = nn.BatchNorm1d(8)

    def forward(self, batch: dict[str, torch.Tensor]) -> dict[str, Any]:
        x = self.first(batch["x"])
        x = self.kept(x) if self.reentrant is None else checkpoint(self.kept, x, use_reentrant=self.reentrant)
        x = self.norm(self.dropout(self.squared(nn.Tanh()(self.again(x)))))
        return {"out": (x, [x.sum()]), "size": len(x)}


LINEAR = 2 * 4 * 8 * 8


@pytest.mark.parametrize("reentrant", [None, False, True])
def test_backward_work_stands_at_the_module_of_its_forward_work(reentrant: bool | None):
    batch = {"x": torch.randn(4, 8, requires_grad=True)}
    counts = deepscope.count_model(Mixed(reentrant), batch, backward=True)
    rows = {row.path: row for row in counts.by_module}
    assert "again" not in rows
    assert (rows["first.0"].calls, rows["first.0"].flops, rows["first.0"].backward_flops) == (2, 6 * LINEAR, 4 * LINEAR)
    again = 0 if reentrant is None else LINEAR
    assert (rows["kept.0"].calls, rows["kept.0"].flops) == (1, 3 * LINEAR + again)
    assert rows["kept.0"].backward_flops == 2 * LINEAR + again
    forward = 2 * (2 * 4 * 4 * 8)
    assert (rows["squared"].flops, rows["squared"].backward_flops) == (forward + 2 * 4 * 8 * 8, 2 * 4 * 8 * 8)
    assert rows["<Tanh>"].class_name == "Tanh"
    check_sums(counts)


def test_the_model_is_left_as_it_was():
    model, batch = Mixed(), {"x": torch.randn(4, 8, requires_grad=True)}
    model.kept[0].weight.grad = torch.ones(8, 8)
    state = {name: value.clone() for name, value in model.state_dict().items()}
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    deepscope.count_model(model, batch, backward=True)
    assert torch.equal(torch.rand(2), expected)
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
    assert torch.equal(model.kept[0].weight.grad, torch.ones(8, 8))
    assert model.first[0].weight.grad is None
    assert batch["x"].grad is None


def test_a_failing_model_leaves_no_hook_behind():
    model = nn.Sequential(nn.Linear(8, 8), nn.Linear(9, 9))
    for _ in range(2):
        with pytest.raises(RuntimeError, match="shapes"):
            deepscope.count_model(model, torch.randn(2, 8))
    hooks = nn.modules.module
    assert not hooks._global_forward_hooks
    assert not hooks._global_forward_pre_hooks
    assert deepscope.count_model(model[0], torch.randn(2, 8)).total.flops == 2 * 2 * 8 * 8


def test_every_way_to_hold_tensors_gives_the_same_flops():
    def model() -> nn.Module:
        return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))

    expected = 3 * 2 * 5 * (8 * 16 + 16 * 4) - 2 * 5 * 8 * 16  # the input wants no gradient
    real = deepscope.count_model(model(), torch.randn(5, 8), backward=True)
    with torch.device("meta"):
        meta = deepscope.count_model(model(), torch.randn(5, 8), backward=True)
    with FakeTensorMode():
        inside = deepscope.count_model(model(), torch.randn(5, 8), backward=True)
        fake, x = model(), torch.randn(5, 8)
    outside = deepscope.count_model(fake, x, backward=True)
    with torch.inference_mode():
        inference = deepscope.count_model(model(), torch.randn(5, 8))
    assert {one.total.flops for one in (real, meta, inside, outside)} == {expected}
    assert inference.total.flops == 2 * 5 * (8 * 16 + 16 * 4)
    assert real.by_operator == meta.by_operator
    assert real.by_module == meta.by_module


def test_a_model_of_seventy_billion_parameters_takes_no_memory():
    with torch.device("meta"):
        width, layers = 8192, 80
        layer = nn.TransformerEncoderLayer(width, 64, 28672, batch_first=True, bias=False)
        model = nn.Sequential(*(layer for _ in range(2)), nn.Linear(width, layers * 128_256, bias=False))
        counts = deepscope.count_model(model, torch.zeros(1, 4096, width), backward=True)
    assert counts.total.parameter_bytes > 300e9
    linear = sum(one.numel() for one in layer.parameters() if one.dim() > 1)
    head = model[-1].weight.numel()
    attention = 2 * 2 * 4096**2 * width
    forward = 2 * 4096 * (2 * linear + head) + 2 * attention
    assert counts.total.flops - counts.total.backward_flops == forward


def test_autocast_halves_activations_and_no_flops():
    model, x = nn.Linear(64, 64, bias=False), torch.randn(32, 64)
    plain = deepscope.count_model(model, x)
    with torch.autocast("cpu", torch.bfloat16):
        mixed = deepscope.count_model(model, x)
    assert mixed.total.flops == plain.total.flops
    product = {row.operator: row.activation_bytes for row in mixed.by_operator}["aten::mm"]
    assert 2 * product == {row.operator: row.activation_bytes for row in plain.by_operator}["aten::mm"]


def test_activations_are_results_with_memory_of_their_own():
    def function(x: torch.Tensor) -> torch.Tensor:
        y = x.t().reshape(-1).view(4, 8)  # the reshape copies, the others do not
        y.mul_(2)
        return (y + 1).detach().expand(3, 4, 8)

    counts = deepscope.count_model(function, torch.randn(4, 8))
    assert counts.total.activation_bytes == 2 * 4 * 8 * 4
    assert counts.total.parameters == 0
    assert counts.model.endswith("function")


def test_a_function_stands_above_the_modules_that_it_calls():
    encoder, decoder = nn.Linear(8, 4), nn.Linear(4, 8)
    counts = deepscope.count_model(lambda x: decoder(encoder(x)), torch.randn(2, 8))
    assert [(row.path, row.flops) for row in counts.by_module] == [("", 256), ("Linear", 128), ("Linear#2", 128)]
    assert counts.total.parameters == 8 * 4 + 4 + 4 * 8 + 8
    check_sums(counts)


def test_a_method_of_a_module_is_called_as_it_is():
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(8, 4)

        def encode(self, x: torch.Tensor) -> torch.Tensor:
            return self.inner(x)

    counts = deepscope.count_model(Two().encode, torch.randn(2, 8))
    assert [(row.path, row.flops) for row in counts.by_module] == [("", 128), ("inner", 128)]


def test_a_compiled_model_counts_as_the_model_that_was_compiled():
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
    plain = deepscope.count_model(model, torch.randn(2, 8))
    compiled = deepscope.count_model(torch.compile(model, backend="eager"), torch.randn(2, 8))
    assert compiled.by_operator == plain.by_operator
    assert [row.path for row in compiled.by_module] == [row.path for row in plain.by_module]
    assert compiled.model == plain.model


def test_shared_parameters_count_once():
    embedding, head = nn.Embedding(10, 4), nn.Linear(4, 10, bias=False)
    head.weight = embedding.weight
    counts = deepscope.count_model(nn.Sequential(embedding, head), torch.tensor([[1, 2]]))
    assert counts.total.parameters == 40
    assert [(row.path, row.parameters, row.self_parameters) for row in counts.by_module] == [
        ("", 40, 0),
        ("0", 40, 40),
        ("1", 40, 0),
    ]


@pytest.mark.filterwarnings("ignore:Lazy modules are a new feature:UserWarning")
def test_lazy_modules_count_as_what_they_became():
    counts = deepscope.count_model(nn.LazyLinear(5), torch.randn(2, 8), backward=True)
    assert counts.total.parameters == 45
    assert counts.total.flops == 2 * 2 * 2 * 8 * 5


def test_what_has_no_formula_is_named():
    counts = deepscope.count_model(nn.LSTM(8, 16), torch.randn(5, 2, 8, device="cpu"))
    if counts.total.flops == 0:
        assert counts.without_formula
        assert "not known" in str(counts)
    else:
        assert counts.total.flops == 2 * 5 * 2 * 4 * 16 * (8 + 16)


def test_backward_of_what_needs_no_gradient_is_refused():
    with pytest.raises(OptionError, match="requires a gradient"):
        deepscope.count_model(nn.ReLU(), torch.randn(2, 3), backward=True)


def test_attention_counts_the_same_fused_and_plain():
    def attention(x: torch.Tensor) -> torch.Tensor:
        return functional.scaled_dot_product_attention(x, x, x)

    fused = deepscope.count_model(attention, torch.randn(2, 4, 16, 8))
    plain = deepscope.count_model(attention, torch.randn(2, 4, 16, 8, device="meta"))
    assert fused.total.flops == plain.total.flops == 2 * 2 * 2 * 4 * 16 * 16 * 8


def test_a_trace_of_the_same_call_has_the_same_flops_and_operators(tmp_path: Path):
    model = nn.Sequential(nn.Conv2d(3, 4, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 49, 5))
    x = torch.randn(2, 3, 16, 16, requires_grad=True)
    counts = deepscope.count_model(model, x, backward=True)
    with deepscope.profile(tmp_path, root=TESTS, record_shapes=True) as recording:
        model(x).sum().backward()
    profile = build_profile(read_trace(recording.traces[0]))
    assert profile.totals.flops == counts.total.flops
    recorded = {row.name: row.flops for row in profile.operators if row.flops}
    assert recorded == {row.operator: row.flops for row in counts.by_operator if row.flops}


def test_gpt2_of_transformers_counts_as_its_paper_says():
    transformers = pytest.importorskip("transformers", reason="transformers is not installed: pip install transformers")
    with torch.device("meta"):
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config())
        tokens = torch.zeros(1, 128, dtype=torch.long)
        counts = deepscope.count_model(model, input_ids=tokens, labels=tokens, backward=True)
    assert counts.total.parameters == 124_439_808
    matrices = 12 * (768 * 3 * 768 + 768 * 768 + 2 * 768 * 4 * 768) + 768 * 50257
    attention = 12 * 2 * 2 * 128 * 128 * 768
    assert counts.total.flops - counts.total.backward_flops == 2 * 128 * matrices + attention
    check_sums(counts)

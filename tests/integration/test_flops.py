"""FLOPs of real runs: those that torch's FlopCounterMode counts for the same code, and arithmetic where it is wrong."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torchgen
from torch import nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode, sdpa_backward_flop_count, sdpa_flop_count

import deepscope
from deepscope.analysis.build import build_profile
from deepscope.analysis.numbers.flop_formulas import ATTENTION, lacks_formula
from deepscope.capture.options import RecordingOptions
from deepscope.trace.read import read_trace
from recorded import TESTS

_CPU_ATTENTION = {
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: lambda *shapes, **_: sdpa_flop_count(*shapes[:3]),
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward: (
        lambda *shapes, **_: sdpa_backward_flop_count(*shapes[:4])
    ),
}
"""FlopCounterMode does not know the CPU's fused attention, which does the same products."""


def products() -> None:
    a, b = torch.randn(6, 8, requires_grad=True), torch.randn(8, 5, requires_grad=True)
    batches = torch.randn(3, 6, 8, requires_grad=True)
    (a @ b).sum().backward()
    (batches @ b).sum().backward()
    torch.bmm(batches, batches.mT).sum().backward()
    torch.baddbmm(torch.randn(3, 6, 6), batches, batches.mT).sum().backward()
    torch.addmm(torch.randn(6, 5), a, b).sum().backward()
    torch.einsum("bij,bkj->bik", batches, batches).sum().backward()
    nn.Linear(8, 4)(batches).square().sum().backward()


def convolutions() -> None:
    x = torch.randn(2, 4, 9, 9, requires_grad=True)
    layers: list[nn.Module] = [
        nn.Conv2d(4, 8, 3, stride=2, padding=1),
        nn.Conv2d(4, 6, (3, 2), dilation=(2, 1), bias=False),
        nn.Conv2d(4, 4, 3, padding="same"),
        nn.ConvTranspose2d(4, 6, 3, stride=2, output_padding=1),
        nn.ConvTranspose2d(4, 8, 3, padding=1),
    ]
    for layer in layers:
        layer(x).square().sum().backward()
        layer(x.detach()).square().sum().backward()  # the gradient of the input is not wanted
    nn.Conv1d(4, 5, 3)(torch.randn(2, 4, 9)).sum().backward()
    nn.Conv3d(4, 5, 3)(torch.randn(2, 4, 9, 8, 7)).sum().backward()


def fused_attention() -> None:
    query = torch.randn(2, 4, 16, 8, requires_grad=True)
    key = torch.randn(2, 4, 32, 8, requires_grad=True)
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        functional.scaled_dot_product_attention(query, key, key).square().sum().backward()


def plain_attention() -> None:
    query = torch.randn(2, 4, 16, 8, requires_grad=True)
    with sdpa_kernel(SDPBackend.MATH):
        functional.scaled_dot_product_attention(query, query, query).square().sum().backward()


def transformer() -> None:
    layer = nn.TransformerEncoderLayer(16, 4, dim_feedforward=32, batch_first=True)
    model = nn.Sequential(nn.Linear(8, 16), layer, nn.Linear(16, 3))
    optimizer = torch.optim.SGD(model.parameters())
    for _ in range(2):
        model(torch.randn(3, 10, 8)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


@pytest.mark.parametrize("work", [products, convolutions, fused_attention, plain_attention, transformer])
@pytest.mark.parametrize("ask", ["record_shapes", "with_flops"])
def test_flops_are_those_of_torchs_counter(tmp_path: Path, work: Callable[[], None], ask: str):
    with FlopCounterMode(display=False, custom_mapping=_CPU_ATTENTION) as counter:
        work()
    with deepscope.profile(tmp_path, root=TESTS, **{ask: True}) as recording:
        work()
    profile = build_profile(read_trace(recording.traces[0]))
    assert counter.get_total_flops() > 0
    assert profile.totals.flops == counter.get_total_flops()
    counted = {f"aten::{packet.__name__}": flops for packet, flops in counter.get_flop_counts()["Global"].items()}
    assert {one.name: one.flops for one in profile.operators if one.flops} == counted


def flops_of(tmp_path: Path, work: Callable[[], None]) -> int:
    with deepscope.profile(tmp_path, root=TESTS, record_shapes=True) as recording:
        work()
    return build_profile(read_trace(recording.traces[0])).totals.flops


@pytest.mark.parametrize(
    ("layer", "places"),
    [
        (nn.Conv2d(12, 12, 3, groups=12), 49),
        (nn.Conv2d(12, 6, (3, 2), stride=2, dilation=2, groups=3), 3 * 4),
        (nn.ConvTranspose2d(12, 8, 3, groups=4, stride=2), 81),
    ],
)
def test_gradients_of_grouped_convolutions_take_what_the_forward_pass_takes(
    tmp_path: Path, layer: nn.Module, places: int
):
    x = torch.randn(2, 12, 9, 9, requires_grad=True)
    forward = 2 * 2 * places * layer.weight.numel()
    assert flops_of(tmp_path, lambda: layer(x).sum().backward()) == 3 * forward
    assert deepscope.count_model(layer, x, backward=True).total.flops == 3 * forward


def test_causal_attention_counts_the_pairs_that_its_mask_leaves(tmp_path: Path):
    query = torch.randn(2, 3, 9, 8, requires_grad=True)

    def attend() -> torch.Tensor:
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            return functional.scaled_dot_product_attention(query, query, query, is_causal=True)

    pairs = 2 * 3 * sum(range(1, 10))
    assert flops_of(tmp_path, lambda: attend().sum().backward()) == (2 + 5) * 2 * pairs * 8
    assert deepscope.count_model(attend, backward=True).total.flops == (2 + 5) * 2 * pairs * 8


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent_layers_count_their_products(tmp_path: Path, kind: type[nn.Module]):
    layer, x = kind(7, 11, num_layers=2, bidirectional=True), torch.randn(5, 3, 7)
    matrices = sum(one.numel() for one in layer.parameters() if one.dim() == 2)
    assert flops_of(tmp_path, lambda: layer(x)) == 2 * 5 * 3 * matrices
    counts = deepscope.count_model(layer, x)
    assert counts.total.flops == 2 * 5 * 3 * matrices
    assert not counts.without_formula


@pytest.mark.parametrize("name", sorted(name for name in ATTENTION if hasattr(torch.ops.aten, name[6:])))
def test_attention_reads_its_mask_where_torchs_schema_has_it(name: str):
    asked: list[int] = []

    class Words(list[str]):
        def __getitem__(self, place: int) -> str:  # type: ignore[override]
            asked.append(place)
            return super().__getitem__(place)

    arguments = [argument.name for argument in getattr(torch.ops.aten, name[6:]).default._schema.arguments]
    shapes = [[2, 4, 9, 9]] * (3 if arguments[0] == "query" else 4) + [[]] * 24
    ATTENTION[name](shapes, Words([""] * 24))
    read = {arguments[place] for place in asked}
    assert read & {"is_causal", "custom_mask_type"}
    assert read <= {"is_causal", "custom_mask_type", "window_size_left", "window_size_right"}


def test_flops_stand_at_the_lines_of_the_forward_pass(tmp_path: Path):
    with deepscope.profile(tmp_path, root=TESTS, record_shapes=True) as recording:
        products()
    profile = build_profile(read_trace(recording.traces[0]))
    by_text = {line.text.strip(): line.flops for line in profile.lines if line.text and line.flops}
    assert by_text["(a @ b).sum().backward()"] == 3 * 2 * 6 * 8 * 5
    assert by_text["torch.bmm(batches, batches.mT).sum().backward()"] == 3 * 3 * 2 * 6 * 8 * 6
    assert sum(by_text.values()) + profile.no_line.flops == profile.totals.flops
    assert profile.no_line.flops == 0


def test_flops_need_shapes_so_asking_for_them_records_shapes():
    assert RecordingOptions(with_flops=True).record_shapes
    assert not RecordingOptions().record_shapes


_MADE_OF_OTHERS = {
    "linalg_matrix_exp", "linalg_matrix_power", "linalg_multi_dot", "linalg_pinv", "linalg_matrix_rank", "linalg_cond",
    "linalg_matmul",
}  # fmt: skip
_MULTIPLY_NO_MATRICES = {
    "linalg_cross", "linalg_diagonal", "linalg_matrix_norm", "linalg_norm", "linalg_vander", "linalg_vecdot",
    "linalg_vector_norm", "linalg__powsum",
}  # fmt: skip


def test_all_that_this_torch_calls_linear_algebra_is_named_or_made_of_what_is():
    declared = (Path(torchgen.__file__).parent / "packaged/ATen/native/native_functions.yaml").read_text("utf-8")
    names = set(re.findall(r"^- func: (linalg_\w+)", declared, re.MULTILINE))
    assert len(names) > 30
    assert {name for name in names if not lacks_formula(f"aten::{name}")} <= _MADE_OF_OTHERS | _MULTIPLY_NO_MATRICES
    helpers = set(re.findall(r"^- func: (_linalg_\w+|_\w*(?:solve|cholesky|svd)\w*)", declared, re.MULTILINE))
    assert {name for name in helpers if not lacks_formula(f"aten::{name}")} == {"_linalg_check_errors"}


@pytest.mark.parametrize(
    "decompose",
    [
        torch.linalg.svd, torch.linalg.eigh, torch.linalg.eig, torch.linalg.qr, torch.linalg.cholesky, torch.linalg.inv,
        torch.linalg.lu, torch.linalg.ldl_factor, torch.linalg.slogdet, torch.geqrf,
    ],
)  # fmt: skip
def test_decompositions_have_no_flops_and_are_named(decompose: Callable[[torch.Tensor], object]):
    counts = deepscope.count_model(decompose, torch.eye(6))
    assert counts.total.flops == 0
    assert counts.without_formula

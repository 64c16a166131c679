"""FLOPs from shapes, worked out by hand; integration/test_flops.py holds them against torch's own counter."""

from __future__ import annotations

from typing import Any

import pytest

from deepscope.analysis.numbers.flop_formulas import FORMULAS
from deepscope.trace.names import CONVOLUTIONS
from trace_builder import TraceBuilder

FILE = "/home/me/train.py"


def one_operator(name: str, dims: list[Any], concrete: list[str] | None = None) -> TraceBuilder:
    more = {} if concrete is None else {"Concrete Inputs": concrete}
    return TraceBuilder().line(FILE, 10, "main", 0, 1000).op(name, 100, 500, dims=dims, **more)


QKV = [[2, 4, 16, 8], [2, 4, 32, 8], [2, 4, 32, 10]]
NARROW_KEYS = [[2, 4, 16, 8], [2, 2, 32, 8], [2, 2, 32, 8]]
CONVOLUTION = ["", "", "", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "2"]


@pytest.mark.parametrize(
    ("name", "dims", "concrete", "flops"),
    [
        ("aten::mm", [[3, 4], [4, 5]], None, 2 * 3 * 4 * 5),
        ("aten::addmm", [[5], [3, 4], [4, 5], [], []], None, 2 * 3 * 4 * 5),
        ("aten::bmm", [[7, 3, 4], [7, 4, 5]], None, 7 * 2 * 3 * 4 * 5),
        ("aten::baddbmm", [[7, 3, 5], [7, 3, 4], [7, 4, 5], [], []], None, 7 * 2 * 3 * 4 * 5),
        ("aten::_scaled_mm", [[3, 4], [4, 5], [], [], [], [], [], []], None, 2 * 3 * 4 * 5),
        ("aten::_grouped_mm", [[30, 4], [6, 4, 5], [6], [], []], None, 2 * 30 * 4 * 5),
        ("aten::_grouped_mm", [[6, 3, 4], [6, 4, 5], [], [], []], None, 6 * 2 * 3 * 4 * 5),
        ("aten::_grouped_mm", [[3, 40], [40, 5], [6], [], []], None, 2 * 3 * 40 * 5),
        ("aten::_grouped_mm", [[6, 3, 4], [4, 50], [6], [], []], None, 2 * 3 * 4 * 50),
        ("aten::convolution", [[2, 4, 9, 9], [8, 2, 3, 3], [8]], CONVOLUTION, 2 * 2 * (5 * 5) * (8 * 2 * 3 * 3)),
        (
            "aten::convolution",
            [[2, 4, 9], [4, 6, 3], [6]],
            ["", "", "", "[1]", "[0]", "[1]", "True", "[0]", "1"],
            2 * 2 * 9 * (4 * 6 * 3),
        ),
        ("aten::_scaled_dot_product_flash_attention", QKV, None, 2 * 2 * 4 * 16 * 32 * (8 + 10)),
        ("aten::_scaled_dot_product_efficient_attention", NARROW_KEYS, None, 2 * 2 * 4 * 16 * 32 * (8 + 8)),
        ("aten::_scaled_dot_product_cudnn_attention_backward", [[2, 4, 16, 10], *QKV], None,
         2 * 2 * 4 * 16 * 32 * (3 * 8 + 2 * 10)),
        ("aten::_flash_attention_forward", [[2, 16, 4, 8], [2, 32, 4, 8], [2, 32, 4, 8], [], []], None,
         2 * 2 * 4 * 16 * 32 * 16),
    ],
)  # fmt: skip
def test_flops_of_one_call(profile_of, at, name, dims, concrete, flops):
    profile = profile_of(one_operator(name, dims, concrete))
    assert at(profile, 10).flops == flops
    assert profile.totals.flops == flops
    assert [(one.name, one.flops) for one in profile.operators] == [(name, flops)]


def test_the_gradients_that_a_convolutions_mask_leaves_out_are_not_counted(profile_of):
    dims = [[2, 8, 5, 5], [2, 4, 9, 9], [8, 2, 3, 3], [], [], [], [], [], [], [], []]
    words = ["", "", "", "[8]", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "2"]
    of_input = 2 * 2 * (5 * 5) * (8 * 2 * 3 * 3)
    of_weight = 2 * 4 * (3 * 3) * (2 * 8 * 5 * 5)
    for mask, flops in (("[True, True, True]", of_input + of_weight), ("[False, True, True]", of_weight),
                        ("[True, False, False]", of_input), ("[False, False, True]", 0)):  # fmt: skip
        builder = one_operator("aten::convolution_backward", dims, [*words, mask])
        assert profile_of(builder).totals.flops == flops, mask


@pytest.mark.parametrize(
    ("name", "dims", "concrete"),
    [
        ("aten::mm", [[3, 4]], None),
        ("aten::mm", [[3, 4], [5, 6]], None),
        ("aten::mm", [["3", "4"], ["4", "5"]], None),
        ("aten::mm", {"a": 1}, None),
        ("aten::mm", [[3, -4], [-4, 5]], None),
        ("aten::mm", [[1 << 40, 1 << 40], [1 << 40, 1]], None),
        ("aten::convolution", [[2, 4, 9, 9], [8, 2, 3, 3], [8]], None),
        ("aten::convolution", [[2, 4, 9, 9], [8, 2, 3, 3], [8]], ["", "", "", "[0, 0]", "[1, 1]", "[1, 1]", "False"]),
        ("aten::_flash_attention_forward", [[90, 4, 8], [90, 4, 8], [90, 4, 8], [5], [5]], None),
        ("aten::add", [[3, 4], [3, 4]], None),
    ],
)
def test_a_call_whose_arguments_do_not_tell_has_no_flops(profile_of, name, dims, concrete):
    assert profile_of(one_operator(name, dims, concrete)).totals.flops == 0


class Asked(Exception):
    """A formula looked at a number among the arguments."""


class NoWords(list):
    def __getitem__(self, _place):
        raise Asked


@pytest.mark.parametrize("name", FORMULAS)
def test_the_reader_keeps_the_numbers_among_the_arguments_where_a_formula_asks_for_them(name):
    asked = False
    for shapes in ([[2, 4, 9, 9]] * 12, [[9, 9]] * 12):
        try:
            FORMULAS[name](shapes, NoWords([""] * 12))
        except Asked:
            asked = True
        except (LookupError, TypeError, ValueError):
            continue
    assert asked == (name in CONVOLUTIONS)


def test_an_operator_below_one_that_is_counted_counts_nothing(profile_of):
    dims = [[2, 4, 9, 9], [8, 2, 3, 3], [8]]
    builder = one_operator("aten::convolution", dims, CONVOLUTION)
    builder.op("aten::_convolution", 110, 400, dims=dims, **{"Concrete Inputs": CONVOLUTION})
    builder.op("aten::mm", 120, 100, dims=[[3, 4], [4, 5]])
    profile = profile_of(builder)
    assert {one.name: one.flops for one in profile.operators} == {
        "aten::convolution": 2 * 2 * 25 * 144,
        "aten::_convolution": 0,
        "aten::mm": 0,
    }


def test_an_operator_below_one_that_does_not_tell_is_counted(profile_of):
    builder = one_operator("aten::convolution", [[2, 4, 9, 9], [8, 2, 3, 3], [8]])
    assert profile_of(builder.op("aten::mm", 120, 100, dims=[[3, 4], [4, 5]])).totals.flops == 120


def test_backward_flops_stand_at_the_forward_line(profile_of, at):
    builder = TraceBuilder().line(FILE, 10, "main", 0, 500).line(FILE, 11, "main", 600, 2000)
    builder.op("aten::mm", 100, 100, sequence=2, dims=[[3, 4], [4, 5]]).flow(100, 1000)
    builder.backward("MmBackward0", 1000, 800, 2)
    builder.op("aten::mm", 1100, 100, tid=102, dims=[[4, 3], [3, 5]])
    profile = profile_of(builder)
    assert at(profile, 10).flops == 2 * 120
    assert profile.totals.flops == 2 * 120


def test_a_step_has_its_own_flops_alone(profile_of):
    builder = TraceBuilder().line(FILE, 10, "main", 0, 2000).step(1, 0, 1000).step(2, 1000, 1000)
    builder.op("aten::mm", 100, 10, dims=[[3, 4], [4, 5]]).op("aten::mm", 1100, 10, dims=[[3, 4], [4, 50]])
    assert [profile_of(builder, step=number).totals.flops for number in (1, 2)] == [120, 1200]

"""Bytes that must move, worked out by hand; integration/test_moved_bytes.py holds them against torch's own tensors."""

from __future__ import annotations

from typing import Any

import pytest

from deepscope.records import Operator, Profile
from trace_builder import TraceBuilder

FILE = "/home/me/train.py"
LONG = 100_000


def one_operator(name: str, dims: Any, types: Any, *, kernel: str = "kernel_of<float>", **more: Any) -> TraceBuilder:
    builder = (
        TraceBuilder().line(FILE, 10, "main", 0, 1000).op(name, 100, 500, dims=dims, **{"Input type": types}, **more)
    )
    return builder.kernel(kernel, 200, 2000, LONG)


def moved(profile: Profile, name: str) -> int | None:
    """Bytes of the operator; None where they are not known."""
    (one,) = (operator for operator in profile.operators if operator.name == name)
    return sum(rate.moved_bytes for rate in one.why.rates) if one.why.rates else None


FLOAT, HALF, BFLOAT = "float", "c10::Half", "c10::BFloat16"
CONVOLUTION = ["", "", "", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "2"]


@pytest.mark.parametrize(
    ("name", "dims", "types", "expected"),
    [
        ("aten::mm", [[30, 40], [40, 50]], [BFLOAT, BFLOAT], 2 * (30 * 40 + 40 * 50 + 30 * 50)),
        ("aten::addmm", [[50], [30, 40], [40, 50], [], []], [FLOAT] * 3 + ["Scalar"] * 2,
         4 * (50 + 30 * 40 + 40 * 50 + 30 * 50)),
        ("aten::bmm", [[7, 3, 4], [7, 4, 5]], [HALF, HALF], 2 * 7 * (12 + 20 + 15)),
        ("aten::baddbmm", [[7, 3, 5], [7, 3, 4], [7, 4, 5], [], []], [HALF] * 3 + ["Scalar"] * 2,
         2 * 7 * (12 + 20 + 15)),
        ("aten::mv", [[30, 40], [40]], [FLOAT, FLOAT], 4 * (30 * 40 + 40 + 30)),
        ("aten::addr", [[30, 40], [30], [40], [], []], [FLOAT] * 3 + ["Scalar"] * 2, 4 * (1200 + 30 + 40 + 1200)),
        ("aten::_int_mm", [[30, 40], [40, 50]], ["signed char"] * 2, 30 * 40 + 40 * 50 + 4 * 30 * 50),
        ("aten::add", [[8, 16], [16], []], [FLOAT, FLOAT, "Scalar"], 4 * (128 + 16 + 128)),
        ("aten::add_", [[8, 16], [16], []], [FLOAT, FLOAT, "Scalar"], 4 * (128 + 16 + 128)),
        ("aten::mul", [[8, 1], [1, 16]], [FLOAT, BFLOAT], 4 * 8 + 2 * 16 + 4 * 128),
        ("aten::mul", [[8, 16], []], [BFLOAT, "double"], 2 * 128 + 2 * 128),
        ("aten::mul", [[8, 16], []], ["long int", FLOAT], 8 * 128 + 4 * 128),
        ("aten::mul", [[8, 16], [8, 16]], [BFLOAT, HALF], 2 * 128 + 2 * 128 + 4 * 128),
        ("aten::mul", [[8, 16], [], [8, 16]], [FLOAT, "Scalar", FLOAT], 4 * (128 + 128)),  # the third is `out=`
        ("aten::eq", [[8, 16], []], [FLOAT, "Scalar"], 4 * 128 + 128),
        ("aten::where", [[8, 16], [8, 16], []], ["bool", HALF, HALF], 128 + 2 * 128 + 2 * 128),
        ("aten::relu", [[8, 16]], [FLOAT], 2 * 4 * 128),
        ("aten::sum", [[8, 16], [], [], []], [FLOAT, "ScalarList", "Scalar", ""], 4 * 128),
        ("aten::fill_", [[8, 16], []], [FLOAT, "Scalar"], 4 * 128),
        ("aten::copy_", [[8, 16], [8, 16], []], [FLOAT, BFLOAT, "Scalar"], 4 * 128 + 2 * 128),
        ("aten::native_layer_norm", [[8, 16], [], [16], [16], []], [BFLOAT, "ScalarList", FLOAT, FLOAT, "Scalar"],
         2 * 128 * 2 + 4 * 32),
        ("aten::native_dropout", [[8, 16], [], []], [BFLOAT, "Scalar", "Scalar"], 2 * 128 * 2 + 128),
        ("aten::embedding", [[1000, 64], [4, 8], [], [], []], [BFLOAT, "long int", "Scalar", "Scalar", "Scalar"],
         8 * 32 + 2 * 64 * (32 + 32)),
        ("aten::gather", [[8, 1000], [], [8, 5], []], [FLOAT, "Scalar", "long int", "Scalar"], 8 * 40 + 2 * 4 * 40),
        ("aten::_flash_attention_forward", [[2, 16, 4, 8], [2, 32, 4, 8], [2, 32, 4, 8], [], []],
         [BFLOAT] * 3 + ["", ""], 2 * 2 * 4 * 8 * (16 + 32 + 32 + 16)),
        ("aten::cat", [[[8, 16], [8, 4]], []], ["TensorList", "Scalar"], 2 * 4 * (128 + 32)),
        ("aten::_foreach_add_", [[[8], [4]], [[8], [4]], []], ["TensorList", "TensorList", "Scalar"], 4 * 3 * 12),
        ("aten::_fused_adamw_", [[[8]], [[8]], [[8]], [[8]], [], [[]]], ["TensorList"] * 6, 4 * (4 + 3) * 8),
        ("triton_poi_fused_add_0", [[8, 16], [8, 16], [8, 16], []], [BFLOAT] * 3 + ["Scalar"], 2 * 3 * 128),
    ],
)  # fmt: skip
def test_the_bytes_of_one_call(profile_of, name, dims, types, expected):
    assert moved(profile_of(one_operator(name, dims, types)), name) == expected


def test_a_convolution_writes_its_result(profile_of):
    dims = [[2, 4, 9, 9], [8, 2, 3, 3], [8]]
    builder = one_operator("aten::convolution", dims, [HALF] * 3, **{"Concrete Inputs": CONVOLUTION})
    expected = 2 * (2 * 4 * 81 + 8 * 2 * 9 + 8 + 2 * 8 * 25)
    assert moved(profile_of(builder), "aten::convolution") == expected


@pytest.mark.parametrize("groups", [1, 2])
def test_a_transposed_convolution_writes_its_result(profile_of, groups):
    dims = [[2, 4, 9, 5], [4, 6 // groups, 3, 2], []]
    words = ["", "", "", "[2, 3]", "[1, 0]", "[1, 2]", "True", "[1, 0]", str(groups)]
    builder = one_operator("aten::convolution", dims, [HALF] * 2 + [""], **{"Concrete Inputs": words})
    # of each dimension the first tap of the last place, the reach of the filter, less the padding, more the extra
    height, width = 8 * 2 + 3 - 2 * 1 + 1, 4 * 3 + 3 - 0 + 0
    expected = 2 * (2 * 4 * 9 * 5 + 4 * (6 // groups) * 6 + 2 * 6 * height * width)
    assert moved(profile_of(builder), "aten::convolution") == expected


def test_the_gradients_of_a_convolution_that_are_wanted_are_written(profile_of):
    dims = [[2, 8, 5, 5], [2, 4, 9, 9], [8, 2, 3, 3], *[[]] * 8]
    words = ["", "", "", "[8]", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "2"]
    grad, image, weight = 400, 648, 144
    for mask, elements in (("[True, True, True]", grad + 2 * image + 2 * weight),
                           ("[False, True, True]", grad + image + weight)):  # fmt: skip
        types = [HALF] * 3 + [""] * 8
        builder = one_operator("aten::convolution_backward", dims, types, **{"Concrete Inputs": [*words, mask]})
        assert moved(profile_of(builder), "aten::convolution_backward") == 2 * elements, mask


def test_what_was_expanded_is_read_once(profile_of):
    strides = {"Input Strides": [[16, 1], [0, 1], []]}
    builder = one_operator("aten::mul", [[8, 16], [8, 16], []], [FLOAT, FLOAT, "Scalar"], **strides)
    assert moved(profile_of(builder), "aten::mul") == 4 * (128 + 16 + 128)


def test_elements_of_lists_are_as_wide_as_the_kernels_name_says(profile_of):
    dims, types = [[[8, 16], [8, 4]], []], ["TensorList", "Scalar"]
    for kernel, width in (("CatArrayBatchedCopy<OpaqueType<2u>, unsigned int, 3>", 2), ("copy<c10::BFloat16>", 2),
                          ("copy<double>", 8)):  # fmt: skip
        builder = one_operator("aten::cat", dims, types, kernel=kernel)
        assert moved(profile_of(builder), "aten::cat") == 2 * width * 160, kernel
    assert moved(profile_of(one_operator("aten::cat", dims, types, kernel="some_kernel")), "aten::cat") is None


@pytest.mark.parametrize(
    ("name", "dims", "types"),
    [
        ("aten::my_operator", [[8, 16]], [FLOAT]),
        ("triton_poi_fused_slice_0", [[8, 16], [4, 16]], [FLOAT, FLOAT]),
        ("triton_tem_fused_mm_0", [[8, 16], [4, 16]], [FLOAT, FLOAT]),
        ("aten::mm", [[8, 16], [16, 8]], None),
        ("aten::mm", [[8, 16]], [FLOAT]),
        ("aten::mm", {"a": 1}, [FLOAT]),
        ("aten::mm", [["8", "16"], ["16", "8"]], [FLOAT, FLOAT]),
        ("aten::mm", [[8, -16], [-16, 8]], [FLOAT, FLOAT]),
        ("aten::relu", [[1 << 40, 1 << 40]], [FLOAT]),
        ("aten::relu", [[8, 16]], "float"),
        ("aten::relu", [[8, 16]], [["float"]]),
        ("aten::relu", [[True, 16]], [FLOAT]),
        ("aten::relu", 7, 8),
        ("aten::cat", [[[8, "a"]]], ["TensorList"]),
        ("aten::add", [[8, 16], [7]], [FLOAT, FLOAT]),
    ],
)
def test_arguments_of_another_form_tell_nothing(profile_of, name, dims, types):
    profile = profile_of(one_operator(name, dims, types))
    assert moved(profile, name) is None
    (line,) = (one for one in profile.lines if one.line == 10)
    assert line.why.unknown_ns == LONG


def test_an_operators_bytes_are_divided_among_its_kernels_exactly(profile_of):
    builder = one_operator("aten::relu", [[999, 1001]], [FLOAT]).kernel("second", 210, 2000 + LONG, 3 * LONG + 7)
    (one,) = (operator for operator in profile_of(builder).operators if operator.name == "aten::relu")
    assert [(rate.moved_bytes, rate.device_ns) for rate in one.why.rates] == [(8 * 999 * 1001, 4 * LONG + 7)]


def test_the_outermost_operator_with_flops_has_the_bytes_of_those_that_it_calls(profile_of):
    types = {"Input type": [HALF] * 3}
    builder = (
        TraceBuilder()
        .line(FILE, 10, "main", 0, 1000)
        .op("aten::convolution", 100, 500, dims=[[2, 4, 9, 9], [8, 2, 3, 3], [8]],
            **types, **{"Concrete Inputs": CONVOLUTION})
        .op("aten::copy_", 120, 50, dims=[[2, 4, 9, 9], [2, 4, 9, 9]], **types)
        .kernel("to_channels_last", 130, 2000, LONG)
        .op("aten::cudnn_convolution", 200, 100, dims=[[2, 4, 9, 9], [8, 2, 3, 3]], **types)
        .kernel("s1688fprop", 210, 2000 + LONG, LONG)
    )  # fmt: skip
    profile = profile_of(builder)
    whole: Operator = next(one for one in profile.operators if one.name == "aten::convolution")
    assert moved(profile, "aten::convolution") == 2 * (2 * 4 * 81 + 8 * 2 * 9 + 8 + 2 * 8 * 25)
    assert sum(rate.device_ns for rate in whole.why.rates) == 2 * LONG
    assert sum(rate.flops for rate in whole.why.rates) == whole.flops
    assert moved(profile, "aten::copy_") is None

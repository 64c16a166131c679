"""DS017, memory formats converted around convolutions."""

from __future__ import annotations

import pytest

from deepscope.analysis.findings.convolutions import is_conversion
from trace_builder import MAIN, TraceBuilder

FILE = "/home/me/train.py"
US = 1_000
CUDNN = "void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true, (cudnnKernelDataType_t)2>(int)"


@pytest.mark.parametrize(
    ("kernel", "converts"),
    [
        (CUDNN, True),
        ("void nhwcToNchwKernel<float, float, float, true, false>(int)", True),
        ("transpose_NCHW2CNHW_V2_2D_WG_off64", True),
        ("batched_transpose_32x32_half", True),
        ("sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckcrs_nchw_tilesize64x32x64", False),
        ("void cudnn::cnn::reduce_wgrad_nchw_helper<float, float>(int)", False),
        ("void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, int, 32, true>(int)", False),
        ("void at::native::(anonymous namespace)::max_pool_forward_nchw<float>(int)", False),
    ],
)
def test_what_converts_is_told_from_what_computes_in_a_format(kernel, converts):
    assert is_conversion(kernel) is converts


def convolution(
    *, contiguous: bool = True, copies: bool = True, gathers: str = "aten::new_empty_strided", size: int = 2
):
    """A step of 1,000 µs: a convolution that copies its weight for 100 µs, and gathers its gradient in 150."""
    builder = TraceBuilder().step(1, 0, 1000 * US).line(FILE, 5, "main", 0, 400 * US)
    builder.op(f"aten::conv{size}d", 0, 350 * US, sequence=1).op("aten::convolution", US, 340 * US, sequence=1)
    builder.op("aten::_convolution", 2 * US, 330 * US)
    if contiguous:
        builder.op("aten::contiguous", 5 * US, 100 * US)
        if copies:
            builder.op("aten::clone", 6 * US, 98 * US).op("aten::copy_", 10 * US, 90 * US)
    builder.op("aten::mkldnn_convolution", 120 * US, 200 * US)
    builder.line(FILE, 6, "main", 400 * US, 500 * US)
    builder.backward("ConvolutionBackward0", 410 * US, 200 * US, 1, tid=MAIN)
    builder.op("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", 620 * US, 150 * US)
    builder.op("torch::autograd::AccumulateGrad", 621 * US, 148 * US).op(gathers, 625 * US, 5 * US)
    return builder.op("aten::copy_", 632 * US, 100 * US)


def test_copies_in_a_convolution_and_behind_it_are_found_where_they_are_made(findings_of):
    first, second = sorted(findings_of(convolution(), "DS017"), key=lambda one: one.line)
    assert (first.line, first.evidence["converting_ns"], first.evidence["conversions"]) == (5, 100 * US, 1)
    assert (second.line, second.evidence["converting_ns"]) == (6, 150 * US)
    assert first.saving_ns == second.saving_ns == 0  # what the library converts in its own calls shows nowhere
    assert "channels_last" in first.remedy.text


def test_contiguous_tensors_and_gradients_that_are_kept_cost_nothing(findings_of):
    assert findings_of(convolution(copies=False, gathers="aten::detach"), "DS017") == []
    assert findings_of(convolution(contiguous=False, gathers="aten::detach"), "DS017") == []


def test_convolutions_in_one_dimension_have_no_other_format(findings_of):
    assert findings_of(convolution(size=1), "DS017") == []


def test_copies_outside_convolutions_are_not_found(findings_of):
    builder = TraceBuilder().step(1, 0, 1000 * US).line(FILE, 5, "main", 0, 400 * US)
    builder.op("aten::contiguous", 5 * US, 300 * US).op("aten::clone", 6 * US, 298 * US)
    assert findings_of(builder, "DS017") == []


def test_kernels_that_convert_are_found_on_a_device(findings_of):
    builder = TraceBuilder().step(1, 0, 1000 * US).line(FILE, 5, "main", 0, 400 * US)
    builder.op("aten::cudnn_convolution", 5 * US, 300 * US)
    builder.kernel(CUDNN, 10 * US, 100 * US, 60 * US).kernel("sm80_xmma_fprop", 20 * US, 160 * US, 400 * US)
    (found,) = findings_of(builder, "DS017")
    assert (found.line, found.evidence["converting_ns"], found.saving_ns) == (5, 60 * US, 0)


def test_kernels_of_that_name_that_another_operator_launched_are_not_found(findings_of):
    builder = TraceBuilder().step(1, 0, 1000 * US).line(FILE, 5, "main", 0, 400 * US).op("aten::mm", 5 * US, 300 * US)
    assert findings_of(builder.kernel("batched_transpose_32x32_half", 10 * US, 100 * US, 60 * US), "DS017") == []

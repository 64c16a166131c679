"""Kinds of operators: a closed list, told by names."""

import re
from pathlib import Path

import pytest

from deepscope.trace.kinds import OPERATOR_KINDS, operator_kind


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (
            "convolution",
            "aten::conv2d aten::_convolution aten::cudnn_convolution_backward_weight aten::conv_transpose1d",
        ),
        ("matmul", "aten::mm aten::addmm aten::_scaled_mm aten::linear aten::bmm aten::baddbmm_ aten::matmul aclnnMm"),
        (
            "attention",
            "aten::scaled_dot_product_attention aten::_flash_attention_forward flash_attn::_flash_attn_forward",
        ),
        ("normalisation", "aten::native_layer_norm aten::cudnn_batch_norm_backward aten::rms_norm aten::group_norm"),
        ("softmax", "aten::_softmax aten::_log_softmax_backward_data"),
        ("elementwise", "aten::add_ aten::mul aten::gelu_backward aten::threshold_backward aten::where aten::__and__"),
        ("reduction", "aten::sum aten::mean aten::linalg_vector_norm aten::argmax"),
        ("copy", "aten::copy_ aten::_to_copy aten::cat aten::clone aten::item"),
        ("embedding", "aten::embedding aten::embedding_dense_backward"),
        ("optimizer", "aten::_foreach_add_ aten::_fused_adamw_ Optimizer.step#SGD.step"),
        (
            "communication",
            "c10d::allreduce_ record_param_comms _c10d_functional::all_gather_into_tensor nccl:all_reduce",
        ),
        ("view", "aten::view aten::t aten::as_strided aten::expand aten::slice"),
        ("memory", "aten::empty aten::empty_strided aten::resize_"),
        ("fill", "aten::zeros aten::fill_ aten::ones_like aten::arange"),
        ("pooling", "aten::max_pool2d_with_indices aten::_adaptive_avg_pool2d"),
        ("indexing", "aten::index aten::gather aten::scatter_add_ aten::index_select"),
        ("random", "aten::randn aten::normal_ aten::bernoulli_"),
        ("dropout", "aten::native_dropout"),
        ("loss", "aten::nll_loss_forward aten::cross_entropy_loss aten::mse_loss_backward"),
        ("sort", "aten::topk aten::argsort"),
        ("recurrent", "aten::lstm aten::_cudnn_rnn aten::_thnn_fused_lstm_cell"),
        ("compiled", "triton_poi_fused_add_0 CompiledFunction"),
        ("autograd", "MmBackward0 torch::autograd::AccumulateGrad"),
        ("data", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__ aten::pin_memory"),
        ("other", "torchvision::nms my_package::operator"),
    ],
)
def test_each_name_is_of_its_kind(kind: str, names: str) -> None:
    assert {name: operator_kind(name) for name in names.split()} == dict.fromkeys(names.split(), kind)
    assert kind in OPERATOR_KINDS


def test_a_span_of_the_engine_is_autograds() -> None:
    assert operator_kind("autograd::engine::evaluate_function: ConvolutionBackward0") == "autograd"


def test_any_name_has_a_kind_of_the_list() -> None:
    for name in ("", "::", "a" * 100_000, "\x1b[2J", "aten::" + "_" * 5000, "(" * 3000):
        assert operator_kind(name) in OPERATOR_KINDS


def test_the_list_is_documented(repository: Path) -> None:
    text = (repository / "docs" / "report.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"`([a-z]+)`", text.partition("`--by type`")[2].partition("Names tell the kind")[0]))
    assert listed == set(OPERATOR_KINDS)

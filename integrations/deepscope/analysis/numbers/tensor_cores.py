"""What could use tensor cores and what does, by torch-tb-profiler's lists of operators and kernels.

https://github.com/pytorch/kineto/blob/main/tb_plugin/torch_tb_profiler/profiler/tensor_core.py
"""

from __future__ import annotations

from deepscope.analysis.array_ops.selection import Mask, named
from deepscope.trace.model import Trace

_KERNELS = (
    "h884",
    "s884",
    "h1688",
    "s1688",
    "hmma",
    "i8816",
    "16816",
    "dgrad_1x1_stride_2x2",
    "first_layer_wgrad_kernel",
    "conv1x1",
    "conv2d_c1_k1",
    "direct_group",
    "xmma_implicit_gemm",
    "xmma_sparse_conv",
    "xmma_warp_specialized_implicit_gemm",
    "xmma_gemm",
    "xmma_sparse_gemm",
    "c1688",
)
"""A kernel whose name holds one of these uses tensor cores."""
_OPERATORS = """
    _convolution conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d convolution
    cudnn_convolution cudnn_convolution_transpose prelu addmm addmv addr matmul mm mv linear addbmm baddbmm bmm
    chain_matmul linalg_multi_dot _thnn_fused_lstm_cell _thnn_fused_gru_cell lstm_cell gru_cell rnn_tanh_cell
    rnn_relu_cell cudnn_convolution_transpose_backward cudnn_convolution_backward_weight addmm_
    cudnn_convolution_transpose_backward_weight cudnn_convolution_transpose_backward_input
    cudnn_convolution_backward_input cudnn_convolution_backward
"""
_NODES = """
    CudnnConvolutionBackward BmmBackward0 CudnnConvolutionTransposeBackward MmBackward AddmvBackward MvBackward
    AddmmBackward AddbmmBackward
"""
_ELIGIBLE = frozenset([f"aten::{name}" for name in _OPERATORS.split()] + _NODES.split())
"""Operators, and autograd's nodes, that could use tensor cores."""


def kernels_with_tensor_cores(trace: Trace, kernels: Mask) -> Mask:
    """Which of some kernels (events) use tensor cores; shape (n,)."""
    return named(trace, kernels, lambda name: any(part in name for part in _KERNELS))


def operators_for_tensor_cores(trace: Trace, operators: Mask) -> Mask:
    """Which of some operators (events) could use them by themselves, whatever they call; shape (n,)."""
    return named(trace, operators, _ELIGIBLE.__contains__)

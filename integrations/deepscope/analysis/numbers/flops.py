"""FLOPs of operators: from the shapes of their arguments; each product counted once."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np

from deepscope.analysis.array_ops.selection import Mask, named, of_kind
from deepscope.analysis.numbers.flop_formulas import FORMULAS, LARGEST, UNREADABLE, flops_of_call, lacks_formula
from deepscope.analysis.ownership.owners import Operators
from deepscope.trace.arrays import distinct_places, distinct_values, nearest, pick, summable
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64, Trace
from deepscope.trace.names import CONVOLUTIONS


class OperatorFlops(NamedTuple):
    """FLOPs of operators by their position in `Operators.nodes`; arrays of shape (k,)."""

    counted: Int64
    """0 where an operator around it has some already."""
    unknown: Mask
    """Which multiply, have recorded shapes, and no formula tells how much: neither of them, nor of one around or within
    them."""


def flops_of_operators(trace: Trace, operators: Operators) -> OperatorFlops:
    """FLOPs by operator; of nested ones (`aten::convolution` calls `aten::_convolution`) the outermost known counts."""
    flops = np.full(len(operators.nodes), -1, np.int64)
    on_cpu = of_kind(trace, Kind.OPERATOR)
    rows = np.flatnonzero(named(trace, on_cpu, FORMULAS.__contains__)[operators.nodes])
    found = _from_shapes(trace, operators.nodes[rows])
    flops[rows] = np.where((found < 0) | summable(found, LARGEST), found, 0)
    known = flops >= 0
    multiplies = named(trace, on_cpu, lambda name: name in FORMULAS or lacks_formula(name))[operators.nodes]
    counts = flops > 0
    inner = pick(nearest(operators.caller, counts), operators.caller) >= 0
    unknown = multiplies & ~known & (trace.events.shapes[operators.nodes] >= 0)
    if unknown.any():
        above = pick(nearest(operators.caller, known), operators.caller) >= 0
        unknown &= ~above & ~_around(operators.caller, known)
    return OperatorFlops(np.where(counts & ~inner, flops, 0), unknown)


def _around(caller: Int64, chosen: Mask) -> Mask:
    """Which nodes have a chosen one below them."""
    found = np.zeros(len(caller), np.bool_)
    at = caller[chosen]
    while len(at := distinct_values(at[at >= 0])):
        found[at] = True
        at = caller[at]
    return found


def _from_shapes(trace: Trace, events: Int64) -> Int64:
    """FLOPs of operators that have a formula, each distinct call worked out once; -1 where unknown."""
    columns = trace.events
    width = len(trace.strings) + 1
    shaped, place = distinct_places(columns.name[events].astype(np.int64) * width + columns.shapes[events] + 1)
    worded, place_of_words = distinct_places(place * width + columns.concrete[events] + 1)
    calls, row = distinct_places(place_of_words * width + columns.strides[events] + 1)
    values = []
    for call in calls.tolist():
        words = int(worded[call // width])
        name, shapes = divmod(int(shaped[words // width]), width)
        values.append(_flops_of_call(trace.strings, name, shapes, words % width, call % width))
    return np.array(values, np.int64)[row]


def _flops_of_call(strings: list[str], name: int, shapes: int, concrete: int, strides: int) -> int:
    """`shapes`, `concrete` and `strides` are indexes into `strings` from 1 on, 0 for none."""
    if not shapes:
        return -1
    try:
        words = json.loads(strings[concrete - 1]) if concrete else []
        dims = json.loads(strings[shapes - 1])
        if strides and strings[name] not in CONVOLUTIONS:
            dims = _dense(dims, json.loads(strings[strides - 1]))
        found = flops_of_call(strings[name], dims, words)
    except UNREADABLE:
        return -1
    return -1 if found is None else found


def _dense(dims: list[Any], strides: list[Any]) -> list[Any]:
    """The shapes; None for sparse and nested tensors, of which torch writes no strides."""
    missing = [()] * (len(dims) - len(strides))
    return [
        None if sizes and not steps and isinstance(sizes[0], int) else sizes
        for sizes, steps in zip(dims, [*strides, *missing], strict=True)
    ]


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

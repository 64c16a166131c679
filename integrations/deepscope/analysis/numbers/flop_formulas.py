"""FLOPs of one call of an operator, from the shapes of its arguments.

A multiplication and an addition are two; biases, softmax and element-wise work are not counted. Where
torch.utils.flop_counter has a formula, it is this one, but for gradients of grouped convolutions and causal attention:
https://github.com/pytorch/pytorch/blob/main/torch/utils/flop_counter.py
"""

from __future__ import annotations

import re
from collections.abc import Callable
from math import prod
from typing import Any

from deepscope.trace.kinds import operator_kind

Shapes = list[Any]
"""One entry an argument: its sizes, `[]` for a number or what is no tensor, a list of sizes for a list of tensors."""
Words = list[str]
"""One entry an argument: the value of a number, a flag or a list of numbers as a word; "" for all else."""
Formula = Callable[[Shapes, Words], int]
"""Raises IndexError, TypeError or ValueError for arguments of a form that it does not know."""
_Spans = Callable[[Words, int, int], int]
"""From the words of a call, the length of the queries and that of the keys to the pairs that count."""


def pairs_within(rows: int, columns: int, *, shift: int = 0, left: int = -1, right: int = -1) -> int:
    """Pairs of query i and key j with `i + shift - left <= j <= i + shift + right`; -1 stands for no bound."""
    upper = _clamped_sum(rows, shift + right + 1, columns) if right >= 0 else rows * columns
    lower = _clamped_sum(rows, shift - left, columns) if left >= 0 else 0
    return max(upper - lower, 0)


def _clamped_sum(count: int, start: int, most: int) -> int:
    """The sum of `min(max(start + i, 0), most)` over i below `count`."""
    first = min(max(-start, 0), count)
    full = min(max(most - start, first), count)
    rising = full - first
    return rising * start + (first + full - 1) * rising // 2 + (count - full) * most


def _flagged(place: int) -> _Spans:
    """`is_causal`: query i meets the keys up to i."""
    return lambda words, rows, columns: pairs_within(rows, columns, right=0 if _word(words, place) == "True" else -1)


def _window(causal: int, left: int, right: int) -> _Spans:
    """FlashAttention: the last query meets the last key, a causal call has no key after it, and windows bound both."""

    def pairs(words: Words, rows: int, columns: int) -> int:
        before, after = (_bound(_word(words, place)) for place in (left, right))
        after = 0 if _word(words, causal) == "True" else after
        return pairs_within(rows, columns, shift=columns - rows, left=before, right=after)

    return pairs


def _mask_type(place: int) -> _Spans:
    """The `custom_mask_type` of memory-efficient attention: 1 begins at the first key, 2 ends at the last."""

    def pairs(words: Words, rows: int, columns: int) -> int:
        kind = _word(words, place)
        shift = columns - rows if kind == "2" else 0
        return pairs_within(rows, columns, shift=shift, right=0 if kind in ("1", "2") else -1)

    return pairs


def _word(words: Words, place: int) -> str:
    """A word of the call; "" where the trace does not tell."""
    return words[place] if place < len(words) else ""


def _bound(word: str) -> int:
    return int(word) if word.lstrip("-").isdecimal() else -1


def _attention(pairs: int, width: int, value_width: int) -> int:
    """Scores, and their product with the values."""
    return 2 * pairs * (width + value_width)


def _attention_backward(pairs: int, width: int, value_width: int) -> int:
    """Scores anew, gradients of scores and values, then those of query and key: five products."""
    return 2 * pairs * (3 * width + 2 * value_width)


def _fused(first: int, products: Callable[[int, int, int], int], spans: _Spans, *, heads: int = 1) -> Formula:
    """Attention over query, key and value from the place `first` on; several heads of the query may share a key's.

    `heads` is the dimension of the heads: 1, or 2 where the sequence stands in front of them.
    """

    def flops(shapes: Shapes, words: Words) -> int:
        query, key, value = shapes[first : first + 3]
        if not len(query) == len(key) == len(value) == 4:
            raise ValueError("no heads, or sequences of varying length")
        pairs = spans(words, query[3 - heads], key[3 - heads])
        return products(query[0] * query[heads] * pairs, query[3], value[3])

    return flops


def _of_equal_length(lengths: int, formula: Formula) -> Formula:
    """Where offsets of sequences are given, their lengths are in a tensor, which a trace does not hold."""

    def flops(shapes: Shapes, words: Words) -> int:
        if shapes[lengths]:
            raise ValueError("sequences of varying length")
        return formula(shapes, words)

    return flops


_SDPA = {
    "flash_attention": (4, 11),
    "efficient_attention": (6, 11),
    "cudnn_attention": (6, 14),
    "flash_attention_for_cpu": (4, 7),
    "fused_attention_overrideable": (5, 13),
}
"""The places of `is_causal`, forward and backward."""

ATTENTION: dict[str, Formula] = {
    **{
        f"aten::_scaled_dot_product_{name}": _fused(0, _attention, _flagged(place))
        for name, (place, _) in _SDPA.items()
    },
    **{
        f"aten::_scaled_dot_product_{name}_backward": _fused(1, _attention_backward, _flagged(place))
        for name, (_, place) in _SDPA.items()
    },
    "aten::_flash_attention_forward": _of_equal_length(3, _fused(0, _attention, _window(8, 11, 12), heads=2)),
    "aten::_flash_attention_backward": _of_equal_length(
        6, _fused(1, _attention_backward, _window(11, 15, 16), heads=2)
    ),
    "aten::_efficient_attention_forward": _of_equal_length(4, _fused(0, _attention, _mask_type(9), heads=2)),
    "aten::_efficient_attention_backward": _of_equal_length(6, _fused(1, _attention_backward, _mask_type(14), heads=2)),
    "aten::_cudnn_attention_forward": _of_equal_length(4, _fused(0, _attention, _flagged(10))),
    "aten::_cudnn_attention_backward": _of_equal_length(9, _fused(1, _attention_backward, _flagged(14))),
    "flash_attn::_flash_attn_forward": _fused(0, _attention, _window(5, 6, 7), heads=2),
    "flash_attn::_flash_attn_backward": _fused(1, _attention_backward, _window(11, 12, 13), heads=2),
}
"""By the operator's name. A mask that is a tensor takes nothing off; where the words of a call are not known, all
pairs count."""

UNREADABLE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What formulas raise for arguments of another version's form, or of a trace that was tampered with."""
LARGEST = 2**60
"""Of one call, operations or bytes: what seems to be more is not known."""


def _product(a: list[int], b: list[int]) -> int:
    """A product of matrices, batched or not; the batch stands in front."""
    if a[-1] != b[-2] or a[:-2] != b[:-2]:
        raise ValueError("no product of these shapes")
    return 2 * prod(a) * b[-1]


def _grouped(a: list[int], b: list[int]) -> int:
    """Groups of products: each row (or, where both are flat, each inner place) belongs to one group only."""
    if len(a) == len(b) == 3:
        return _product(a, b)
    rows, inner, columns = a[-2], a[-1], b[-1]
    if len(a) == 3:  # groups times rows, the columns shared out among the groups
        return 2 * rows * inner * columns
    return 2 * rows * inner * columns if inner == b[-2] else _unknown()


def _unknown() -> int:
    raise ValueError("not known from shapes")


def _convolved(x: list[int], weight: list[int], spatial: list[int]) -> int:
    """Every place of `spatial` times the filter, for every sample and pair of channels."""
    return 2 * x[0] * prod(spatial) * prod(weight)


def numbers_in(word: str, count: int) -> list[int]:
    """`[2, 2]` as numbers, a single one repeated."""
    values = [int(part) for part in word.strip("[]() ").split(",") if part.strip()]
    return values * count if len(values) == 1 else values


def output_sizes(x: list[int], weight: list[int], stride: str, padding: str, dilation: str) -> list[int]:
    """Spatial sizes of a convolution's result, https://pytorch.org/docs/stable/generated/torch.nn.Conv2d.html."""
    spatial, kernel = x[2:], weight[2:]
    steps, pads, gaps = (numbers_in(word, len(spatial)) for word in (stride, padding, dilation))
    return [
        (size + 2 * pad - gap * (width - 1) - 1) // step + 1
        for size, width, step, pad, gap in zip(spatial, kernel, steps, pads, gaps, strict=True)
    ]


def _convolution(stride: int, padding: int, dilation: int, transposed: int | None) -> Formula:
    """A convolution, by the places of its arguments; a transposed one works at each place of its input."""

    def flops(shapes: Shapes, words: Words) -> int:
        x, weight = shapes[0], shapes[1]
        if transposed is not None and words[transposed] == "True":
            return _convolved(x, weight, x[2:])
        return _convolved(x, weight, output_sizes(x, weight, words[stride], words[padding], words[dilation]))

    return flops


def _transposed(shapes: Shapes, _words: Words) -> int:
    return _convolved(shapes[0], shapes[1], shapes[0][2:])


def _convolution_backward(shapes: Shapes, words: Words) -> int:
    """`(grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed, …, output_mask)`.

    Each gradient takes the multiplications of the forward pass; one that the mask leaves out takes none. Grouped ones
    are no exception: a weight meets one channel of the input (torch's FlopCounterMode counts all groups for each).
    """
    grad, x, weight = shapes[:3]
    forward = _convolved(x, weight, x[2:] if words[7] == "True" else grad[2:])
    return forward * _wanted(words[10], 2)


def _wanted(mask: str, count: int) -> int:
    """How many of the first gradients a mask asks for: `[True, False, True]`."""
    return sum(part.strip() == "True" for part in mask.strip("[]").split(",")[:count])


def _of(first: int, second: int, formula: Callable[[list[int], list[int]], int] = _product) -> Formula:
    return lambda shapes, _words: formula(shapes[first], shapes[second])


def _matrix_vector(matrix: list[int], vector: list[int]) -> int:
    return 2 * prod(matrix) if matrix[1:] == vector else _unknown()


def _dot(a: list[int], b: list[int]) -> int:
    return 2 * prod(a) if len(a) == 1 and a == b else _unknown()


def _outer(a: list[int], b: list[int]) -> int:
    return 2 * a[0] * b[0] if len(a) == len(b) == 1 else _unknown()


def _distances(a: list[int], b: list[int]) -> int:
    """Euclidean distances by one product: the norms of the rows are two more columns."""
    return 2 * prod(a[:-1]) * b[-2] * (a[-1] + 2) if a[:-2] == b[:-2] and a[-1] == b[-1] else _unknown()


def _trilinear(shapes: Shapes, words: Words) -> int:
    """`(i1, i2, i3, expand1, expand2, expand3, sumdim, unroll_dim)`, as `bilinear` and its gradients call it.

    For each place of `unroll_dim` it multiplies the first two, then the result and the third:
    https://github.com/pytorch/pytorch/blob/main/aten/src/ATen/native/Linear.cpp
    """
    expanded = [set(numbers_in(word, 1)) for word in words[3:6]]
    summed, unroll = set(numbers_in(words[6], 1)), int(words[7])
    rank = len(shapes[0]) + len(expanded[0])
    sizes = []
    for shape, places in zip(shapes[:3], expanded, strict=True):
        own = iter(shape)
        sizes.append([1 if place in places else next(own) for place in range(rank)])
    count = max(one[unroll] for one in sizes)
    first, second, third = ([1 if place == unroll else size for place, size in enumerate(one)] for one in sizes)
    early = summed & expanded[2]
    between, flops = _contracted(first, second, early)
    return count * (flops + _contracted(between, third, summed - early)[1])


def _contracted(a: list[int], b: list[int], summed: set[int]) -> tuple[list[int], int]:
    """Sizes and FLOPs of the product of two tensors of one rank, summed over some places; without any it is none."""
    inner = prod(a[place] for place in summed if a[place] == b[place])
    kept = [1 if place in summed else max(pair) for place, pair in enumerate(zip(a, b, strict=True))]
    return kept, 2 * prod(kept) * inner if inner > 1 else 0


def _recurrent(
    matrices: Callable[[Shapes], list[Any]], gradients: Callable[[Words], int] = lambda _words: 1
) -> Formula:
    """Layers of LSTM, GRU or RNN: every matrix of weights meets every step of every sequence.

    Args:
        matrices: the sizes of the weights.
        gradients: how many products of the forward pass's size a call takes.
    """

    def flops(shapes: Shapes, words: Words) -> int:
        weights = [sizes for sizes in matrices(shapes) if len(sizes) == 2]
        if not weights:
            return _unknown()
        return 2 * int(prod(shapes[0][:-1])) * sum(map(prod, weights)) * gradients(words)

    return flops


def _listed(shapes: Shapes) -> list[list[int]]:
    return list(shapes[1])


def _of_layer(shapes: Shapes) -> list[list[int]]:
    """oneDNN's `(input, weight, weight, bias, bias, …)`."""
    return shapes[1:3]


def _with_weights(words: Words) -> int:
    """cuDNN and MIOpen always work the input's gradient out; `output_mask`, the last word, asks for the weights'."""
    mask = words[-1].strip("[]").split(",")
    return 1 + (mask[3].strip() == "True")


FORMULAS: dict[str, Formula] = {
    "aten::mm": _of(0, 1),
    "aten::addmm": _of(1, 2),
    "aten::addmm_": _of(1, 2),
    "aten::_addmm_activation": _of(1, 2),
    "aten::bmm": _of(0, 1),
    "aten::baddbmm": _of(1, 2),
    "aten::baddbmm_": _of(1, 2),
    "aten::_scaled_mm": _of(0, 1),
    "aten::_scaled_mm_v2": _of(0, 1),
    "aten::_grouped_mm": _of(0, 1, _grouped),
    "aten::_scaled_grouped_mm": _of(0, 1, _grouped),
    "aten::_scaled_grouped_mm_v2": _of(0, 1, _grouped),
    "aten::convolution": _convolution(3, 4, 5, 6),
    "aten::_convolution": _convolution(3, 4, 5, 6),
    "aten::convolution_overrideable": _convolution(3, 4, 5, 6),
    "aten::cudnn_convolution": _convolution(3, 2, 4, None),
    "aten::miopen_convolution": _convolution(4, 3, 5, None),
    "aten::mkldnn_convolution": _convolution(4, 3, 5, None),
    "aten::miopen_depthwise_convolution": _convolution(4, 3, 5, None),
    **{f"aten::{library}_convolution_relu": _convolution(3, 4, 5, None) for library in ("cudnn", "miopen")},
    **{f"aten::{library}_convolution_add_relu": _convolution(5, 6, 7, None) for library in ("cudnn", "miopen")},
    "aten::convolution_backward": _convolution_backward,
    "aten::convolution_backward_overrideable": lambda shapes, words: _convolution_backward(
        shapes, [*words[:3], "", *words[3:]]
    ),
    "aten::cudnn_convolution_transpose": _transposed,
    "aten::miopen_convolution_transpose": _transposed,
    "aten::mv": _of(0, 1, _matrix_vector),
    "aten::addmv": _of(1, 2, _matrix_vector),
    "aten::addmv_": _of(1, 2, _matrix_vector),
    "aten::dot": _of(0, 1, _dot),
    "aten::vdot": _of(0, 1, _dot),
    "aten::addr": _of(1, 2, _outer),
    "aten::addbmm": _of(1, 2),
    "aten::addbmm_": _of(1, 2),
    "aten::_int_mm": _of(0, 1),
    "aten::_euclidean_dist": _of(0, 1, _distances),
    "aten::_trilinear": _trilinear,
    "aten::_cudnn_rnn": _recurrent(_listed),
    "aten::_cudnn_rnn_backward": _recurrent(_listed, _with_weights),
    "aten::miopen_rnn": _recurrent(_listed),
    "aten::miopen_rnn_backward": _recurrent(_listed, _with_weights),
    "aten::mkldnn_rnn_layer": _recurrent(_of_layer),
    "aten::mkldnn_rnn_layer_backward": _recurrent(_of_layer, lambda _words: 2),
    **ATTENTION,
}
"""By the operator's name as a trace has it."""


_OTHERS = re.compile(
    r"aten::(?:_[cp]dist_\w+|_fft_\w+|sspaddmm|hspmm|_?(?:cslt_)?sparse_\w*(?:mm|matmul|linear)\w*|"
    r"mkldnn_linear\w*|_weight_int\w+|_dyn_quant_matmul\w*|quantized_\w+|conv_tbc\w*|_nnpack_spatial_\w+|"
    r"_native_multi_head_attention|_transformer_encoder_layer_fwd|_triton_\w+_attention|"
    r"_scaled_dot_product_attention_math_for_mps|"
    r"_?linalg_(?:cholesky|det|eigh?|eigvalsh?|householder_product|inv|ldl_factor|ldl_solve|lstsq|lu|lu_factor|lu_solve|qr|"
    r"slogdet|solve|solve_triangular|svd|svdvals|tensorinv|tensorsolve)(?:_ex|_helper|_out_helper_)?|"
    r"_?(?:cholesky|cholesky_inverse|cholesky_solve|inverse|lu_solve|qr|solve|svd|syevd|symeig|triangular_solve)(?:_helper)?|"
    r"eig|geqrf|logdet|lstsq|_lu_with_info|orgqr|ormqr|det|_det_lu_based_helper|slogdet|_spsolve)"
)
"""Operators of aten that multiply much and have no formula: those of native_functions.yaml from torch 1.8 on, to 2.13.

Decompositions and solvers had a `_…_helper` each until torch 1.12, and are `_linalg_…` or `linalg_…_ex` since. Torch
2.0 has removed `symeig`, `eig`, `solve` and `lstsq`: https://github.com/pytorch/pytorch/releases/tag/v2.0.0
"""
_FOREIGN_KINDS = frozenset({"attention", "convolution", "matmul", "recurrent"})


def lacks_formula(name: str) -> bool:
    """Whether an operator multiplies by its name and has no formula: some of aten, products and attention of others."""
    if name in FORMULAS or "::" not in name:
        return False
    if name.startswith("aten::"):
        return _OTHERS.fullmatch(name) is not None
    return operator_kind(name) in _FOREIGN_KINDS


def flops_of_call(name: str, shapes: Shapes, words: Words) -> int | None:
    """FLOPs of one call of an operator; None where it has no formula, or its arguments do not tell."""
    formula = FORMULAS.get(name)
    if formula is None:
        return None
    try:
        flops = formula(shapes, words)
    except UNREADABLE:
        return None
    return flops if isinstance(flops, int) and 0 <= flops < LARGEST else None

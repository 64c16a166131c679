"""Bytes that one call of an operator must at least move: each input is read once, each result written once.

Results are not among the arguments of a trace, so each family of operators has its formula. An operator that is not
here has none: its sizes do not say how much of them it touches.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from math import prod

from deepscope.analysis.numbers.arguments import Argument, Tensor, broadcast, promoted
from deepscope.analysis.numbers.flop_formulas import LARGEST, UNREADABLE, Words, numbers_in, output_sizes

ByteFormula = Callable[[list[Argument], Words], int]
"""Raises AttributeError, IndexError, TypeError or ValueError for arguments of a form that it does not know."""


def _tensor(given: list[Argument], place: int) -> Tensor:
    one = given[place]
    if not isinstance(one, Tensor):
        raise TypeError("no tensor")
    return one


def _tensors(given: list[Argument], count: int) -> list[Tensor]:
    """The tensors among the first arguments."""
    return [one for one in given[:count] if isinstance(one, Tensor)]


def _read(tensors: list[Tensor]) -> int:
    """One without dimensions is a number, mostly one of Python's."""
    return sum(one.size_bytes for one in tensors if one.sizes)


def _read_at(given: list[Argument], place: int | None) -> int:
    """The same of one argument, if it is a tensor."""
    return 0 if place is None else _read(_tensors(given[place : place + 1], 1))


def _broadcast(tensors: list[Tensor]) -> int:
    """Elements of the result of element-wise arithmetic."""
    return prod(broadcast(*(one.sizes for one in tensors)))


def _pointwise(count: int, *, width: int | None = None) -> ByteFormula:
    """Reads tensors among the first `count` arguments, and writes the broadcast of them (`width` bytes an element)."""

    def moved(given: list[Argument], _words: Words) -> int:
        tensors = _tensors(given, count)
        return _read(tensors) + _broadcast(tensors) * (width or promoted(tensors).width)

    return moved


def _in_place(count: int) -> ByteFormula:
    """The same, written to the first argument."""

    def moved(given: list[Argument], _words: Words) -> int:
        return _read(_tensors(given, count)) + _tensor(given, 0).size_bytes

    return moved


def _selected(given: list[Argument], _words: Words) -> int:
    """`where(condition, a, b)`: the condition is no part of the result's type."""
    tensors = _tensors(given, 3)
    values = tensors[1:] or tensors
    return _read(tensors) + _broadcast(tensors) * promoted(values).width


def _reads(*places: int) -> ByteFormula:
    """Reads these arguments; the result is small, or its size is not known."""
    return lambda given, _words: _read([one for place in places if isinstance(one := given[place], Tensor)])


def _writes(place: int) -> ByteFormula:
    return lambda given, _words: _tensor(given, place).size_bytes


def _like(place: int, *reads: int) -> ByteFormula:
    """Reads these arguments, those that are there, and writes one like that at `place`."""
    read = _reads(*reads)
    return lambda given, words: read(given, words) + _tensor(given, place).elements * _tensor(given, place).width


def _dropout(given: list[Argument], words: Words) -> int:
    """Beside the result it writes a mask of a byte an element."""
    return _like(0, 0)(given, words) + _tensor(given, 0).elements


def _copy(given: list[Argument], _words: Words) -> int:
    """`copy_(self, source)`."""
    return _tensor(given, 1).size_bytes + _tensor(given, 0).elements * _tensor(given, 0).width


def _product(
    first: int,
    second: int,
    added: int | None = None,
    *,
    width: int | None = None,
    elements: Callable[[Tensor, Tensor], int] = lambda a, b: prod(a.sizes[:-1]) * b.sizes[-1],
) -> ByteFormula:
    """A product of matrices, batched or not, to which another argument may be added.

    Its result has `elements`, of `width` bytes (those of the first factor by default).
    """

    def moved(given: list[Argument], _words: Words) -> int:
        a, b = _tensor(given, first), _tensor(given, second)
        return a.size_bytes + b.size_bytes + _read_at(given, added) + elements(a, b) * (width or a.width)

    return moved


def _matrix_vector(matrix: int, vector: int, added: int | None = None) -> ByteFormula:
    return _product(matrix, vector, added, elements=lambda a, _: a.sizes[0])


def _convolution(stride: int, padding: int, dilation: int, transposed: int | None, bias: int | None) -> ByteFormula:
    """A convolution, by the places of its arguments; behind `transposed` stand `output_padding` and `groups`."""

    def moved(given: list[Argument], words: Words) -> int:
        x, weight = _tensor(given, 0), _tensor(given, 1)
        read = x.size_bytes + weight.size_bytes + _read_at(given, bias)
        if transposed is not None and words[transposed] == "True":
            places = (stride, padding, dilation, transposed + 1, transposed + 2)
            return read + _transposed_result(x, weight, [words[place] for place in places])
        spatial = output_sizes(list(x.sizes), list(weight.sizes), words[stride], words[padding], words[dilation])
        return read + x.sizes[0] * weight.sizes[0] * prod(spatial) * x.width

    return moved


def _transposed_convolution(padding: int, bias: int | None) -> ByteFormula:
    """A library's `(…, padding, output_padding, stride, dilation, groups, …)`."""

    def moved(given: list[Argument], words: Words) -> int:
        x, weight = _tensor(given, 0), _tensor(given, 1)
        read = x.size_bytes + weight.size_bytes + _read_at(given, bias)
        places = (padding + 2, padding, padding + 3, padding + 1, padding + 4)
        return read + _transposed_result(x, weight, [words[place] for place in places])

    return moved


def _transposed_result(x: Tensor, weight: Tensor, words: Words) -> int:
    """Bytes, by stride, padding, dilation, output padding and groups:
    https://pytorch.org/docs/stable/generated/torch.nn.ConvTranspose2d.html."""
    steps, pads, gaps, more = (numbers_in(word, len(x.sizes) - 2) for word in words[:4])
    spatial = [
        (size - 1) * step - 2 * pad + gap * (width - 1) + extra + 1
        for size, width, step, pad, gap, extra in zip(
            x.sizes[2:], weight.sizes[2:], steps, pads, gaps, more, strict=True
        )
    ]
    return x.sizes[0] * weight.sizes[1] * int(words[4]) * int(prod(spatial)) * x.width


def _convolution_backward(given: list[Argument], words: Words) -> int:
    """`(grad_output, input, weight, …, output_mask)`: what a wanted gradient needs, and the gradient itself."""
    grad, x, weight = (_tensor(given, place) for place in range(3))
    wants = [part.strip() == "True" for part in words[10].strip("[]").split(",")[:2]]
    moved = grad.size_bytes
    if wants[0]:
        moved += weight.size_bytes + x.elements * x.width
    if wants[1]:
        moved += x.size_bytes + weight.elements * weight.width
    return moved


def _attention(given: list[Argument], _words: Words) -> int:
    """Query, key and value are read; the result has the query's sizes, but the value's width."""
    query, key, value = (_tensor(given, place) for place in range(3))
    result = prod(query.sizes[:-1]) * value.sizes[-1] * query.width
    return query.size_bytes + key.size_bytes + value.size_bytes + result


def _attention_backward(given: list[Argument], _words: Words) -> int:
    """`(grad_out, query, key, value, out or another, …)`: four tensors are read, three gradients written."""
    grad, *products = (_tensor(given, place) for place in range(4))
    return grad.size_bytes + sum(one.size_bytes + one.elements * one.width for one in products)


def _embedding(given: list[Argument], _words: Words) -> int:
    """`(weight, indices)`: a row for each index, at most all rows."""
    weight, indices = _tensor(given, 0), _tensor(given, 1)
    row = weight.sizes[1] * weight.width
    return indices.size_bytes + (indices.elements + min(indices.elements, weight.sizes[0])) * row


def _index_select(given: list[Argument], words: Words) -> int:
    """`(self, dimension, index)`."""
    source, index = _tensor(given, 0), _tensor(given, 2)
    chosen = source.elements // max(source.sizes[int(words[1])], 1) * index.elements
    return index.size_bytes + 2 * chosen * source.width


def _gather(given: list[Argument], _words: Words) -> int:
    """`(self, dimension, index)`: one element is read and written for each index."""
    return _tensor(given, 2).size_bytes + 2 * _tensor(given, 2).elements * _tensor(given, 0).width


def _lists(given: list[Argument]) -> list[list[Tensor]]:
    return [one for one in given if isinstance(one, list)]


def _list_bytes(one: Argument) -> int:
    if not isinstance(one, list):
        raise TypeError("no list of tensors")
    return _read(one)


def _of_lists(count: int, *, reads_first: bool = True) -> ByteFormula:
    """`_foreach_…`: reads the lists among the first `count` arguments, and writes one like the first."""

    def moved(given: list[Argument], _words: Words) -> int:
        first = _list_bytes(given[0])
        others = sum(map(_read, _lists(given[1:count])))
        return first * (2 if reads_first else 1) + others

    return moved


def _fused_optimizer(written: tuple[int, ...], read: tuple[int, ...]) -> ByteFormula:
    """Lists of parameters, gradients and states, by their places; some may be empty."""

    def moved(given: list[Argument], _words: Words) -> int:
        lists = {place: one for place in read if isinstance(one := given[place], list)}
        if 0 not in lists:
            raise TypeError("no parameters")
        return sum(_read(one) * (2 if place in written else 1) for place, one in lists.items())

    return moved


_TRITON = re.compile(r"triton_(?:poi|per|red)_")
_OF_PARTS = re.compile(r"slice|split|select|narrow|index|embedding|gather|scatter|unfold|unbind|cat_|pad")


def _triton(given: list[Argument], _words: Words) -> int:
    """A kernel that torch.compile wrote: each tensor that it is given is read or written."""
    tensors = _tensors(given, len(given))
    if not tensors:
        raise TypeError("no tensors")
    return _read(tensors)


_UNARY = (
    "abs acos acosh angle asin asinh atan atanh bitwise_not ceil celu conj_physical cos cosh deg2rad digamma elu erf "
    "erfc erfinv exp exp2 expm1 floor frac gelu hardshrink hardsigmoid hardswish hardtanh i0 leaky_relu lgamma log "
    "log10 log1p log2 log_sigmoid_forward logit mish nan_to_num neg positive rad2deg reciprocal relu relu6 round rsqrt "
    "rsub selu sgn sigmoid sign silu sin sinc sinh softplus softshrink sqrt square tan tanh threshold tril triu trunc "
    "cumsum cumprod flip roll constant_pad_nd"
)
_BINARY = (
    "add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor clamp_max clamp_min copysign "
    "div elu_backward float_power floor_divide fmax fmin fmod gcd gelu_backward hardsigmoid_backward "
    "hardswish_backward hardtanh_backward heaviside hypot lcm ldexp leaky_relu_backward logaddexp logaddexp2 "
    "logit_backward masked_fill maximum minimum mish_backward mul native_dropout_backward nextafter pow remainder "
    "sigmoid_backward silu_backward softplus_backward sub tanh_backward threshold_backward true_divide xlogy"
)
_TERNARY = "addcdiv addcmul clamp clip lerp"
_TESTS_OF_ONE = "isfinite isinf isnan isneginf isposinf logical_not signbit"
_TESTS_OF_TWO = "eq ge gt le logical_and logical_or logical_xor lt ne"
_FILLS = "fill_ zero_ bernoulli_ cauchy_ exponential_ geometric_ log_normal_ normal_ random_ uniform_"
_REDUCTIONS = (
    "all amax amin any argmax argmin count_nonzero linalg_vector_norm logsumexp max mean median min nansum norm prod "
    "std std_mean sum var var_mean max_pool2d_with_indices avg_pool2d _adaptive_avg_pool2d upsample_nearest2d "
    "upsample_bilinear2d _local_scalar_dense nonzero"
)
"""Results are smaller than what is read, or their sizes stand among the numbers: they are left out."""

_FOREACH_UNARY = "abs ceil cos exp expm1 floor log neg reciprocal round rsqrt sigmoid sign sqrt tanh trunc"
_FOREACH_BINARY = "add clamp_max clamp_min div maximum minimum mul pow sub"
_FOREACH_TERNARY = "addcdiv addcmul lerp"


def _families() -> dict[str, ByteFormula]:
    found: dict[str, ByteFormula] = {}
    pointwise = (
        (_UNARY, 1, None),
        (_BINARY, 2, None),
        (_TERNARY, 3, None),
        (_TESTS_OF_ONE, 1, 1),
        (_TESTS_OF_TWO, 2, 1),
    )
    for names, count, width in pointwise:
        for name in names.split():
            found[name] = _pointwise(count, width=width)
            found[f"{name}_"] = _in_place(count)
    for names, count in ((_FOREACH_UNARY, 1), (_FOREACH_BINARY, 2), (_FOREACH_TERNARY, 3)):
        for name in names.split():
            for ending in ("", "_"):
                found[f"_foreach_{name}{ending}"] = _of_lists(count)
    found |= {name: _writes(0) for name in _FILLS.split()}
    found |= {name: _reads(0) for name in _REDUCTIONS.split()}
    return {f"aten::{name}": formula for name, formula in found.items()}


_NORMS = _like(0, 0, 1, 2, 3, 4)

BYTES: dict[str, ByteFormula] = {
    **_families(),
    "aten::where": _selected,
    "aten::copy_": _copy,
    "aten::_foreach_norm": lambda given, _words: _list_bytes(given[0]),
    "aten::_foreach_zero_": lambda given, _words: _list_bytes(given[0]),
    "aten::_foreach_copy_": _of_lists(2, reads_first=False),
    "aten::_fused_sgd_": _fused_optimizer((0, 2), (0, 1, 2)),
    "aten::_fused_adagrad_": _fused_optimizer((0, 2), (0, 1, 2)),
    "aten::_fused_adam_": _fused_optimizer((0, 2, 3, 4), (0, 1, 2, 3, 4)),
    "aten::_fused_adamw_": _fused_optimizer((0, 2, 3, 4), (0, 1, 2, 3, 4)),
    "aten::cat": lambda given, _words: 2 * _read(_lists(given)[0]),
    "aten::max_pool2d_with_indices_backward": _like(1, 0, 7),
    "aten::_softmax": _like(0, 0),
    "aten::_log_softmax": _like(0, 0),
    "aten::_softmax_backward_data": _like(0, 0, 1),
    "aten::_log_softmax_backward_data": _like(0, 0, 1),
    "aten::native_dropout": _dropout,
    "aten::_fused_dropout": _dropout,
    "aten::native_layer_norm": _NORMS,
    "aten::_fused_rms_norm": _NORMS,
    "aten::native_group_norm": _like(0, 0, 1, 2),
    "aten::native_batch_norm": _NORMS,
    "aten::_native_batch_norm_legit": _NORMS,
    "aten::cudnn_batch_norm": _NORMS,
    "aten::miopen_batch_norm": _NORMS,
    "aten::_batch_norm_with_update": _NORMS,
    "aten::native_layer_norm_backward": _like(1, 0, 1, 3, 4, 5),
    "aten::_fused_rms_norm_backward": _like(1, 0, 1, 3, 4),
    "aten::native_group_norm_backward": _like(1, 0, 1, 2, 3, 4),
    "aten::native_batch_norm_backward": _like(1, 0, 1, 2),
    "aten::cudnn_batch_norm_backward": _like(0, 0, 1, 2),
    "aten::miopen_batch_norm_backward": _like(0, 0, 1, 2),
    "aten::batch_norm_backward": _like(1, 0, 1, 2),
    "aten::embedding": _embedding,
    "aten::embedding_dense_backward": _reads(0, 1),
    "aten::index_select": _index_select,
    "aten::gather": _gather,
    "aten::mm": _product(0, 1),
    "aten::addmm": _product(1, 2, 0),
    "aten::addmm_": _product(1, 2, 0),
    "aten::_addmm_activation": _product(1, 2, 0),
    "aten::bmm": _product(0, 1),
    "aten::baddbmm": _product(1, 2),  # what is added may be multiplied by 0, and is not read then
    "aten::baddbmm_": _product(1, 2),
    "aten::_scaled_mm": _product(0, 1),
    "aten::_int_mm": _product(0, 1, width=4),
    "aten::addbmm": _product(1, 2, 0, elements=lambda a, b: a.sizes[-2] * b.sizes[-1]),
    "aten::mv": _matrix_vector(0, 1),
    "aten::addmv": _matrix_vector(1, 2, 0),
    "aten::addmv_": _matrix_vector(1, 2, 0),
    "aten::dot": _reads(0, 1),
    "aten::vdot": _reads(0, 1),
    "aten::addr": _product(1, 2, 0, elements=lambda a, b: a.elements * b.elements),
    "aten::convolution": _convolution(3, 4, 5, 6, 2),
    "aten::_convolution": _convolution(3, 4, 5, 6, 2),
    "aten::convolution_overrideable": _convolution(3, 4, 5, 6, 2),
    "aten::cudnn_convolution": _convolution(3, 2, 4, None, None),
    "aten::miopen_convolution": _convolution(4, 3, 5, None, 2),
    "aten::mkldnn_convolution": _convolution(4, 3, 5, None, 2),
    "aten::miopen_depthwise_convolution": _convolution(4, 3, 5, None, 2),
    "aten::cudnn_convolution_transpose": _transposed_convolution(2, None),
    "aten::miopen_convolution_transpose": _transposed_convolution(3, 2),
    "aten::convolution_backward": _convolution_backward,
    **{f"aten::_scaled_dot_product_{name}_attention": _attention for name in ("efficient", "flash", "cudnn")},
    "aten::_scaled_dot_product_fused_attention_overrideable": _attention,
    "aten::_scaled_dot_product_fused_attention_overrideable_backward": _attention_backward,
    "aten::_cudnn_attention_forward": _attention,
    "aten::_cudnn_attention_backward": _attention_backward,
    "aten::_scaled_dot_product_flash_attention_for_cpu": _attention,
    "aten::_flash_attention_forward": _attention,
    "aten::_efficient_attention_forward": _attention,
    "flash_attn::_flash_attn_forward": _attention,
    **{
        f"aten::_scaled_dot_product_{name}_attention_backward": _attention_backward
        for name in ("efficient", "flash", "cudnn")
    },
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward": _attention_backward,
    "aten::_flash_attention_backward": _attention_backward,
    "aten::_efficient_attention_backward": _attention_backward,
    "flash_attn::_flash_attn_backward": _attention_backward,
}
"""By the operator's name as a trace has it."""


def bytes_formula(name: str) -> ByteFormula | None:
    """The formula of an operator; None where there is none, as for what uses parts of its arguments alone."""
    known = BYTES.get(name)
    if known is None and _TRITON.match(name) and not _OF_PARTS.search(name):
        return _triton
    return known


def bytes_of_call(name: str, given: list[Argument], words: Words) -> int | None:
    """Bytes of one call of an operator; None where it has no formula, or its arguments do not tell."""
    formula = bytes_formula(name)
    if formula is None:
        return None
    try:
        moved = formula(given, words)
    except UNREADABLE:
        return None
    return moved if isinstance(moved, int) and 0 < moved < LARGEST else None

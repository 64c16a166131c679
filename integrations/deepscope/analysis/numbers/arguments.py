"""The arguments of one call of an operator, as a trace tells them (sizes, types, strides), and its results' shapes."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import zip_longest
from math import prod
from typing import Any, NamedTuple

from deepscope.analysis.numbers.flop_formulas import UNREADABLE, Shapes, Words, output_sizes
from deepscope.trace.model import Int64, Trace

_KINDS = {
    "bool": ("bool", 1),
    "unsigned char": ("uint8", 1),
    "signed char": ("int8", 1),
    "char": ("int8", 1),
    "short": ("int16", 2),
    "short int": ("int16", 2),
    "int": ("int32", 4),
    "unsigned int": ("uint32", 4),
    "long": ("int64", 8),
    "long int": ("int64", 8),
    "long long": ("int64", 8),
    "c10::Half": ("float16", 2),
    "c10::BFloat16": ("bfloat16", 2),
    "float": ("float32", 4),
    "double": ("float64", 8),
    "c10::complex<float>": ("complex64", 8),
    "c10::complex<double>": ("complex128", 16),
    **{
        f"c10::{name}": ("float8", 1)
        for name in ("Float8_e4m3fn", "Float8_e4m3fnuz", "Float8_e5m2", "Float8_e5m2fnuz", "Float8_e8m0fnu")
    },
}
"""torch's name of a type in `Input type` → its name in Python, bytes of an element."""
_ORDER = {name: place for place, (name, _) in enumerate(_KINDS.values())}
"""What a result of two types has is the later one, but for the two halves, which make float32."""

FLOATS = frozenset({"float8", "float16", "bfloat16", "float32", "float64"})


class Tensor(NamedTuple):
    """An argument that is a tensor."""

    sizes: tuple[int, ...]
    dtype: str
    width: int
    """Bytes of an element."""
    strides: tuple[int, ...] = ()
    """() where the trace does not tell."""

    @property
    def elements(self) -> int:
        """How many it seems to have."""
        return prod(self.sizes)

    @property
    def size_bytes(self) -> int:
        """Bytes of what it is made of: a dimension that was expanded (stride 0) is one element deep."""
        if len(self.strides) != len(self.sizes):
            return self.elements * self.width
        return prod(size for size, stride in zip(self.sizes, self.strides, strict=True) if stride or not size) * (
            self.width
        )


Argument = Tensor | list[Tensor] | None
"""A tensor, a list of tensors, or something else."""


def arguments(dims: Any, dtypes: Any, strides: Any, list_width: int) -> list[Argument]:
    """The arguments by place.

    Args:
        dims: what the JSON of `Input Dims` holds.
        dtypes: that of `Input type`.
        strides: that of `Input Strides`, or an empty list.
        list_width: bytes of an element in lists of tensors, whose types a trace does not name; 0 where nothing tells.

    Raises:
        AttributeError, LookupError, TypeError, ValueError: they have another form.
    """
    return [
        _argument(sizes, word, stride, list_width)
        for sizes, word, stride in zip_longest(dims, dtypes, strides[: len(dims)], fillvalue=())
    ]


def _argument(sizes: Any, word: Any, strides: Any, list_width: int) -> Argument:
    if word == "TensorList":
        if not sizes or not list_width:
            return None
        return [Tensor(_sizes(one), "", list_width) for one in sizes]
    known = _KINDS.get(word)
    if known is None or (strides == [] and sizes):  # torch writes no strides of what is sparse or nested
        return None
    return Tensor(_sizes(sizes), *known, _sizes(strides))


def _sizes(given: Any) -> tuple[int, ...]:
    sizes = tuple(given)
    if any(type(size) is not int or size < 0 for size in sizes):
        raise ValueError("no sizes of a tensor")
    return sizes


def broadcast(*shapes: Sequence[int]) -> list[int]:
    """The sizes of the result of element-wise arithmetic, https://pytorch.org/docs/stable/notes/broadcasting.html.

    Raises:
        ValueError: there is none for these sizes, or none are given.
    """
    rank = max(map(len, shapes))
    found = []
    for column in zip(*([1] * (rank - len(one)) + list(one) for one in shapes), strict=True):
        sizes = {size for size in column if size != 1} or {1}
        if len(sizes) > 1:
            raise ValueError("no broadcast of these shapes")
        found.append(sizes.pop())
    return found


def promoted(tensors: list[Tensor]) -> Tensor:
    """A tensor of the type that element-wise arithmetic gives: one without dimensions only counts if no other is there
    or if it alone is of floats."""
    dimensioned = [one for one in tensors if one.sizes] or tensors
    if not any(one.dtype in FLOATS for one in dimensioned):
        dimensioned = tensors
    widest = max(dimensioned, key=lambda one: _ORDER[one.dtype])
    if {one.dtype for one in dimensioned} >= {"float16", "bfloat16"} and widest.width == 2:
        return Tensor((), "float32", 4)
    return widest


Output = Callable[[Shapes, Words], list[list[int]]]
"""Raises IndexError, TypeError or ValueError for arguments of a form that it does not know."""


def output_shapes(trace: Trace, nodes: Int64, positions: list[int]) -> list[str]:
    """The results' shapes of some calls of operators as JSON, "" where they are not known.

    Args:
        trace: any trace.
        nodes: the events of all calls.
        positions: of the calls in `nodes`, -1 for none.
    """
    events, strings = trace.events, trace.strings
    found = []
    for position in positions:
        event = int(nodes[position])
        formula = OUTPUTS.get(strings[events.name[event]]) if position >= 0 else None
        shapes, concrete = int(events.shapes[event]), int(events.concrete[event])
        found.append("" if formula is None or shapes < 0 else _results(formula, strings, shapes, concrete))
    return found


def _results(formula: Output, strings: list[str], shapes: int, concrete: int) -> str:
    try:
        words = json.loads(strings[concrete]) if concrete >= 0 else []
        found = formula(json.loads(strings[shapes]), words)
        return json.dumps(found) if all(isinstance(size, int) for one in found for size in one) else ""
    except UNREADABLE:
        return ""


def _product(first: int, second: int) -> Output:
    """Of matrices, batched or not, and of vectors, as `torch.matmul` multiplies them."""

    def sizes(shapes: Shapes, _words: Words) -> list[list[int]]:
        a, b = shapes[first], shapes[second]
        if not a or not b or a[-1] != b[-2 if len(b) > 1 else -1]:
            raise ValueError("no product of these shapes")
        batch = broadcast(a[:-2], b[:-2])
        return [[*batch, *a[-2:-1], *(b[-1:] if len(b) > 1 else [])]]

    return sizes


def _pointwise(count: int) -> Output:
    return lambda shapes, _words: [broadcast(*shapes[:count])]


def _like(*places: int) -> Output:
    """Each result has the shape of an argument."""
    return lambda shapes, _words: [list(shapes[place]) for place in places]


def _linear(shapes: Shapes, _words: Words) -> list[list[int]]:
    """`(input, weight, …)`: the weight's rows are the results' columns."""
    x, weight = shapes[0], shapes[1]
    if x[-1] != weight[-1]:
        raise ValueError("no product of these shapes")
    return [[*x[:-1], *weight[:-1]]]


def _convolution(stride: int, padding: int, dilation: int, transposed: int | None) -> Output:
    def sizes(shapes: Shapes, words: Words) -> list[list[int]]:
        x, weight = shapes[0], shapes[1]
        if transposed is not None and words[transposed] == "True":
            raise ValueError("depends on more")
        return [[x[0], weight[0], *output_sizes(x, weight, words[stride], words[padding], words[dilation])]]

    return sizes


def _attention(shapes: Shapes, _words: Words) -> list[list[int]]:
    query, _, value = shapes[:3]
    return [[*query[:-1], value[-1]]]


def _embedding(shapes: Shapes, _words: Words) -> list[list[int]]:
    weight, indices = shapes[0], shapes[1]
    return [[*indices, weight[1]]]


_UNARY = (
    "abs ceil clamp clamp_min clamp_max clone contiguous cos dropout elu erf exp floor gelu hardtanh isnan leaky_relu "
    "log log_softmax _log_softmax mish native_dropout neg pow relu round rsqrt sigmoid sign silu sin softmax _softmax "
    "softplus sqrt square tanh tril triu layer_norm native_layer_norm group_norm native_group_norm batch_norm "
    "native_batch_norm cudnn_batch_norm miopen_batch_norm instance_norm rms_norm _fused_rms_norm cumsum "
    "masked_fill zeros_like ones_like empty_like zero_ fill_ copy_ detach constant _to_copy "
    "normal_ uniform_ bernoulli_ relu_"
)

_BINARY = "add sub mul div maximum minimum eq ne lt le gt ge remainder floor_divide logical_and logical_or where atan2"

_IN_PLACE = "add_ sub_ mul_ div_ addcmul_ addcdiv_ lerp_ masked_fill_ clamp_ sqrt_ pow_ neg_ exp_ sigmoid_ tanh_"

_GRADIENTS = "threshold_backward gelu_backward silu_backward tanh_backward sigmoid_backward _softmax_backward_data"

OUTPUTS: dict[str, Output] = {
    **{f"aten::{name}": _like(0) for name in (_UNARY + " " + _IN_PLACE + " " + _GRADIENTS).split()},
    **{f"aten::{name}": _pointwise(2) for name in _BINARY.split()},
    "aten::where": _pointwise(3),
    "aten::addcmul": _pointwise(3),
    "aten::addcdiv": _pointwise(3),
    "aten::_log_softmax_backward_data": _like(0),
    "aten::native_layer_norm_backward": _like(1),
    "aten::native_batch_norm_backward": _like(1),
    "aten::cudnn_batch_norm_backward": _like(0),
    "aten::mm": _product(0, 1),
    "aten::bmm": _product(0, 1),
    "aten::matmul": _product(0, 1),
    "aten::mv": _product(0, 1),
    "aten::addmm": _product(1, 2),
    "aten::addmm_": _like(0),
    "aten::_addmm_activation": _product(1, 2),
    "aten::baddbmm": _product(1, 2),
    "aten::_scaled_mm": _product(0, 1),
    "aten::linear": _linear,
    "aten::embedding": _embedding,
    "aten::convolution": _convolution(3, 4, 5, 6),
    "aten::_convolution": _convolution(3, 4, 5, 6),
    "aten::convolution_overrideable": _convolution(3, 4, 5, 6),
    "aten::cudnn_convolution": _convolution(3, 2, 4, None),
    "aten::miopen_convolution": _convolution(4, 3, 5, None),
    "aten::mkldnn_convolution": _convolution(4, 3, 5, None),
    "aten::convolution_backward": _like(1, 2),
    "aten::scaled_dot_product_attention": _attention,
    **{f"aten::_scaled_dot_product_{name}_attention": _attention for name in ("efficient", "flash", "cudnn")},
    "aten::_scaled_dot_product_fused_attention_overrideable": _attention,
    "aten::_scaled_dot_product_flash_attention_for_cpu": _attention,
}
"""By the operator's name as a trace has it; of operators with several results those whose shapes are known."""

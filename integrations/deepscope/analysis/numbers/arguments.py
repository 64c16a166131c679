"""The arguments of one call of an operator, as a trace tells them: sizes, types and strides."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from math import prod
from typing import Any, NamedTuple

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

"""Whether somebody needs the strides of a copy, or could as well read tensors that lie as the source does."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch

from deepscope.capture import torch_compat
from deepscope.capture.audit.operator_calls import (
    ATTENTION,
    MATRIX_PRODUCTS,
    OperatorCall,
    aten,
    is_pointwise,
    key_of,
    tensors_of,
)

Strides = tuple[int, ...]
_View = tuple[int, tuple[int, ...], Strides, int]
"""A tensor's storage, shape, strides and offset."""

_LEAST_RUN = 64
"""Operators by element are as fast on an expanded tensor if so many of its elements lie in a row."""
_ARITHMETIC = frozenset(f"aten::{name}{tail}" for name in ("add", "sub", "mul", "div") for tail in ("", "_"))
_BY_PLACE = aten("as_strided")
"""Views whose arguments say where in the storage they are."""


class SourceLayout:
    """The tensors that view a copy, each with the strides it would have if the source had not been copied.

    Results of attention lie as its queries do, and so count as well.
    """

    def __init__(self, copied: torch.Tensor, strides: Strides) -> None:
        self.results: set[int] = set()
        """The storages of results that would lie otherwise."""
        self._strides: dict[_View, Strides] = {_view_of(copied): strides}
        self._copied = _view_of(copied)[0]

    def follow(self, call: OperatorCall) -> bool:
        """A view was made; False if the source has none like it."""
        views = None if call.name in _BY_PLACE else self._on_source(call)
        if views is None:
            return False
        for tensor, other in zip(tensors_of((call.result,)), views, strict=True):
            self._strides[_view_of(tensor)] = other.stride()
        return True

    def suits(self, call: OperatorCall) -> bool:
        """Whether an operator reads the source as fast as the copy, and its results lie as they do or are followed."""
        if not all(self._is_as_fast(one, call) for one in tensors_of(call.given)):
            return False
        others = self._on_source(call)
        results = list(tensors_of((call.result,)))
        if others is None or len(others) != len(results):
            return False
        differing = [pair for pair in zip(results, others, strict=True) if pair[0].stride() != pair[1].stride()]
        for tensor, other in differing:
            self.results.add(key_of(tensor))
            self._strides[_view_of(tensor)] = other.stride()
        return not differing or call.name.startswith(ATTENTION)

    def _is_as_fast(self, tensor: torch.Tensor, call: OperatorCall) -> bool:
        if not self._is_followed(tensor):
            return True
        strides = self._strides.get(_view_of(tensor))
        return strides is not None and _is_as_fast(call.name, call.function, tuple(tensor.shape), strides)

    def _is_followed(self, tensor: torch.Tensor) -> bool:
        key = key_of(tensor)
        return key == self._copied or key in self.results

    def _on_source(self, call: OperatorCall) -> list[torch.Tensor] | None:
        """The results on tensors without bytes that lie as the source does; None where it cannot be said."""
        try:
            with torch_compat.without_modes():
                args = [self._without_bytes(one) for one in call.args]
                named = {key: self._without_bytes(one) for key, one in call.kwargs.items()}
                return list(tensors_of((call.function(*args, **named),)))
        except Exception:  # noqa: BLE001 - no such view, or no version for tensors without bytes
            return None

    def _without_bytes(self, value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return type(value)(self._without_bytes(one) for one in value)
        if not isinstance(value, torch.Tensor):
            return value
        strides = self._strides[_view_of(value)] if self._is_followed(value) else value.stride()
        return torch.empty_strided(value.shape, strides, dtype=value.dtype, device="meta")


def _view_of(tensor: torch.Tensor) -> _View:
    return key_of(tensor), tuple(tensor.shape), tuple(tensor.stride()), tensor.storage_offset()


def source_strides(source: torch.Tensor, copied: torch.Tensor) -> Strides | None:
    """The strides of a tensor, expanded to the shape of a copy that may repeat it; None where that is not possible."""
    try:
        with torch_compat.without_modes():
            lying = torch.empty_strided(source.shape, source.stride(), dtype=source.dtype, device="meta")
            return tuple(lying.expand(copied.shape).stride())
    except RuntimeError:
        return None


def is_laid_out_alike(source: torch.Tensor, copied: torch.Tensor) -> bool:
    """Whether both have the same shape and strides, those of dimensions with one element apart."""
    dimensions = [_dimensions(one.shape, one.stride()) for one in (source, copied)]
    return source.shape == copied.shape and dimensions[0] == dimensions[1]


def _is_as_fast(name: str, function: Any, shape: tuple[int, ...], strides: Strides) -> bool:
    dimensions = _dimensions(shape, strides)
    if _run(dimensions, 1) == math.prod(shape):
        return True
    if name in MATRIX_PRODUCTS:
        return _is_matrix(shape, strides)
    if name.startswith(ATTENTION):
        return strides[-1:] == (1,)
    return is_pointwise(function) and _is_expanded(dimensions, is_arithmetic=name in _ARITHMETIC)


def _is_matrix(shape: tuple[int, ...], strides: Strides) -> bool:
    """Whether BLAS takes it as it is, or as the transposed of another."""
    if len(shape) < 2:
        return False
    (rows, columns), (by_row, by_column) = shape[-2:], strides[-2:]
    return (by_column == 1 and by_row >= max(1, columns)) or (by_row == 1 and by_column >= max(1, rows))


def _is_expanded(dimensions: list[tuple[int, int]], *, is_arithmetic: bool) -> bool:
    """Whether it has the elements of a smaller tensor several times, in their order, with long runs of them.

    Runs of one element take arithmetic alone, which has loops of its own for them.
    """
    expanded = [size for size, stride in dimensions if stride == 0]
    distinct = [stride for _, stride in dimensions if stride]
    if not expanded or distinct != sorted(distinct, reverse=True):
        return False
    if dimensions[-1][1] == 0:
        return is_arithmetic and _run(dimensions, 0) >= _LEAST_RUN
    return _run(dimensions, 1) >= _LEAST_RUN


def _run(dimensions: list[tuple[int, int]], step: int) -> int:
    """How many elements at the end lie `step` apart from each other."""
    length = 1
    for size, stride in reversed(dimensions):
        if stride != step * length:
            break
        length *= size
    return length


def _dimensions(shape: Iterable[int], strides: Iterable[int]) -> list[tuple[int, int]]:
    """Sizes and strides of the dimensions that have more than one element."""
    return [(size, stride) for size, stride in zip(shape, strides, strict=True) if size != 1]

"""Which slices of a tensor were taken one by one, and which operators were called with each of them first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import torch

from deepscope.capture.audit.flow import Flow, tensors_of
from deepscope.capture.audit.places import OperatorCall

_SLICING = frozenset({"aten::select", "aten::slice", "aten::unbind", "aten::split", "aten::split_with_sizes"})
_AS_ONE = frozenset({"aten::cat", "aten::stack"})
"""They take many slices at once."""
_COPYING = frozenset({"aten::clone", "aten::_to_copy", "aten::_unsafe_view"})
"""What they return is the slice still."""
FEWEST = 4
"""Slices in a dimension."""

ViewKey = tuple[int, int, tuple[int, ...], tuple[int, ...]]
"""A tensor's storage, its offset in it, its sizes and its strides."""


class SlicedTensor(NamedTuple):
    """Tensors of one storage and shape that one line slices along one dimension."""

    path: int
    """Of the line that takes the slices."""
    storage: int
    shape: tuple[int, ...]
    dimension: int
    length: int
    """Of a slice, in this dimension."""
    stride: int
    """Of the tensor, in this dimension."""

    def is_taken_one_by_one(self, offsets: Iterable[int]) -> bool:
        """Whether slices at these offsets have one element each, or overlap: others may save memory."""
        starts = sorted(offsets)
        step = min((after - before for before, after in pairwise(starts)), default=0)
        return self.length == 1 or step < self.length * self.stride


class FirstUse(NamedTuple):
    """The first operator that was called with a slice."""

    operation: int
    call: OperatorCall
    optimizer_steps: int
    """Before it."""


class SliceUses:
    """Of some steps; a slice is told from others by where it lies."""

    def __init__(self, flow: Flow) -> None:
        self.uses: dict[SlicedTensor, dict[int, FirstUse]] = {}
        """By the offset of each slice."""
        self.optimizer_steps = 0
        self._flow = flow
        self._of_view: dict[ViewKey, tuple[SlicedTensor, int]] = {}
        """Each with the offset of its slice."""

    def take(self, name: str, args: Sequence[Any], kwargs: dict[str, Any], result: Any, call: OperatorCall) -> None:
        """A view was made."""
        base = next(tensors_of(args), None)
        if base is None:
            return
        if name in _SLICING:
            if not call.is_within_module:  # else a library's own loop
                self._slice(base, name, args, kwargs, result, path=call.path)
        elif isinstance(result, torch.Tensor) and result.numel() == base.numel():
            found = self._find(base)
            key = self._key_of(result)
            if found is not None and key is not None:
                self._of_view[key] = found

    def use(self, operation: int, name: str, args: Sequence[Any], result: Any, call: OperatorCall) -> None:
        """An operator was called, outside of backward passes."""
        if name in _AS_ONE or not self._of_view:
            return
        for tensor in tensors_of(args):
            found = self._find(tensor)
            if found is None:
                continue
            key = self._key_of(result) if name in _COPYING and isinstance(result, torch.Tensor) else None
            if key is not None:
                self._of_view[key] = found
                return
            sliced, offset = found
            self.uses.setdefault(sliced, {}).setdefault(offset, FirstUse(operation, call, self.optimizer_steps))

    def _slice(
        self, base: torch.Tensor, name: str, args: Sequence[Any], kwargs: dict[str, Any], result: Any, *, path: int
    ) -> None:
        place = 2 if name.startswith("aten::split") else 1
        dimension = int(kwargs.get("dim", args[place] if len(args) > place else 0))
        storage = self._flow.key_of(base)
        if not storage or not base.dim():
            return
        dimension %= base.dim()
        if base.size(dimension) < FEWEST:
            return
        each = base.numel() // base.size(dimension)
        for one in tensors_of((result,)):
            length, key = one.numel() // max(each, 1), self._key_of(one)
            if key is not None and 0 < length < base.size(dimension):
                sliced = SlicedTensor(
                    path, storage, tuple(base.shape), dimension, length, stride=base.stride(dimension)
                )
                self._of_view[key] = sliced, one.storage_offset()

    def _find(self, tensor: torch.Tensor) -> tuple[SlicedTensor, int] | None:
        key = self._key_of(tensor)
        return None if key is None else self._of_view.get(key)

    def _key_of(self, tensor: torch.Tensor) -> ViewKey | None:
        storage = self._flow.key_of(tensor)
        return None if not storage else (storage, tensor.storage_offset(), tuple(tensor.shape), tensor.stride())

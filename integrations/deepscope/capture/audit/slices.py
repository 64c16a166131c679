"""Which slices of a tensor were taken one by one, and which operators were called with each of them first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from deepscope.capture.audit.flow import Flow, tensors_of
from deepscope.capture.audit.places import OperatorCall

_SLICING = frozenset({"aten::select", "aten::slice", "aten::unbind", "aten::split", "aten::split_with_sizes"})
_AS_ONE = frozenset({"aten::cat", "aten::stack"})
"""They take many slices at once."""
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
        self._of_view: dict[ViewKey, SlicedTensor] = {}

    def take(self, name: str, args: Sequence[Any], kwargs: dict[str, Any], result: Any, call: OperatorCall) -> None:
        """A view was made."""
        base = next(tensors_of(args), None)
        if base is None:
            return
        if name in _SLICING:
            self._slice(base, name, args, kwargs, result, path=call.path)
        elif isinstance(result, torch.Tensor) and result.numel() == base.numel():
            found = self._find(base)
            key = self._key_of(result)
            if found is not None and key is not None:
                self._of_view[key] = found

    def use(self, operation: int, name: str, args: Sequence[Any], call: OperatorCall) -> None:
        """An operator was called, outside of backward passes."""
        if name in _AS_ONE or not self._of_view:
            return
        for tensor in tensors_of(args):
            found = self._find(tensor)
            if found is not None:
                use = FirstUse(operation, call, self.optimizer_steps)
                self.uses.setdefault(found, {}).setdefault(tensor.storage_offset(), use)

    def _slice(
        self, base: torch.Tensor, name: str, args: Sequence[Any], kwargs: dict[str, Any], result: Any, *, path: int
    ) -> None:
        place = 2 if name.startswith("aten::split") else 1
        dimension = int(kwargs.get("dim", args[place] if len(args) > place else 0))
        storage = self._flow.key_of(base)
        if storage is None or not base.dim():
            return
        dimension %= base.dim()
        if base.size(dimension) < FEWEST:
            return
        sliced = SlicedTensor(path, storage, tuple(base.shape), dimension)
        each = base.numel() // base.size(dimension)
        for one in tensors_of((result,)):
            key = self._key_of(one) if one.numel() == each else None
            if key is not None:
                self._of_view[key] = sliced

    def _find(self, tensor: torch.Tensor) -> SlicedTensor | None:
        key = self._key_of(tensor)
        return None if key is None else self._of_view.get(key)

    def _key_of(self, tensor: torch.Tensor) -> ViewKey | None:
        storage = self._flow.key_of(tensor)
        return None if storage is None else (storage, tensor.storage_offset(), tuple(tensor.shape), tensor.stride())

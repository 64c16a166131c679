"""The tensors in a batch, or in what a model is called with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch

_DEPTH = 4
_MOST = 10_000


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """The tensors in lists, tuples, mappings and objects that hold them; of a tensor that wraps others, those."""
    left = [_MOST]
    yield from _tensors(value, _DEPTH, left)


def _tensors(value: Any, depth: int, left: list[int]) -> Iterator[torch.Tensor]:
    left[0] -= 1
    if left[0] < 0:
        return
    kind = type(value)
    if issubclass(kind, torch.Tensor):
        yield from _plain(value, depth, left)
    elif depth and issubclass(kind, (list, tuple)):
        for one in value:
            yield from _tensors(one, depth - 1, left)
    elif depth and _is_mapping(kind):
        for one in list(value.values()):
            yield from _tensors(one, depth - 1, left)
    elif depth and kind.__module__ not in ("builtins", "torch") and hasattr(value, "__dict__"):
        for one in list(vars(value).values()):  # a batch of one's own class
            if issubclass(type(one), (torch.Tensor, list, tuple)) or _is_mapping(type(one)):
                yield from _tensors(one, depth - 1, left)


def _is_mapping(kind: type) -> bool:
    try:
        return issubclass(kind, Mapping)
    except TypeError:  # a class that cannot be hashed, as abstract classes ask of it
        return False


def _plain(tensor: Any, depth: int, left: list[int]) -> Iterator[torch.Tensor]:
    kind = type(tensor)
    if kind is torch.Tensor or kind is torch.nn.Parameter:
        yield tensor
    elif hasattr(kind, "__tensor_flatten__"):  # DTensor, quantized tensors: what they are made of
        for name in tensor.__tensor_flatten__()[0] if depth else ():
            yield from _tensors(getattr(tensor, name), depth - 1, left)
    elif kind.__torch_dispatch__ is torch.Tensor.__torch_dispatch__:
        yield tensor

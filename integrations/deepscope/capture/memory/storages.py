"""The storages of tensors: where on which device the bytes of a value lie."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch

from deepscope.trace.format.process_tables import Held

_DEVICE_TYPES = {"cpu": 0, "cuda": 1, "xla": 9, "xpu": 12, "mps": 13, "hpu": 15, "mtia": 19}
"""torch's DeviceType as its memory events have it; ROCm's devices call themselves `cuda`, too."""
_OTHER = 20
"""PrivateUse1: devices from outside torch."""
_DEPTH = 4
_MOST = 10_000


def storages(kind: int, value: Any) -> Iterator[Held]:
    """The storages of all tensors in a value; those that lie nowhere (fake, meta, released) are left out."""
    found = tensors_in(value)
    while True:
        try:
            held = _held(kind, next(found))
        except StopIteration:
            return
        except Exception:  # noqa: BLE001, S112  a tensor of somebody's own kind, which has no storage to show
            continue
        if held is not None:
            yield held


def _held(kind: int, tensor: torch.Tensor) -> Held | None:
    device = tensor.device
    if device.type == "meta":
        return None
    storage = tensor.untyped_storage()
    address, size = storage.data_ptr(), storage.nbytes()
    if not address or not size:
        return None
    index = -1 if device.type == "cpu" or device.index is None else device.index
    return Held(kind, _DEVICE_TYPES.get(device.type, _OTHER), index, address, size)


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

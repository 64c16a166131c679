"""The storages of tensors: where on which device the bytes of a value lie."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from deepscope.capture.nested_tensors import tensors_in
from deepscope.trace.format.process_tables import Held

_DEVICE_TYPES = {"cpu": 0, "cuda": 1, "xla": 9, "xpu": 12, "mps": 13, "hpu": 15, "mtia": 19}
"""torch's DeviceType as its memory events have it; ROCm's devices call themselves `cuda`, too."""
_OTHER = 20
"""PrivateUse1: devices from outside torch."""


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

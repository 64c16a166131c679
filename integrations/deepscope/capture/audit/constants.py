"""What steps compute, or make of numbers of Python's and NumPy's, that is the same in each of them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from hashlib import blake2b
from typing import NamedTuple

import torch

from deepscope.capture import torch_compat
from deepscope.capture.audit.flow import Flow, Returned, tensors_of, values_of
from deepscope.capture.audit.operator_facts import is_plain

_numpy = torch.Tensor.numpy
"""As it is before `UnseenUses` takes its place."""
_FEWEST = 64
"""Of fewer elements two steps may have the same by chance (flags, rewards, one-hot vectors), and of equal ones."""
_MOST_BYTES = 1 << 24
_SPARSE = frozenset({torch.sparse_coo, torch.sparse_csr, torch.sparse_csc})

Value = Hashable
"""Equal for two tensors that hold the same because they were computed in the same way."""


def computed_value(returned: Returned, of_tensor: Callable[[torch.Tensor], Value | None]) -> Value | None:
    """The value of what a call computes of its arguments' values; None where one is None, or where it may differ.

    `of_tensor`: the value of a tensor's storage, which is read as the tensor lies in it.
    """
    if returned.facts.is_opaque or returned.facts.reads_to_host or returned.draws():
        return None
    parts: list[Value] = [returned.name]
    for one in (*returned.args, *sorted(returned.kwargs.items())):
        tensors = list(tensors_of(one if isinstance(one, (list, tuple)) else (one,)))
        if not tensors:
            parts.append(repr(one))
        for tensor in tensors:
            value = of_tensor(tensor)
            if value is None:
                return None
            lies = (tensor.storage_offset(), tensor.stride()) if tensor.layout is torch.strided else str(tensor.layout)
            parts.append((value, tuple(tensor.shape), lies))
    return hash(tuple(parts))


def bytes_of(tensor: torch.Tensor) -> bytes | None:
    """A digest of a tensor's bytes; None where they are too many, or not at hand."""
    if not _is_at_hand(tensor):
        return None
    with torch_compat.without_modes(), torch.no_grad():
        return blake2b(_numpy(tensor.detach().reshape(-1).view(torch.uint8)).data, digest_size=16).digest()


def _is_uniform(tensor: torch.Tensor) -> bool:
    if not _is_at_hand(tensor):
        return False
    with torch_compat.without_modes(), torch.no_grad():
        flat = tensor.detach().reshape(-1)
        return bool((flat == flat[0]).all())


def _is_at_hand(tensor: torch.Tensor) -> bool:
    is_small = tensor.numel() * tensor.element_size() <= _MOST_BYTES
    return bool(is_small and tensor.device.type == "cpu" and tensor.is_contiguous())


class Built(NamedTuple):
    """A tensor that a step made of numbers of Python's or NumPy's."""

    path: int
    is_same: bool
    """Whether the other step made the same, and nobody wrote to this one."""
    result_bytes: int


class _Made(NamedTuple):
    path: int
    step: int
    value: Value | None
    result_bytes: int


class Constants:
    """Of some steps; `fixed` are the storages that no step changes."""

    def __init__(self, flow: Flow, fixed: Iterable[int]) -> None:
        self._flow = flow
        self._values: dict[int, Value] = {key: ("fixed", key) for key in fixed}
        """By storage: how its bytes came about; only of those that are the same in each step."""
        self._given: dict[Value, frozenset[int]] = {}
        """The storages from before these steps that a value is computed from, those of `fixed` apart."""
        self._made: list[tuple[int, Value, list[int]]] = []
        """Operation, what it computes, and the storages that it writes to."""
        self._built: dict[int, _Made] = {}
        """By storage."""
        self._spoiled: dict[int, int] = {}
        """By storage: the last operation that wrote to it what differs from step to step."""

    def build(self, tensor: torch.Tensor, path: int, step: int) -> None:
        """A line has made a tensor of numbers of Python's or NumPy's, or one that shares these."""
        key = self._flow.key_of(tensor) if is_plain(tensor) else 0
        if not key or self._flow.writers_of(tensor):
            return
        value = self._value_of_bytes(tensor)
        if value is not None:
            self._values[key] = value
        if tensor.dim():
            self._built[key] = _Made(path, step, value, tensor.numel() * tensor.element_size())

    def built(self) -> list[Built]:
        """Of the first step."""
        later = {one.value for one in self._built.values() if one.step == 1 and one.value is not None}
        return [
            Built(one.path, one.value in later and self._flow.is_unwritten(key), one.result_bytes)
            for key, one in self._built.items()
            if one.step == 0
        ]

    def _has_same_bytes(self, key: int, tensor: torch.Tensor) -> bool:
        """Whether what an operator reads of a tensor made of Python's numbers is what was made; NumPy may share it."""
        made = self._built[key]
        is_same = not self._flow.is_used_unseen(key) and (
            self._flow.is_torchs(key) or self._value_of_bytes(tensor) == made.value
        )
        if not is_same:
            self._built[key] = made._replace(value=None)
        return is_same

    def _value_of_bytes(self, tensor: torch.Tensor) -> Value | None:
        """Equal for two tensors of the same numbers; None where these may be so by chance, or are too many."""
        if tensor.dim() > 0 and (tensor.numel() < _FEWEST or _is_uniform(tensor)):
            return None
        digest = bytes_of(tensor)
        if digest is None:
            return None
        value = ("bytes", digest, str(tensor.dtype))
        self._given[value] = frozenset()
        return value

    def note(self, number: int, returned: Returned) -> None:
        """An operator has returned, outside of backward passes."""
        value = self._value_of(returned)
        changed = (returned.result, *returned.written())
        written = [key for one in tensors_of(changed) if (key := self._key_of(one))]
        if value is None:
            for key in written:
                self._values.pop(key, None)
                self._spoiled[key] = number
            return
        if not written:
            return
        for key in written:
            self._values[key] = value
        self._made.append((number, value, written))

    def same(self) -> dict[int, bool]:
        """The operations of the first step that the second one has, too, and whose results nothing changes.

        With each stands whether it is computed from a tensor that is no module's and that neither step changes.
        """
        operations = self._flow.operations
        later = {value for number, value, _ in self._made if operations[number].step == 1}
        return {
            number: bool(self._given[value])
            for number, value, written in self._made
            if operations[number].step == 0
            and value in later
            and not any(self._spoiled.get(key, -1) > number for key in written)
            and all(map(self._flow.is_untouched, self._given[value]))
        }

    def _key_of(self, tensor: torch.Tensor) -> int:
        """The number of a tensor's storage; of a sparse one that of what it keeps, less than 0. 0 without one."""
        if not is_plain(tensor) or tensor.layout not in _SPARSE:
            return self._flow.key_of(tensor)
        values = values_of(tensor)
        self._flow.writers_of(values)  # no other storage gets its number from now on
        return -self._flow.key_of(values)

    def _value_of(self, returned: Returned) -> Value | None:
        given: set[int] = set()

        def of_tensor(tensor: torch.Tensor) -> Value | None:
            key = self._key_of(tensor)
            value = self._values.get(key)
            if key in self._built and not self._has_same_bytes(key, tensor):
                return None
            if value is None and self._flow.is_untouched(key):
                value = ("given", key)
                given.add(key)
            if value is None or tensor.requires_grad:
                return None
            given.update(self._given.get(value, ()))
            return value

        result = computed_value(returned, of_tensor)
        if result is not None:
            self._given[result] = frozenset(given)
        return result


def fixed_storages(
    flow: Flow, modules: Iterable[torch.nn.Module], optimizers: Iterable[torch.optim.Optimizer]
) -> set[int]:
    """The storages of the modules' parameters and buffers that no optimizer changes."""
    changed = {id(one) for optimizer in optimizers for group in optimizer.param_groups for one in group["params"]}
    found = set()
    for module in modules:
        fields = module.__dict__
        for name in ("_parameters", "_buffers"):
            for tensor in (fields.get(name) or {}).values():
                if isinstance(tensor, torch.Tensor) and id(tensor) not in changed:
                    key = flow.key_of(tensor)
                    if key:
                        found.add(key)
    return found

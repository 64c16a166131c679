"""What steps compute, or make of numbers of Python's and NumPy's, that is the same in each of them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from hashlib import blake2b
from types import CodeType
from typing import NamedTuple

import torch

from deepscope.capture import torch_compat
from deepscope.capture.audit.flow import Flow, Observer
from deepscope.capture.audit.gradients import stepped_parameters
from deepscope.capture.audit.operator_calls import OperatorCall, is_plain, key_of, tensors_of, values_of
from deepscope.capture.audit.step_work import StepWork
from deepscope.trace.format.audit import SameWork

_numpy = torch.Tensor.numpy
"""As it is before `UnseenUses` takes its place."""
_FEWEST = 64
"""Of fewer elements two steps may have the same by chance (flags, rewards, one-hot vectors), and of equal ones."""
_MOST_BYTES = 1 << 24
_SPARSE = frozenset({torch.sparse_coo, torch.sparse_csr, torch.sparse_csc})

Value = Hashable
"""Equal for two tensors that hold the same because they were computed in the same way."""


def computed_value(call: OperatorCall, of_tensor: Callable[[torch.Tensor], Value | None]) -> Value | None:
    """The value of what a call computes of its arguments' values; None where one is None, or where it may differ.

    `of_tensor`: the value of a tensor's storage, which is read as the tensor lies in it.
    """
    if call.schema.is_opaque or call.schema.reads_to_host or call.draws():
        return None
    parts: list[Value] = [call.name]
    for one in (*call.args, *sorted(call.kwargs.items())):
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


class Constants(Observer[Value]):
    """Of some steps: how bytes came about, only of those that are the same in each step."""

    def __init__(self, flow: Flow, fixed: Iterable[int]) -> None:
        """`fixed`: the storages that no step changes."""
        super().__init__(flow)
        self._held = {key: ("fixed", key) for key in fixed}
        self._given: dict[Value, frozenset[int]] = {}
        """The storages from before these steps that a value is computed from, those of `fixed` apart."""
        self._made: list[tuple[int, Value, list[int]]] = []
        """Operation, what it computes, and the storages that it writes to."""
        self._built: dict[int, _Made] = {}
        """By storage."""
        self._spoiled: dict[int, int] = {}
        """By storage: the last operation that wrote to it what differs from step to step."""

    def build(self, call: OperatorCall) -> None:
        """A line has made a tensor of numbers of Python's or NumPy's, or one that shares these."""
        tensor: torch.Tensor = call.result
        keys = self._flow.follow([tensor]) if is_plain(tensor) else ()
        if not keys or self._flow.writers_of(tensor):
            return
        [key] = keys
        value = self._value_of_bytes(tensor)
        if value is not None:
            self._held[key] = value
        if tensor.dim():
            self._built[key] = _Made(call.site.path, call.step, value, tensor.numel() * tensor.element_size())

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

    def note(self, call: OperatorCall) -> None:
        """What data loaders compute is not followed."""
        if call.number < 0 or call.site.is_loading:
            return
        value = self._value_of(call)
        changed = (call.result, *call.written)
        written = [key for one in tensors_of(changed) if (key := self._key_of(one))]
        for key in written:
            if value is None:
                self._held.pop(key, None)
                self._spoiled[key] = call.number
            else:
                self._held[key] = value
        if value is not None and written:
            self._made.append((call.number, value, written))

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
            return key_of(tensor)
        values = values_of(tensor)
        self._flow.writers_of(values)  # no other storage gets its number from now on
        return -key_of(values)

    def _value_of(self, call: OperatorCall) -> Value | None:
        given: set[int] = set()

        def of_tensor(tensor: torch.Tensor) -> Value | None:
            key = self._key_of(tensor)
            value = self._held.get(key)
            if key in self._built and not self._has_same_bytes(key, tensor):
                return None
            if value is None and self._flow.is_untouched(key):
                value = ("given", key)
                given.add(key)
            if value is None or tensor.requires_grad:
                return None
            given.update(self._given.get(value, ()))
            return value

        result = computed_value(call, of_tensor)
        if result is not None:
            self._given[result] = frozenset(given)
        return result


def fixed_tensors(
    modules: Sequence[torch.nn.Module], optimizers: Iterable[torch.optim.Optimizer]
) -> list[torch.Tensor]:
    """The modules' parameters and buffers that no optimizer changes."""
    changed = {id(one) for one in stepped_parameters(optimizers)}
    held = [one for field in ("_parameters", "_buffers") for one in _fields(modules, field)]
    return [one for one in held if id(one) not in changed]


def parameters_of(
    modules: Sequence[torch.nn.Module], optimizers: Iterable[torch.optim.Optimizer]
) -> list[torch.Tensor]:
    """The parameters that modules have, or that optimizers step."""
    return [*_fields(modules, "_parameters"), *stepped_parameters(optimizers)]


def _fields(modules: Sequence[torch.nn.Module], field: str) -> list[torch.Tensor]:
    values = [one for module in modules for one in (module.__dict__.get(field) or {}).values()]
    return [one for one in values if isinstance(one, torch.Tensor)]


def same_work(work: StepWork, constants: Mapping[int, bool], all_built: Iterable[Built]) -> list[SameWork]:
    """Of the first step, by function, the most bytes first; `constants`: as of `Constants.same`."""
    operations, paths = work.operations, work.paths
    same = {number: given for number, given in constants.items() if work.path_of(number)}
    built = [one for one in all_built if paths[one.path]]
    by_function: dict[CodeType, list[int]] = defaultdict(list)
    for number in same:
        by_function[work.path_of(number)[-1][0]].append(number)
    others = {
        *(
            one.site.path
            for number, one in enumerate(operations)
            if one.step == 0 and one.computes and number not in same
        ),
        *(one.path for one in built if not one.is_same),
    }
    other_lines = {entry for path in others for entry in paths[path]}
    other_functions = {code for code, _ in other_lines}
    made: dict[CodeType, list[Built]] = defaultdict(list)
    for one in built:
        if one.is_same and paths[one.path][-1] not in other_lines:
            made[paths[one.path][-1][0]].append(one)
    found = []
    for code in dict.fromkeys((*by_function, *made)):
        numbers, mine = by_function[code], made[code]
        weights: Counter[int] = Counter()
        for path, size in [
            *((operations[number].site.path, operations[number].result_bytes) for number in numbers),
            *((one.path, one.result_bytes) for one in mine),
        ]:
            weights[work.places.number_of(paths[path][-1])] += size + 1
        callers = {entry for one in mine for entry in paths[one.path][-2:-1]}
        forward = [
            (number, one)
            for number, one in enumerate(operations)
            if one.step == 0 and one.pass_number < 0 and paths[one.site.path] and paths[one.site.path][-1][0] is code
        ]
        found.append(
            SameWork(
                place=weights.most_common(1)[0][0],
                result_bytes=work.bytes_of(numbers) + sum(one.result_bytes for one in mine),
                given=any(same[number] for number in numbers),
                operators=work.uses_among(forward, set(same)),
                built=sorted({work.places.number_of(paths[one.path][-1]) for one in mine}),
                callers=sorted(map(work.places.number_of, callers if callers.isdisjoint(other_lines) else ())),
                whole=bool(mine) and code not in other_functions,
            )
        )
    return sorted(found, key=lambda one: -one.result_bytes)

"""Which operators a result goes on to: a graph of the operators of some steps, and of the storages between them.

No tensor is kept. A weak reference to a storage keeps its number from being given to another one, and not its bytes.
"""

from __future__ import annotations

import weakref
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import torch
import torch.utils.flop_counter  # the formulas that `flops_of` asks
from torch.multiprocessing.reductions import StorageWeakRef

from deepscope.capture import torch_compat
from deepscope.capture.audit.call_paths import CallSite
from deepscope.capture.audit.operator_calls import (
    OperatorCall,
    OperatorSchema,
    aten,
    covers_storage,
    is_plain,
    key_of,
    keys_of,
    schema_of,
    tensors_of,
    untyped_storage,
    values_of,
)

_DOUBLE = frozenset({torch.float64, torch.complex128})
_ONE_HOT = aten("scatter scatter_")


class Operation:
    """One call of an operator that computes something."""

    __slots__ = (
        "flops",
        "forward_node",
        "forward_path",
        "given_elements",
        "graph_inputs",
        "has_user_code",
        "inputs",
        "is_double",
        "is_sink",
        "name",
        "node",
        "ones",
        "pass_number",
        "result",
        "result_bytes",
        "shape",
        "site",
        "step",
        "widens",
    )

    def __init__(self, name: str, site: CallSite, step: int) -> None:
        self.name = name
        self.site = site
        self.step = step
        self.inputs: set[int] = set()
        """The operations whose results it reads."""
        self.is_sink = False
        """Its arguments are used in a way that is not followed further."""
        self.flops = self.result_bytes = 0
        self.given_elements = 0
        """Of the largest of its arguments."""
        self.shape: tuple[int, ...] = ()
        """Of its first result."""
        self.ones = 0
        """How many places of a tensor it sets to one, of the first step's own work; 0 for other operators."""
        self.is_double = self.widens = False
        """Whether it reads or makes tensors with 64 bits a number, and whether it makes them of others."""
        self.node = -1
        """The number of its node in autograd's graph; -1 where it has none."""
        self.forward_node = -1
        """Of backward work, the number of the node that it is done for."""
        self.graph_inputs: set[int] = set()
        """Of its inputs those that its node leads to."""
        self.result: weakref.ref[torch.Tensor] | None = None
        """The tensor, of the first step's forward work that has a node."""
        self.pass_number = -1
        """Of the backward pass that it is a part of; -1 outside."""
        self.has_user_code = True
        """Whether the user's code may see its result; not so of autograd's own work in a backward pass."""
        self.forward_path = site.path
        """Of backward work, where its forward operator was called."""

    @property
    def computes(self) -> bool:
        """Whether it does more than to allocate."""
        return self.result_bytes > 0 and not self.name.startswith(("aten::empty", "aten::new_empty"))


class _Storage:
    __slots__ = ("is_read", "is_torchs", "is_used_unseen", "reference", "writers")

    def __init__(self, storage: Any) -> None:
        self.reference = StorageWeakRef(storage)
        self.is_torchs = _is_resizable(storage)
        """Not NumPy's, or another process's, which change it without an operator."""
        self.writers: list[int] = []
        """The operations that made what it holds."""
        self.is_read = False
        """Some operation has read it since it was written to first."""
        self.is_used_unseen = False
        """It was given to somebody who may look at it at any time."""


class Flow:
    """The operations of some steps."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self.opaque: dict[str, None] = {}
        """Operators from outside torch."""
        self._storages: dict[int, _Storage] = {}
        self._numbers: list[tuple[int, StorageWeakRef]] = []
        """Operations that made a tensor without dimensions, and its storage, since `use_unread_numbers`."""
        self._schemas: dict[Any, OperatorSchema] = {}

    def add(
        self,
        function: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        result: Any,
        *,
        site: CallSite,
        step: int,
    ) -> OperatorCall:
        """A call that a dispatch mode has seen."""
        schema = self._schemas.get(function)
        if schema is None:
            schema = self._schemas[function] = schema_of(function)
        first, given = len(self.operations), (*args, *kwargs.values())
        written = schema.written(args, kwargs)
        is_view = schema.is_view
        if not (is_view or schema.writes or schema.writes_named):
            key = next(keys_of((result,)), 0)
            is_view = bool(key) and key in keys_of(given)
        if schema.is_view:
            for tensor in tensors_of(given):
                self._storage_of(tensor)
        else:
            self._add_all(schema, given, written, result, site=site, step=step)
        numbers = range(first, len(self.operations))
        call = OperatorCall(schema, function, args, kwargs, result, written, is_view, site, step, numbers)
        if len(numbers) == 1:
            self.operations[first].flops = torch_compat.flops_of(function, args, kwargs, result)
            self.operations[first].ones = _ones_set(call) if call.is_of_first_step else 0
        return call

    def _add_all(
        self,
        schema: OperatorSchema,
        given: Sequence[Any],
        written: Sequence[Any],
        result: Any,
        *,
        site: CallSite,
        step: int,
    ) -> None:
        """Add one operation for each tensor of a list, else one."""
        if schema.is_opaque and not schema.name.startswith("aten::"):
            self.opaque[schema.name] = None
        lists = [one for one in given if isinstance(one, (list, tuple)) and one and isinstance(one[0], torch.Tensor)]
        if schema.is_by_element and lists:
            count = len(lists[0])
            for place in range(count):
                parts = [_elements(values, place, count) for values in (given, written, (result,))]
                self._add_one(Operation(schema.name, site, step), schema, *parts)
        else:
            changed = given if schema.is_opaque else written
            self._add_one(Operation(schema.name, site, step), schema, given, changed, (result,))

    def _add_one(
        self, operation: Operation, schema: OperatorSchema, given: Sequence[Any], written: Sequence[Any], result: Any
    ) -> None:
        operation.is_sink = schema.is_opaque or schema.reads_to_host or bool(schema.changed_statistics(given))
        number = len(self.operations)
        self.operations.append(operation)
        changed = {id(one): one for one in tensors_of(written)}
        replaced = {key for key, one in changed.items() if schema.replaces and covers_storage(one)}
        reads_double = makes_double = False
        for tensor in tensors_of(given):
            reads_double |= _is_double(tensor)
            operation.given_elements = max(operation.given_elements, tensor.numel())
            state = self._storage_of(tensor)
            if state is None:
                operation.is_sink = True
            elif id(tensor) not in replaced:
                state.is_read = True
                operation.inputs.update(state.writers)
        made = changed | {id(one): one for one in tensors_of(result)}
        operation.is_sink |= not made
        for key, tensor in made.items():
            makes_double |= _is_double(tensor)
            operation.shape = operation.shape or tuple(tensor.shape)
            operation.result_bytes += _bytes_of(tensor)
            self._write(tensor, number, is_whole=key in replaced)
        operation.is_double, operation.widens = reads_double or makes_double, makes_double and not reads_double

    def writers_of(self, tensor: torch.Tensor) -> list[int]:
        """The operations that made what a tensor holds."""
        state = self._storage_of(tensor)
        return [] if state is None else state.writers

    def follow(self, tensors: Iterable[torch.Tensor]) -> set[int]:
        """The storages of some tensors; their numbers are no other storage's from now on, also when they have gone."""
        found = set()
        for tensor in tensors:
            self._storage_of(tensor)
            found.add(key_of(tensor))
        return found - {0}

    def is_used_unseen(self, key: int) -> bool:
        """Whether somebody may look at a storage, or write to it, at any time."""
        state = self._storages.get(key)
        return state is not None and state.is_used_unseen

    def is_torchs(self, key: int) -> bool:
        """Whether torch alone has a storage's bytes, so that operators alone change them."""
        state = self._storages.get(key)
        return state is not None and state.is_torchs

    def is_unwritten(self, key: int) -> bool:
        """Whether no operation wrote to a storage, and nobody may have looked at it, or written to it, unseen."""
        state = self._storages.get(key)
        return state is not None and not state.writers and not state.is_used_unseen

    def is_untouched(self, key: int) -> bool:
        """Whether no operation wrote to a storage of torch's own, and nobody may have done so unseen."""
        return self.is_torchs(key) and self.is_unwritten(key)

    def is_gone(self, key: int) -> bool:
        """Whether nobody has a storage any more."""
        state = self._storages.get(key)
        return state is not None and bool(state.reference.expired())

    def is_let_go(self, key: int) -> bool:
        """Whether nobody has a storage any more, or was given it unseen."""
        return self.is_gone(key) and not self.is_used_unseen(key)

    def pass_on(self, name: str, tensor: torch.Tensor, site: CallSite, step: int) -> int:
        """An operation that passes a tensor on as it is; its number."""
        operation = Operation(name, site, step)
        number = len(self.operations)
        self.operations.append(operation)
        state = self._storage_of(tensor)
        if state is None:
            operation.is_sink = True
        else:
            operation.inputs.update(state.writers)
            state.writers = [number]
        return number

    def drop(self, number: int) -> None:
        """Let an operation read nothing: that it reads says nothing of a use."""
        self.operations[number].inputs.clear()

    def use_unseen(self, tensor: torch.Tensor) -> None:
        """Somebody looks at a tensor, and no operator shows it."""
        state = self._storage_of(tensor)
        if state is not None:
            state.is_used_unseen = True
            for number in state.writers:
                self.operations[number].is_sink = True

    def use_unread_numbers(self) -> None:
        """Some tensor was made of Python's numbers, maybe of tensors with one number, which no operator shows."""
        for number, reference in self._numbers:
            if not reference.expired():
                self.operations[number].is_sink = True
        self._numbers.clear()

    def kept(self, *, without: Iterable[int] = (), unread_is_used: bool = True) -> Iterator[int]:
        """The operations whose results somebody may use later; `without`: the storages of others.

        `unread_is_used`: results that no operator read before they went count as used unseen, those of autograd's own
        apart.
        """
        left_out = set(without)
        for key, state in self._storages.items():
            if key in left_out or not state.writers:
                continue
            has_user_code = self.operations[state.writers[0]].has_user_code
            is_dropped = not state.is_read and not (unread_is_used and has_user_code)
            if not state.reference.expired() or not (state.is_read or is_dropped):
                yield from state.writers

    def alive(self) -> Iterator[int]:
        """The operations whose results are still there."""
        for state in self._storages.values():
            if not state.reference.expired():
                yield from state.writers

    def sinks(self) -> list[int]:
        """The operations behind which results are not followed further."""
        return [number for number, one in enumerate(self.operations) if one.is_sink]

    def readers(self, numbers: Iterable[int]) -> defaultdict[int, list[int]]:
        """By operation: those of some operations, given in ascending order, that read its result."""
        found: defaultdict[int, list[int]] = defaultdict(list)
        for number in numbers:
            for source in self.operations[number].inputs:
                found[source].append(number)
        return found

    def reaching(self, targets: Iterable[int], *, by_graphs: bool = False) -> set[int]:
        """The operations whose results, or whose graphs, reach one of these, themselves among them."""
        left = list(targets)
        found: set[int] = set()
        while left:
            number = left.pop()
            if number not in found:
                found.add(number)
                one = self.operations[number]
                left += (one.graph_inputs if by_graphs else one.inputs) - found
        return found

    def _storage_of(self, tensor: torch.Tensor) -> _Storage | None:
        key = key_of(tensor) if is_plain(tensor) else 0
        if not key:
            return None
        state = self._storages.get(key)
        if state is None:
            state = self._storages[key] = _Storage(untyped_storage(tensor))
        return state

    def _write(self, tensor: torch.Tensor, number: int, *, is_whole: bool) -> None:
        key = key_of(tensor) if is_plain(tensor) else 0
        if not key:
            self.operations[number].is_sink = True
            return
        state = self._storages.get(key)
        if state is None:
            state = self._storages[key] = _Storage(untyped_storage(tensor))
        elif not is_whole:
            self.operations[number].inputs.update(one for one in state.writers if one != number)
        state.is_read = False
        state.writers = [number]
        self.operations[number].is_sink |= state.is_used_unseen
        if tensor.dim() == 0:
            self._numbers.append((number, state.reference))


def _ones_set(call: OperatorCall) -> int:
    index, value = call.args[2:4] if call.name in _ONE_HOT and len(call.args) == 4 else (None, None)
    is_one = isinstance(value, (int, float)) and value == 1
    return index.numel() if is_one and isinstance(index, torch.Tensor) and is_plain(index) else 0


def _elements(values: Sequence[Any], place: int, count: int) -> list[Any]:
    """Of each list of so many the one at a place, and all else."""
    return [one[place] if isinstance(one, (list, tuple)) and len(one) == count else one for one in values]


def _bytes_of(tensor: torch.Tensor) -> int:
    try:
        return int(values_of(tensor).numel() * tensor.element_size())
    except RuntimeError:  # a layout that keeps no values
        return int(tensor.numel() * tensor.element_size())


def _is_double(tensor: torch.Tensor) -> bool:
    """Whether it has 64 bits a number; a tensor without dimensions does not count: it may be a number of Python's."""
    return tensor.dtype in _DOUBLE and tensor.dim() > 0


def _is_resizable(storage: Any) -> bool:
    """Whether torch alone has these bytes; False where this torch does not tell."""
    tells = getattr(storage, "resizable", None)
    return tells is not None and bool(tells())


Held = TypeVar("Held")


class Observer(Generic[Held]):
    """Is told of the operators of two steps, and keeps what it finds out of storages. No tensor is kept."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._held: dict[int, Held] = {}
        """By storage: what is known of what it holds."""

    def note(self, call: OperatorCall) -> None:
        """An operator has returned, outside of backward passes."""
        raise NotImplementedError

    def note_backward(self, call: OperatorCall) -> None:
        """An operator of a backward pass has returned."""

    def _held_of(self, tensor: torch.Tensor) -> Held | None:
        return self._held.get(key_of(tensor))

    def _forget(self, values: Iterable[Any]) -> None:
        """Something else is written to the tensors among these."""
        for key in keys_of(values):
            self._held.pop(key, None)

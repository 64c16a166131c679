"""Which operators a result goes on to: a graph of the operators of some steps, and of the storages between them.

No tensor is kept. A weak reference to a storage keeps its number from being given to another one, and not its bytes.
"""

from __future__ import annotations

import weakref
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from deepscope.capture import torch_compat
from deepscope.capture.audit.operator_facts import DROPOUT, OperatorFacts, facts_of, is_plain
from deepscope.capture.audit.places import OperatorCall

_DOUBLE = frozenset({torch.float64, torch.complex128})
untyped_storage = torch.Tensor.untyped_storage
"""As it is before `UnseenUses` takes its place."""


class Returned(NamedTuple):
    """A call of an operator that has returned."""

    facts: OperatorFacts
    function: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    result: Any
    is_view: bool
    """Whether the result is a view of what was given, even if the operator's schema does not say so."""

    @property
    def name(self) -> str:
        """`aten::mm`."""
        return self.facts.name

    @property
    def given(self) -> tuple[Any, ...]:
        """All arguments."""
        return (*self.args, *self.kwargs.values())

    def written(self) -> list[Any]:
        """The arguments that it writes to."""
        places = [self.args[place] for place in self.facts.writes if place < len(self.args)]
        return places + [self.kwargs[name] for name in self.facts.writes_named if name in self.kwargs]

    def draws(self) -> bool:
        """Whether its result may differ from that of the same call; attention without dropout draws nothing."""
        facts = self.facts
        if not facts.is_random or facts.dropout < 0:
            return facts.is_random
        return bool(self.args[facts.dropout] if len(self.args) > facts.dropout else self.kwargs.get(DROPOUT, 0.0))


class Operation:
    """One call of an operator that computes something."""

    __slots__ = (
        "call",
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
        "pass_number",
        "result",
        "result_bytes",
        "shape",
        "step",
        "widens",
    )

    def __init__(self, name: str, call: OperatorCall, step: int) -> None:
        self.name = name
        self.call = call
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
        self.forward_path = call.path
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
        self._facts: dict[Any, OperatorFacts] = {}

    def add(self, returned: Returned, call: OperatorCall, step: int) -> range:
        """A call that has returned; the numbers of its operations: one for each tensor of a list, none for a view."""
        facts, first, given = returned.facts, len(self.operations), returned.given
        if facts.is_view:
            for tensor in tensors_of(given):
                self._storage_of(tensor)
            return range(first, first)
        if facts.is_opaque and not facts.name.startswith("aten::"):
            self.opaque[facts.name] = None
        written = returned.written()
        lists = [one for one in given if isinstance(one, (list, tuple)) and one and isinstance(one[0], torch.Tensor)]
        if facts.is_by_element and lists:
            count = len(lists[0])
            for place in range(count):
                parts = [_elements(values, place, count) for values in (given, written, (returned.result,))]
                self._add_one(Operation(facts.name, call, step), facts, *parts)
        else:
            changed = given if facts.is_opaque else written
            self._add_one(Operation(facts.name, call, step), facts, given, changed, (returned.result,))
        return range(first, len(self.operations))

    def returned(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Returned:
        """A call that a dispatch mode has seen, with what the operator's schema says."""
        facts = self._facts.get(function)
        if facts is None:
            facts = self._facts[function] = facts_of(function)
        is_view = facts.is_view
        if not (is_view or facts.writes or facts.writes_named):
            key = next(self.keys_of((result,)), 0)
            is_view = bool(key) and key in self.keys_of((*args, *kwargs.values()))
        return Returned(facts, function, args, kwargs, result, is_view)

    def _add_one(
        self, operation: Operation, facts: OperatorFacts, given: Sequence[Any], written: Sequence[Any], result: Any
    ) -> None:
        operation.is_sink = facts.is_opaque or facts.reads_to_host or bool(facts.changed_statistics(given))
        number = len(self.operations)
        self.operations.append(operation)
        changed = {id(one): one for one in tensors_of(written)}
        replaced = {key for key, one in changed.items() if facts.replaces and covers_storage(one)}
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

    def key_of(self, tensor: torch.Tensor) -> int:
        """The number of a tensor's storage, which is no other's while the steps are looked at; 0 without one."""
        try:
            return int(untyped_storage(tensor)._cdata)
        except Exception:  # noqa: BLE001 - sparse tensors, and tensors of somebody's own kind
            return 0

    def keys_of(self, values: Iterable[Any]) -> Iterator[int]:
        """The same of each tensor among an operator's arguments or results."""
        return map(self.key_of, tensors_of(values))

    def writers_of(self, tensor: torch.Tensor) -> list[int]:
        """The operations that made what a tensor holds."""
        state = self._storage_of(tensor)
        return [] if state is None else state.writers

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

    def pass_on(self, name: str, tensor: torch.Tensor, call: OperatorCall, step: int) -> int:
        """An operation that passes a tensor on as it is; its number."""
        operation = Operation(name, call, step)
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
        key = self.key_of(tensor) if is_plain(tensor) else 0
        if not key:
            return None
        state = self._storages.get(key)
        if state is None:
            state = self._storages[key] = _Storage(untyped_storage(tensor))
        return state

    def _write(self, tensor: torch.Tensor, number: int, *, is_whole: bool) -> None:
        key = self.key_of(tensor) if is_plain(tensor) else 0
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


def _elements(values: Sequence[Any], place: int, count: int) -> list[Any]:
    """Of each list of so many the one at a place, and all else."""
    return [one[place] if isinstance(one, (list, tuple)) and len(one) == count else one for one in values]


def tensors_of(values: Iterable[Any]) -> Iterator[torch.Tensor]:
    """The tensors among an operator's arguments or results, those in its lists of tensors too."""
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from tensors_of(value)


def values_of(tensor: torch.Tensor) -> torch.Tensor:
    """The numbers that a tensor keeps: of a sparse one those that are not zero, else all of them."""
    if tensor.layout is torch.strided:
        return tensor
    with torch_compat.without_modes(), torch.no_grad():
        found: torch.Tensor = tensor._values() if tensor.layout is torch.sparse_coo else tensor.values()
    return found


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


def covers_storage(tensor: torch.Tensor) -> bool:
    """Whether it has all elements of its storage."""
    try:
        return bool(tensor.numel() * tensor.element_size() == untyped_storage(tensor).nbytes())
    except Exception:  # noqa: BLE001 - as in `key_of`
        return False

"""Which operators of one step compute what another one has computed before them, from the same bytes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import torch

from deepscope.capture.audit.constants import Value, computed_value
from deepscope.capture.audit.flow import Flow, Returned, tensors_of
from deepscope.capture.audit.operator_facts import OperatorFacts


class Repeats:
    """Of the first step. Two storages have the same value if they hold the same because they were made the same way."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._values: dict[int, Value] = {}
        """By storage, of those that were written to."""
        self._first: dict[Value, int] = {}
        """By what is computed: the operation that did so first."""
        self._before: dict[int, int] = {}
        """By operation: the first one that computed the same."""
        self._writers: dict[int, list[int]] = defaultdict(list)
        """By storage: the operations that wrote to it."""

    def note(self, number: int, facts: OperatorFacts, returned: Returned, *, is_reached: Callable[[int], bool]) -> None:
        """An operation that is part of no backward pass and of no data loader.

        `is_reached`: whether a backward pass has come to the node with a number, and so has let go of its graph.
        """
        value = self._value_of(facts, returned)
        if value is None:
            self.spoil(number, facts, returned)
            return
        has_node = self._flow.operations[number].node >= 0
        value = hash((value, has_node))
        first = self._first.setdefault(value, number)
        if has_node and is_reached(self._flow.operations[first].node):
            first = self._first[value] = number
        if first != number and any(True for _ in tensors_of(returned.given)):
            self._before[number] = first
        self._write(number, facts, returned, value)
        for tensor in facts.changed_statistics(returned.args):
            self._values[self._flow.key_of(tensor) or 0] = ("own", number)

    def spoil(self, number: int, facts: OperatorFacts, returned: Returned) -> None:
        """An operation whose results are its own."""
        self._write(number, facts, returned, ("own", number))
        if facts.is_opaque:
            for tensor in tensors_of(returned.given):
                self._values[self._flow.key_of(tensor) or 0] = ("own", number)

    def all(self) -> set[int]:
        """The operations that need not be: what they and the first one made is changed by such operations alone."""
        of_number: dict[int, list[int]] = defaultdict(list)
        for key, writers in self._writers.items():
            for number in writers:
                of_number[number].append(key)
        shared = self._before.keys() | set(self._before.values())
        return {
            number
            for number, first in self._before.items()
            if all(
                later in shared
                for one in (number, first)
                for key in of_number[one]
                for later in self._writers[key]
                if later > one
            )
        }

    def _write(self, number: int, facts: OperatorFacts, returned: Returned, value: Value) -> None:
        changed = (*facts.written(returned.args, returned.kwargs), returned.result)
        for place, tensor in enumerate(tensors_of(changed)):
            key = self._flow.key_of(tensor)
            if key:
                self._values[key] = hash((value, place))
                self._writers[key].append(number)

    def _value_of(self, facts: OperatorFacts, returned: Returned) -> Value | None:
        """A batch norm that trains computes nothing from the running statistics that it changes."""
        statistics = {id(one) for one in facts.changed_statistics(returned.args)}
        args = tuple(None if id(one) in statistics else one for one in returned.args)
        return computed_value(facts, returned._replace(args=args), self._value_of_tensor)

    def _value_of_tensor(self, tensor: torch.Tensor) -> Value | None:
        key = self._flow.key_of(tensor)
        if not key or self._flow.is_used_unseen(key):
            return None
        value = self._values.get(key, ("given", key))
        return value, tensor.dtype, tensor.requires_grad, tensor.is_conj() or tensor.is_neg()

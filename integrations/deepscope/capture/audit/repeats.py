"""Which operators compute what another one has computed before them, from the same bytes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Set

import torch

from deepscope.capture.audit.constants import Value, computed_value
from deepscope.capture.audit.flow import Flow, Returned, tensors_of


class _Values:
    """By storage. Two have the same value if they hold the same because they were made the same way.

    Writing to the storages that are `kept` gives them no other value.
    """

    def __init__(self, flow: Flow, kept: Set[int] = frozenset()) -> None:
        self._flow = flow
        self._kept = kept
        self._values: dict[int, Value] = {}
        """Of those that were written to."""

    def computed(self, returned: Returned) -> Value | None:
        """What a call computes. A batch norm that trains computes nothing from the running statistics it changes."""
        statistics = {id(one) for one in returned.facts.changed_statistics(returned.args)}
        args = tuple(None if id(one) in statistics else one for one in returned.args)
        return computed_value(returned._replace(args=args), self._of_tensor)

    def write(self, number: int, returned: Returned, value: Value | None) -> list[int]:
        """What an operation has written has the value of what it computes, or one of its own; its storages."""
        made = ("own", number)
        written: list[int] = []
        changed = (*returned.written(), returned.result)
        for place, key in enumerate(self._flow.keys_of(changed)):
            if key and key not in self._kept:
                self._values[key] = hash((made if value is None else value, place))
                written.append(key)
        if value is None:
            self._own(made, returned.given if returned.facts.is_opaque else ())
        else:
            self._own(made, returned.facts.changed_statistics(returned.args))
        return written

    def _own(self, made: Value, values: Iterable[object]) -> None:
        self._values.update(dict.fromkeys(self._flow.keys_of(values), made))

    def _of_tensor(self, tensor: torch.Tensor) -> Value | None:
        key = self._flow.key_of(tensor)
        if not key or self._flow.is_used_unseen(key):
            return None
        return self._values.get(key, ("given", key)), tensor.dtype, tensor.is_conj() or tensor.is_neg()


class Repeats:
    """Of the first step."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._values = _Values(flow)
        self._first: dict[Value, int] = {}
        """By what is computed: the operation that did so first."""
        self._before: dict[int, int] = {}
        """By operation: the first one that computed the same."""
        self._writers: dict[int, list[int]] = defaultdict(list)
        """By storage: the operations that wrote to it."""

    def note(self, number: int, returned: Returned, *, is_reached: Callable[[int], bool]) -> None:
        """An operation that is part of no backward pass and of no data loader.

        `is_reached`: whether a backward pass has come to the node with a number, and so has let go of its graph.
        """
        value = self._values.computed(returned)
        if value is not None:
            needs_graph = tuple(one.requires_grad for one in tensors_of(returned.given))
            has_node = self._flow.operations[number].node >= 0
            value = hash((value, needs_graph, has_node))
            first = self._first.setdefault(value, number)
            if has_node and is_reached(self._flow.operations[first].node):
                first = self._first[value] = number
            if first != number and needs_graph:
                self._before[number] = first
        self._write(number, returned, value)

    def spoil(self, number: int, returned: Returned) -> None:
        """An operation whose results are its own."""
        self._write(number, returned, None)

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

    def _write(self, number: int, returned: Returned, value: Value | None) -> None:
        for key in self._values.write(number, returned, value):
            self._writers[key].append(number)


class Reruns:
    """Of both steps: what a differentiated pass has computed, computed again for no backward pass.

    An update of the `parameters` (their storages) in between does not count: one more step old, the earlier result says
    as much to a log or a discriminator.
    """

    def __init__(self, flow: Flow, parameters: Set[int]) -> None:
        self._flow = flow
        self._values = _Values(flow, parameters)
        self._first: dict[Value, int] = {}
        self._before: dict[int, int] = {}

    def note(self, number: int, returned: Returned) -> None:
        """An operation that is part of no backward pass and of no data loader."""
        value = self._values.computed(returned)
        if value is not None and any(True for _ in tensors_of(returned.given)):
            first = self._first.setdefault(value, number)
            if first != number:
                self._before[number] = first
        self._values.write(number, returned, value)

    def spoil(self, number: int, returned: Returned) -> None:
        """An operation whose results are its own."""
        self._values.write(number, returned, None)

    def all(self, is_reached: Callable[[int], bool]) -> set[int]:
        """`is_reached`: whether a backward pass has come to the node with a number."""
        operations = self._flow.operations
        return {
            number
            for number, first in self._before.items()
            if is_reached(operations[first].node) and not is_reached(operations[number].node)
        }

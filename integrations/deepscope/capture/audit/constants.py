"""Which operators compute the same in each step: from numbers alone, or from tensors that no step changes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import torch

from deepscope.capture.audit.flow import Flow, Returned, tensors_of
from deepscope.capture.audit.operator_facts import OperatorFacts

Value = Hashable
"""Equal for two tensors that hold the same because they were computed in the same way."""


class Constants:
    """Of some steps; `fixed` are the storages that no step changes."""

    def __init__(self, flow: Flow, fixed: Iterable[int]) -> None:
        self._flow = flow
        self._values: dict[int, Value] = {key: ("fixed", key) for key in fixed}
        """By storage: how its bytes came about; only of those that are the same in each step."""
        self._made: list[tuple[int, Value, list[int]]] = []
        """Operation, what it computes, and the storages that it writes to."""
        self._spoiled: dict[int, int] = {}
        """By storage: the last operation that wrote to it what differs from step to step."""

    def note(self, number: int, facts: OperatorFacts, returned: Returned) -> None:
        """An operator has returned, outside of backward passes."""
        value = self._value_of(facts, returned)
        changed = (returned.result, *facts.written(returned.args, returned.kwargs))
        written = [key for one in tensors_of(changed) if (key := self._flow.key_of(one))]
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

    def same(self) -> list[int]:
        """The operations of the first step that the second one has, too, and whose results nothing changes."""
        operations = self._flow.operations
        later = {value for number, value, _ in self._made if operations[number].step == 1}
        return [
            number
            for number, value, written in self._made
            if operations[number].step == 0
            and value in later
            and not any(self._spoiled.get(key, -1) > number for key in written)
        ]

    def _value_of(self, facts: OperatorFacts, returned: Returned) -> Value | None:
        if facts.is_opaque or facts.is_random or facts.reads_to_host:
            return None
        parts: list[Value] = [facts.name]
        for one in (*returned.args, *sorted(returned.kwargs.items())):
            tensors = list(tensors_of(one if isinstance(one, (list, tuple)) else (one,)))
            if not tensors:
                parts.append(repr(one))
            for tensor in tensors:
                value = self._values.get(self._flow.key_of(tensor) or 0)
                if value is None or tensor.requires_grad:
                    return None
                parts.append((value, tensor.storage_offset(), tuple(tensor.shape), tensor.stride()))
        return hash(tuple(parts))


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
                if isinstance(tensor, torch.Tensor) and id(tensor) not in changed and not tensor.requires_grad:
                    key = flow.key_of(tensor)
                    if key:
                        found.add(key)
    return found

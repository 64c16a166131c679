"""Counts what a model does, operator by operator, as torch dispatches it, and knows the module of each.

A backward operator belongs to the module that was running when the node of autograd's graph was made for which it
works. Nodes are numbered in the order in which they are made, so the numbers at which modules begin and end tell.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.utils._python_dispatch import TorchDispatchMode

from deepscope.capture import torch_compat
from deepscope.measure.calls import cost_of, new_bytes

_QUESTIONS = {
    f"aten::{sym}{word}"
    for sym in ("", "sym_")
    for word in ("is_contiguous", "numel", "size", "storage_offset", "stride")
} | {"aten::dim", "aten::is_non_overlapping_and_dense", "aten::is_strides_like_format"}
"""What torch asks subclasses of tensors that answer for themselves, nested ones among them."""


@dataclass(eq=False)
class ModuleCall:
    """A module in the call of another; the outermost has no module."""

    module: nn.Module | None = None
    parent: ModuleCall | None = None
    inner: dict[int, ModuleCall] = field(default_factory=dict)
    """By the identity of the module, which this keeps alive."""
    calls: int = 0
    tallies: dict[str, Tally] = field(default_factory=dict)
    """By operator."""

    def within(self) -> Iterator[ModuleCall]:
        """This one and all below it."""
        yield self
        for one in self.inner.values():
            yield from one.within()


@dataclass
class Tally:
    """Sums over calls of one operator."""

    calls: int = 0
    flops: int = 0
    backward_flops: int = 0
    activation_bytes: int = 0
    moved_bytes: int = 0

    def add(self, other: Tally) -> None:
        """Take the sums of another."""
        self.calls += other.calls
        self.flops += other.flops
        self.backward_flops += other.backward_flops
        self.activation_bytes += other.activation_bytes
        self.moved_bytes += other.moved_bytes


class Counting(TorchDispatchMode):  # type: ignore[misc]  # torch is not looked into
    """Counts while it is entered, on the thread that enters it and on autograd's."""

    supports_higher_order_operators = True  # torch asks modes for this from 2.7 on

    def __init__(self) -> None:
        super().__init__()
        self.root = ModuleCall()
        self.without_formula: Counter[str] = Counter()
        self._at: dict[int, ModuleCall] = {}
        """The running module by thread."""
        self._numbers: list[int] = [0]
        self._places: list[ModuleCall] = [self.root]
        """From the node of the same place in `_numbers` on, this was running."""
        self._thread = threading.get_ident()
        self._is_aside = False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        del types
        kwargs = kwargs or {}
        if not isinstance(func, torch._ops.OpOverload):
            self.without_formula[str(func)] += 1
            return func(*args, **kwargs)
        name: str = func._schema.name
        if name in _QUESTIONS:
            return NotImplemented
        if self._is_aside or name.startswith("prim::"):  # what FakeTensor asks for its device
            return func(*args, **kwargs)
        cost = cost_of(func, args, kwargs)
        if not cost.flops:
            # Without autograd an operator that is made of others comes as it is.
            with self:
                result = func.decompose(*args, **kwargs)
            if result is not NotImplemented:
                return result
        result = func(*args, **kwargs)
        place, is_backward = self._place()
        tally = place.tallies.get(name)
        if tally is None:
            tally = place.tallies[name] = Tally()
        if not cost.is_known:
            self.without_formula[name] += 1
        tally.calls += 1
        tally.flops += cost.flops
        tally.moved_bytes += cost.moved_bytes
        if is_backward:
            tally.backward_flops += cost.flops
        else:
            tally.activation_bytes += new_bytes(func, args, kwargs, result)
        return result

    def _place(self) -> tuple[ModuleCall, bool]:
        """The module that an operator belongs to, and whether it works for the backward pass."""
        here = self._at.get(threading.get_ident(), self.root)
        number = torch_compat.running_node_number()
        if number is None:
            return here, False
        if here is not self.root:  # computed anew by checkpointing, which calls the module again
            return here, True
        return self._places[bisect_right(self._numbers, number) - 1], True

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Within it, nothing is counted."""
        self._is_aside = True
        try:
            yield
        finally:
            self._is_aside = False

    @contextmanager
    def modules(self) -> Iterator[None]:
        """Within it, calls of modules are seen."""
        hooks = [
            register_module_forward_pre_hook(self._enter),
            register_module_forward_hook(self._leave, always_call=True),
        ]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()

    def _enter(self, module: nn.Module, _inputs: Any) -> None:
        parent = self._at.get(threading.get_ident(), self.root)
        place = parent.inner.get(id(module))
        if place is None:
            place = parent.inner[id(module)] = ModuleCall(module, parent)
        if torch_compat.running_node_number() is None:
            place.calls += 1
        self._go_to(place)

    def _leave(self, module: nn.Module, _inputs: Any, _result: Any) -> None:
        place: ModuleCall | None = self._at.get(threading.get_ident(), self.root)
        while place is not None and place.module is not module:  # one whose hook failed
            place = place.parent
        if place is not None and place.parent is not None:
            self._go_to(place.parent)

    def _go_to(self, place: ModuleCall) -> None:
        thread = threading.get_ident()
        self._at[thread] = place
        if thread == self._thread:
            self._numbers.append(torch_compat.next_node_number())
            self._places.append(place)

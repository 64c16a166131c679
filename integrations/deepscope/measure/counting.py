"""Counts what a model does, operator by operator, as torch dispatches it, and knows the module of each.

A backward operator belongs to the module that was running when the node of autograd's graph was made for which it
works. Nodes are numbered in the order in which they are made, so the numbers at which modules begin and end tell.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.nn.parameter import is_lazy
from torch.utils._python_dispatch import TorchDispatchMode

from deepscope.analysis.numbers.arguments import Argument, Tensor
from deepscope.analysis.numbers.byte_formulas import bytes_of_call
from deepscope.analysis.numbers.flop_formulas import FORMULAS, flops_of_call, lacks_formula
from deepscope.capture import torch_compat


class Cost(NamedTuple):
    """What a call takes."""

    flops: int
    moved_bytes: int
    is_known: bool
    """False where it may take FLOPs that no formula tells."""


def cost_of(operator: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Cost:
    """The cost of one call of a `torch._ops.OpOverload`."""
    name: str = operator._schema.name
    values = list(_by_place(operator._schema, args, kwargs))
    given = [_argument(value) for value in values]
    words = [_word(value) for value in values]
    flops = flops_of_call(name, [_shape(one) for one in given], words) if name in FORMULAS else None
    return Cost(flops or 0, bytes_of_call(name, given, words) or 0, flops is not None or _takes_none(name))


def _takes_none(name: str) -> bool:
    is_own = name.partition("::")[0] in {"aten", "prim", "prims"}
    return is_own and name not in FORMULAS and not lacks_formula(name)


def _by_place(schema: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[Any]:
    """The values of all arguments in the order of the schema, which is that of a trace."""
    for place, argument in enumerate(schema.arguments):
        if place < len(args):
            yield args[place]
        else:
            yield kwargs.get(argument.name, argument.default_value)


def _argument(value: Any) -> Argument:
    if isinstance(value, torch.Tensor):
        return None if is_lazy(value) or not _is_dense(value) else _tensor(value)
    if isinstance(value, list | tuple) and value and all(isinstance(one, torch.Tensor) for one in value):
        return [_tensor(one) for one in value]
    return None


def _is_dense(value: torch.Tensor) -> bool:
    """Whether its sizes say what it holds."""
    return not value.is_nested and value.layout in (torch.strided, torch._mkldnn)


def _tensor(value: torch.Tensor) -> Tensor:
    name = str(value.dtype).removeprefix("torch.")
    is_strided = value.layout is torch.strided and not value.is_nested
    strides = tuple(int(stride) for stride in value.stride()) if is_strided else ()
    sizes = () if value.is_nested else tuple(int(size) for size in value.shape)
    return Tensor(sizes, "float8" if name.startswith("float8") else name, value.element_size(), strides)


def _shape(argument: Argument) -> list[Any]:
    if isinstance(argument, Tensor):
        return list(argument.sizes)
    return [list(one.sizes) for one in argument or ()]


def _word(value: Any) -> str:
    """As `Concrete Inputs` has it: numbers, flags and lists of them."""
    if value is None or isinstance(value, torch.Tensor):
        return ""
    if isinstance(value, list | tuple):
        return "" if any(isinstance(one, torch.Tensor) for one in value) else str(list(value))
    return str(value)


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """The tensors in a result or in arguments, however lists, tuples, dicts and dataclasses hold them."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from tensors_in(one)
    elif isinstance(value, list | tuple | set):
        for one in value:
            yield from tensors_in(one)
    elif hasattr(value, "__dataclass_fields__"):
        for name in value.__dataclass_fields__:
            yield from tensors_in(getattr(value, name, None))


def new_bytes(operator: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> int:
    """Bytes of the results that a call wrote to memory of their own: no view, and nothing written in place."""
    if not operator._schema.returns:  # it checks, or writes to its arguments
        return 0
    results = result if isinstance(result, list | tuple) else (result,)
    fresh = [
        one
        for one, declared in zip(results, _declared_returns(operator._schema.returns, len(results)), strict=True)
        if declared.alias_info is None
        for one in tensors_in(one)
        if one.numel()
    ]
    if not fresh:
        return 0
    taken = {_storage(one) for one in (*tensors_in(args), *tensors_in(kwargs))}
    return sum(one.numel() * one.element_size() for one in fresh if _storage(one) not in taken)


def _declared_returns(returns: Sequence[Any], count: int) -> Sequence[Any]:
    """What the schema says of each result; of a list of tensors it speaks once."""
    return returns if len(returns) == count else [returns[0]] * count


def _storage(tensor: torch.Tensor) -> int:
    """Identity of the memory; of a tensor that shows none (a subclass, a sparse one) its own."""
    try:
        return int(tensor.untyped_storage()._cdata)
    except (RuntimeError, NotImplementedError, AttributeError):
        return id(tensor)


def module_of(function: Callable[..., Any]) -> nn.Module | None:
    """The module that is called, itself or by one of its methods; None for any other function."""
    owner = function if isinstance(function, nn.Module) else getattr(function, "__self__", None)
    return owner if isinstance(owner, nn.Module) else None


def name_of(function: Callable[..., Any]) -> str:
    """The class of a module (of a compiled one, of what was compiled), or a function's name."""
    if isinstance(function, nn.Module):
        return type(torch_compat.uncompiled(function)).__qualname__
    return str(getattr(function, "__qualname__", type(function).__qualname__))


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

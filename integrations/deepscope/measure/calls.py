"""One call of an operator as torch dispatches it, in the form in which a trace tells it.

So the formulas of FLOPs and bytes are the same for both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from deepscope.analysis.numbers.arguments import Argument, Tensor
from deepscope.analysis.numbers.byte_formulas import bytes_of_call
from deepscope.analysis.numbers.flop_formulas import FORMULAS, flops_of_call, lacks_formula


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
        return type(getattr(function, "_orig_mod", function)).__qualname__
    return str(getattr(function, "__qualname__", type(function).__qualname__))

"""A call of an operator: what its schema says, its tensors, and from where it was called."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from deepscope.capture import torch_compat
from deepscope.capture.audit.call_paths import CallSite


def aten(names: str) -> frozenset[str]:
    """The operators `aten::…` of these names."""
    return frozenset(f"aten::{name}" for name in names.split())


_OF_TORCH = frozenset({"aten", "prims", "prim", "profiler", "inductor_prims", "quantized", "torchvision"})
"""Namespaces of operators that do nothing but what their schema says."""
_TO_HOST = aten("_local_scalar_dense equal is_nonzero item")
_REPLACING = aten("zero_ _foreach_zero_ fill_ copy_ normal_")
"""What stood in the tensor before does not matter to them."""
_POINTWISE = getattr(torch.Tag, "pointwise", None)
MATRIX_PRODUCTS = aten("mm addmm bmm baddbmm")
JOINS = aten("cat stack")
COPIES = aten("clone _to_copy")
"""They make a tensor of the same elements."""
ATTENTION = "aten::_scaled_dot_product_"
"""How the names of attention's operators begin."""
_RANDOM = torch.Tag.nondeterministic_seeded
_STATISTICS, _TRAINS = slice(3, 5), 5
"""Among the arguments of a batch norm: its statistics, and whether it trains."""
_DROPOUT = "dropout_p"
_BY_ELEMENT = ("aten::_foreach_", "aten::_fused_", "aten::_amp_foreach_")
_REBINDING = aten("set_ resize_ set_data")


class OperatorSchema(NamedTuple):
    """Of one overload of an operator."""

    name: str
    """`aten::mm`."""
    writes: tuple[int, ...]
    """Places of the arguments that it writes to."""
    writes_named: tuple[str, ...]
    is_view: bool
    is_opaque: bool
    """It may do more than its schema says."""
    reads_to_host: bool
    replaces: bool
    """Nothing of what stood in the tensors that it writes to is left, where they cover their storages."""
    is_random: bool
    """Or its result is not defined."""
    dropout: int
    """The place of the share that it drops at random; -1 for none."""
    has_statistics: bool
    """It may change running statistics that its schema does not name."""
    is_by_element: bool
    """It does the same to each tensor of its lists, and nothing across them."""

    def written(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """The arguments of a call that it writes to."""
        places = [args[place] for place in self.writes if place < len(args)]
        return places + [kwargs[name] for name in self.writes_named if name in kwargs]

    def changed_statistics(self, args: Sequence[Any]) -> list[torch.Tensor]:
        """The running statistics that a call changes: those of a batch norm that trains and has some."""
        found = args[_STATISTICS] if self.has_statistics and (len(args) <= _TRAINS or args[_TRAINS]) else ()
        return [one for one in found if isinstance(one, torch.Tensor)]


def schema_of(function: Any) -> OperatorSchema:
    """Of what a dispatch mode is called with."""
    schema = getattr(function, "_schema", None)
    if schema is None:  # a higher-order operator
        return OperatorSchema(str(function), (), (), False, True, False, False, True, -1, False, False)
    name: str = schema.name
    written = [
        (place, one)
        for place, one in enumerate(schema.arguments)
        if one.alias_info is not None and one.alias_info.is_write
    ]
    aliases = [one.alias_info for one in schema.returns if one.alias_info is not None]
    return OperatorSchema(
        name,
        tuple(place for place, one in written if not one.kwarg_only),
        tuple(one.name for _, one in written),
        is_view=not written and bool(aliases),
        is_opaque=name.partition("::")[0] not in _OF_TORCH or name in _REBINDING,
        reads_to_host=name in _TO_HOST,
        replaces=name in _REPLACING,
        is_random=_RANDOM in getattr(function, "tags", ()) or name.startswith(("aten::empty", "aten::new_empty")),
        dropout=next((place for place, one in enumerate(schema.arguments) if one.name == _DROPOUT), -1),
        has_statistics="batch_norm" in name and "backward" not in name,
        is_by_element=name.startswith(_BY_ELEMENT),
    )


class OperatorCall(NamedTuple):
    """A call of an operator that has returned."""

    schema: OperatorSchema
    function: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    result: Any
    written: list[Any]
    """The arguments that it writes to."""
    is_view: bool
    """Whether the result is a view of what was given, even if the operator's schema does not say so."""
    site: CallSite
    step: int
    numbers: range
    """Of its operations: one for each tensor of a list, none for a view."""

    @property
    def name(self) -> str:
        """`aten::mm`."""
        return self.schema.name

    @property
    def given(self) -> tuple[Any, ...]:
        """All arguments."""
        return (*self.args, *self.kwargs.values())

    @property
    def number(self) -> int:
        """Of its only operation; -1 where it has none, or several."""
        return self.numbers[0] if len(self.numbers) == 1 else -1

    @property
    def is_of_first_step(self) -> bool:
        """Whether it is the first step's own work; what data loaders call is not."""
        return not self.step and not self.site.is_loading

    def draws(self) -> bool:
        """Whether its result may differ from that of the same call; attention without dropout draws nothing."""
        schema = self.schema
        if not schema.is_random or schema.dropout < 0:
            return schema.is_random
        return bool(self.args[schema.dropout] if len(self.args) > schema.dropout else self.kwargs.get(_DROPOUT, 0.0))


untyped_storage = torch.Tensor.untyped_storage
"""As it is before `UnseenUses` takes its place."""


def key_of(tensor: torch.Tensor) -> int:
    """The number of a tensor's storage, which is no other's as long as a `Flow` knows it; 0 without one."""
    try:
        return int(untyped_storage(tensor)._cdata)
    except Exception:  # noqa: BLE001 - sparse tensors, and tensors of somebody's own kind
        return 0


def keys_of(values: Iterable[Any]) -> Iterator[int]:
    """The same of each tensor among an operator's arguments or results."""
    return map(key_of, tensors_of(values))


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


def storage_bytes(tensor: torch.Tensor) -> int:
    """The size of a tensor's storage; -1 without one."""
    try:
        return int(untyped_storage(tensor).nbytes())
    except Exception:  # noqa: BLE001 - as in `key_of`
        return -1


def covers_storage(tensor: torch.Tensor) -> bool:
    """Whether it has all elements of its storage."""
    return bool(tensor.numel() * tensor.element_size() == storage_bytes(tensor))


def is_pointwise(function: Any) -> bool:
    """Whether torch says of an operator that it computes each element by itself."""
    return _POINTWISE in getattr(function, "tags", ())


def is_plain(tensor: torch.Tensor) -> bool:
    """Whether torch alone says what becomes of the tensor's bytes."""
    kind = type(tensor)
    return (
        kind is torch.Tensor
        or kind is torch.nn.Parameter
        or (not hasattr(kind, "__tensor_flatten__") and (kind.__torch_dispatch__ is torch.Tensor.__torch_dispatch__))
    )


def is_strided(tensor: torch.Tensor) -> bool:
    """Whether its elements lie in a storage by shape and strides."""
    return is_plain(tensor) and tensor.layout is torch.strided and not tensor.is_nested

"""What an operator's schema says of it: what it writes, and whether its result is a view."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

_OF_TORCH = frozenset({"aten", "prims", "prim", "profiler", "inductor_prims", "quantized", "torchvision"})
"""Namespaces of operators that do nothing but what their schema says."""
_TO_HOST = frozenset({"aten::_local_scalar_dense", "aten::equal", "aten::is_nonzero", "aten::item"})
_REPLACING = frozenset({"aten::zero_", "aten::_foreach_zero_", "aten::fill_", "aten::copy_", "aten::normal_"})
"""What stood in the tensor before does not matter to them."""
_RANDOM = torch.Tag.nondeterministic_seeded
_STATISTICS, _TRAINS = slice(3, 5), 5
"""Among the arguments of a batch norm: its statistics, and whether it trains."""
DROPOUT = "dropout_p"
_BY_ELEMENT = ("aten::_foreach_", "aten::_fused_", "aten::_amp_foreach_")
_REBINDING = frozenset({"aten::set_", "aten::resize_", "aten::set_data"})


class OperatorFacts(NamedTuple):
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

    def changed_statistics(self, args: Sequence[Any]) -> list[torch.Tensor]:
        """The running statistics that a call changes: those of a batch norm that trains and has some."""
        found = args[_STATISTICS] if self.has_statistics and (len(args) <= _TRAINS or args[_TRAINS]) else ()
        return [one for one in found if isinstance(one, torch.Tensor)]


def facts_of(function: Any) -> OperatorFacts:
    """Of what a dispatch mode is called with."""
    schema = getattr(function, "_schema", None)
    if schema is None:  # a higher-order operator
        return OperatorFacts(str(function), (), (), False, True, False, False, True, -1, False, False)
    name: str = schema.name
    written = [
        (place, one)
        for place, one in enumerate(schema.arguments)
        if one.alias_info is not None and one.alias_info.is_write
    ]
    aliases = [one.alias_info for one in schema.returns if one.alias_info is not None]
    return OperatorFacts(
        name,
        tuple(place for place, one in written if not one.kwarg_only),
        tuple(one.name for _, one in written),
        is_view=not written and bool(aliases),
        is_opaque=name.partition("::")[0] not in _OF_TORCH or name in _REBINDING,
        reads_to_host=name in _TO_HOST,
        replaces=name in _REPLACING,
        is_random=_RANDOM in getattr(function, "tags", ()) or name.startswith(("aten::empty", "aten::new_empty")),
        dropout=next((place for place, one in enumerate(schema.arguments) if one.name == DROPOUT), -1),
        has_statistics="batch_norm" in name and "backward" not in name,
        is_by_element=name.startswith(_BY_ELEMENT),
    )


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

"""Which operators copy, and whether somebody needs the other layout of a copy."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable
from typing import Any

import torch

from deepscope.capture import torch_compat
from deepscope.capture.audit.flow import Flow, Returned, tensors_of, untyped_storage
from deepscope.capture.audit.operator_facts import is_plain

Strides = tuple[int, ...]
_View = tuple[int, tuple[int, ...], Strides, int]
"""A tensor's storage, shape, strides and offset."""

_LEAST_RUN = 64
"""Operators by element are as fast on an expanded tensor if so many of its elements lie in a row."""
_PRODUCTS = frozenset(f"aten::{name}" for name in ("mm", "addmm", "bmm", "baddbmm"))
_ATTENTION = "aten::_scaled_dot_product_"
_ARITHMETIC = frozenset(f"aten::{name}{tail}" for name in ("add", "sub", "mul", "div") for tail in ("", "_"))
_BY_PLACE = frozenset({"aten::as_strided"})
"""Views whose arguments say where in the storage they are."""
_POINTWISE = getattr(torch.Tag, "pointwise", None)


class SourceLayout:
    """The tensors that view a copy, each with the strides it would have if the source had not been copied.

    Results of attention lie as its queries do, and so count as well.
    """

    def __init__(self, flow: Flow, copied: torch.Tensor, strides: Strides) -> None:
        self._flow = flow
        self.results: set[int] = set()
        """The storages of results that would lie otherwise."""
        self._strides: dict[_View, Strides] = {self._view(copied): strides}
        self._copied = self._view(copied)[0]

    def follow(self, returned: Returned) -> bool:
        """A view was made; False if the source has none like it."""
        views = None if returned.name in _BY_PLACE else self._on_source(returned)
        if views is None:
            return False
        for tensor, other in zip(tensors_of((returned.result,)), views, strict=True):
            self._strides[self._view(tensor)] = other.stride()
        return True

    def suits(self, returned: Returned) -> bool:
        """Whether an operator reads the source as fast as the copy, and its results lie as they do or are followed."""
        if not all(self._is_as_fast(one, returned) for one in tensors_of(returned.given)):
            return False
        others = self._on_source(returned)
        results = list(tensors_of((returned.result,)))
        if others is None or len(others) != len(results):
            return False
        differing = [pair for pair in zip(results, others, strict=True) if pair[0].stride() != pair[1].stride()]
        for tensor, other in differing:
            self.results.add(self._flow.key_of(tensor))
            self._strides[self._view(tensor)] = other.stride()
        return not differing or returned.name.startswith(_ATTENTION)

    def _is_as_fast(self, tensor: torch.Tensor, returned: Returned) -> bool:
        if not self._is_followed(tensor):
            return True
        strides = self._strides.get(self._view(tensor))
        return strides is not None and _is_as_fast(returned.name, returned.function, tuple(tensor.shape), strides)

    def _is_followed(self, tensor: torch.Tensor) -> bool:
        key = self._flow.key_of(tensor)
        return key == self._copied or key in self.results

    def _view(self, tensor: torch.Tensor) -> _View:
        return self._flow.key_of(tensor), tuple(tensor.shape), tuple(tensor.stride()), tensor.storage_offset()

    def _on_source(self, returned: Returned) -> list[torch.Tensor] | None:
        """The results on tensors without bytes that lie as the source does; None where it cannot be said."""
        try:
            with torch_compat.without_modes():
                args = [self._without_bytes(one) for one in returned.args]
                named = {key: self._without_bytes(one) for key, one in returned.kwargs.items()}
                return list(tensors_of((returned.function(*args, **named),)))
        except Exception:  # noqa: BLE001 - no such view, or no version for tensors without bytes
            return None

    def _without_bytes(self, value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return type(value)(self._without_bytes(one) for one in value)
        if not isinstance(value, torch.Tensor):
            return value
        strides = self._strides[self._view(value)] if self._is_followed(value) else value.stride()
        return torch.empty_strided(value.shape, strides, dtype=value.dtype, device="meta")


def source_strides(source: torch.Tensor, copied: torch.Tensor) -> Strides | None:
    """The strides of a tensor, expanded to the shape of a copy that may repeat it; None where that is not possible."""
    try:
        with torch_compat.without_modes():
            lying = torch.empty_strided(source.shape, source.stride(), dtype=source.dtype, device="meta")
            return tuple(lying.expand(copied.shape).stride())
    except RuntimeError:
        return None


def is_laid_out_alike(source: torch.Tensor, copied: torch.Tensor) -> bool:
    """Whether both have the same shape and strides, those of dimensions with one element apart."""
    dimensions = [_dimensions(one.shape, one.stride()) for one in (source, copied)]
    return source.shape == copied.shape and dimensions[0] == dimensions[1]


def _is_as_fast(name: str, function: Any, shape: tuple[int, ...], strides: Strides) -> bool:
    dimensions = _dimensions(shape, strides)
    if _run(dimensions, 1) == math.prod(shape):
        return True
    if name in _PRODUCTS:
        return _is_matrix(shape, strides)
    if name.startswith(_ATTENTION):
        return strides[-1:] == (1,)
    is_pointwise = _POINTWISE in getattr(function, "tags", ())
    return is_pointwise and _is_expanded(dimensions, is_arithmetic=name in _ARITHMETIC)


def _is_matrix(shape: tuple[int, ...], strides: Strides) -> bool:
    """Whether BLAS takes it as it is, or as the transposed of another."""
    if len(shape) < 2:
        return False
    (rows, columns), (by_row, by_column) = shape[-2:], strides[-2:]
    return (by_column == 1 and by_row >= max(1, columns)) or (by_row == 1 and by_column >= max(1, rows))


def _is_expanded(dimensions: list[tuple[int, int]], *, is_arithmetic: bool) -> bool:
    """Whether it has the elements of a smaller tensor several times, in their order, with long runs of them.

    Runs of one element take arithmetic alone, which has loops of its own for them.
    """
    expanded = [size for size, stride in dimensions if stride == 0]
    distinct = [stride for _, stride in dimensions if stride]
    if not expanded or distinct != sorted(distinct, reverse=True):
        return False
    if dimensions[-1][1] == 0:
        return is_arithmetic and _run(dimensions, 0) >= _LEAST_RUN
    return _run(dimensions, 1) >= _LEAST_RUN


def _run(dimensions: list[tuple[int, int]], step: int) -> int:
    """How many elements at the end lie `step` apart from each other."""
    length = 1
    for size, stride in reversed(dimensions):
        if stride != step * length:
            break
        length *= size
    return length


def _dimensions(shape: Iterable[int], strides: Iterable[int]) -> list[tuple[int, int]]:
    """Sizes and strides of the dimensions that have more than one element."""
    return [(size, stride) for size, stride in zip(shape, strides, strict=True) if size != 1]


_COPYING = frozenset({"aten::clone", "aten::repeat", "aten::_to_copy"})
_INTO_NEW_STORAGE = "aten::copy_"
"""As `copy.deepcopy` copies the bytes of a tensor."""
_TAKES_STORAGE = "aten::set_"


class Copy:
    """One copy, by the storages of what was copied and of what was made."""

    __slots__ = (
        "changed_at",
        "is_alike",
        "is_changed",
        "is_known",
        "is_torchs",
        "last_read",
        "layout",
        "number",
        "outlives_source",
        "reader",
        "recipe",
        "result",
        "result_bytes",
        "source",
        "source_bytes",
    )

    def __init__(self, number: int, source: int, result: int, recipe: Hashable) -> None:
        self.number = number
        self.source = source
        self.result = result
        self.recipe = recipe
        """Equal for two copies of the same bytes in the same way."""
        self.is_torchs = self.is_known = False
        """Whether torch allocated the source's bytes, and whether nobody but its operators writes to them."""
        self.is_alike = False
        """Whether the copy is as the source is: in type, device, shape and strides."""
        self.layout: SourceLayout | None = None
        """Of a copy that differs in its strides alone; None from the first reader on that needs them."""
        self.is_changed = False
        """Something was written to the copy, or may have been."""
        self.changed_at: int | None = None
        """The first operation that wrote to the source behind the copy."""
        self.last_read = -1
        """The last operation that read the copy."""
        self.reader = ""
        """The name of the first one."""
        self.result_bytes = self.source_bytes = 0
        """Of their storages."""
        self.outlives_source = False
        """Whether the source's storage had gone when the copy was read."""


class Copies:
    """Of the first step; `parameters` are the storages of parameters."""

    def __init__(self, flow: Flow, parameters: Iterable[int]) -> None:
        self.all: list[Copy] = []
        self._flow = flow
        self._parameters = frozenset(parameters)
        self._of_result: dict[int, list[Copy]] = defaultdict(list)
        self._of_source: dict[int, list[Copy]] = defaultdict(list)

    def note(self, added: range, returned: Returned, *, may_begin: bool) -> None:
        """An operator has returned; `may_begin`: whether it may be a copy that a line of the first step makes."""
        if self._of_result:
            self._follow(added, returned)
        if may_begin and len(added) == 1:
            self._begin(added[0], returned)

    def is_only_read(self, one: Copy) -> bool:
        """Whether a copy was read and let go of, and nobody wrote to it, or may have."""
        flow = self._flow
        results = {one.result, *(one.layout.results if one.layout is not None else ())}
        is_read = one.last_read >= 0 and not one.is_changed
        return is_read and all(map(flow.is_gone, results)) and not any(map(flow.is_used_unseen, results))

    def shows_changes(self, one: Copy) -> bool:
        """Whether all that is written to the source shows in operators; what is let go of has no other user."""
        is_known = one.is_known or (one.is_torchs and self._flow.is_gone(one.source))
        return is_known and not self._flow.is_used_unseen(one.source)

    def _follow(self, added: range, returned: Returned) -> None:
        facts, keys_of = returned.facts, self._flow.keys_of
        number = added[-1] if added else -1
        written: set[int] = set()
        if not facts.is_view:
            changed = returned.given if facts.is_opaque else returned.written()
            written.update(keys_of((returned.result, *changed)))
        for key in written:
            for one in self._of_source.get(key, ()):
                one.changed_at = number if one.changed_at is None else one.changed_at
            for one in self._of_result.get(key, ()):
                is_begun = returned.name == _TAKES_STORAGE and not one.reader
                one.is_changed |= not is_begun
        read = set(keys_of(returned.given)) - written
        for one in {copied.number: copied for key in read for copied in self._of_result.get(key, ())}.values():
            if not facts.is_view:
                self._read(one, number, returned)
            elif one.layout is not None and not one.layout.follow(returned):
                one.layout = None

    def _read(self, copied: Copy, number: int, returned: Returned) -> None:
        copied.last_read = number
        copied.reader = copied.reader or returned.name
        copied.outlives_source |= self._flow.is_gone(copied.source)
        if copied.layout is None:
            return
        if copied.layout.suits(returned):
            for key in copied.layout.results:
                if copied not in self._of_result[key]:
                    self._of_result[key].append(copied)
        else:
            copied.layout = None

    def _begin(self, number: int, returned: Returned) -> None:
        name = returned.name
        if name in _COPYING:
            source, result = returned.args[0], returned.result
        elif name == _INTO_NEW_STORAGE and returned.args[0].dtype == torch.uint8:
            result, source = returned.args[:2]
        else:
            return
        found = self._copy_of(number, source, result, name)
        if found is not None:
            self.all.append(found)
            self._of_result[found.result].append(found)
            self._of_source[found.source].append(found)

    def _copy_of(self, number: int, source: torch.Tensor, result: torch.Tensor, name: str) -> Copy | None:
        flow = self._flow
        if not (_has_own_bytes(source) and _has_own_bytes(result) and result.numel()):
            return None
        read, made = flow.key_of(source), flow.key_of(result)
        is_cast = (source.dtype, source.device) != (result.dtype, result.device)
        if not read or not made or read == made or (is_cast and torch_compat.is_in_autocast()):
            return None  # casts of autocast's have a rule of their own
        writers = tuple(flow.writers_of(source))
        view = (tuple(source.shape), source.stride(), source.storage_offset())
        way = (name, result.dtype, result.device, tuple(result.shape), result.stride())
        found = Copy(number, read, made, recipe=(read, writers, view, way))
        storage = untyped_storage(source)
        found.result_bytes, found.source_bytes = untyped_storage(result).nbytes(), storage.nbytes()
        found.is_torchs = torch_compat.is_torchs(storage)
        found.is_known = read in self._parameters or (found.is_torchs and bool(writers))
        found.is_alike = not is_cast and is_laid_out_alike(source, result)
        strides = None if is_cast or found.is_alike else source_strides(source, result)
        if strides is not None:
            found.layout = SourceLayout(flow, result, strides)
        return found


def _has_own_bytes(tensor: torch.Tensor) -> bool:
    """Whether the tensor is what its bytes and its strides say."""
    return is_plain(tensor) and not (tensor.is_nested or tensor.is_conj() or tensor.is_neg())


def parameter_storages(
    flow: Flow, modules: Iterable[torch.nn.Module], optimizers: Iterable[torch.optim.Optimizer]
) -> set[int]:
    """The storages of the parameters that modules have, or that optimizers step."""
    lists = [(module.__dict__.get("_parameters") or {}).values() for module in modules]
    lists += [group["params"] for optimizer in optimizers for group in optimizer.param_groups]
    keys = (flow.key_of(one) for parameters in lists for one in parameters if isinstance(one, torch.Tensor))
    return {key for key in keys if key}

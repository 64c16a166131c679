"""The copies that lines of the user's make of tensors, and what becomes of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable

import torch

from deepscope.capture import torch_compat
from deepscope.capture.audit.flow import Flow, Returned, tensors_of, untyped_storage
from deepscope.capture.audit.layouts import SourceLayout, is_laid_out_alike, source_strides
from deepscope.capture.audit.operator_facts import is_plain

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
        facts, key_of = self._flow.facts(returned.function), self._flow.key_of
        number = added[-1] if added else -1
        written: set[int | None] = set()
        if not facts.is_view:
            changed = returned.given if facts.is_opaque else facts.written(returned.args, returned.kwargs)
            written.update(key_of(tensor) for tensor in tensors_of((returned.result, *changed)))
        for key in written:
            for one in self._of_source.get(key or 0, ()):
                one.changed_at = number if one.changed_at is None else one.changed_at
            for one in self._of_result.get(key or 0, ()):
                is_begun = facts.name == _TAKES_STORAGE and not one.reader
                one.is_changed |= not is_begun
        read = {key_of(tensor) for tensor in tensors_of(returned.given)} - written
        for one in {copied.number: copied for key in read for copied in self._of_result.get(key or 0, ())}.values():
            if not facts.is_view:
                self._read(one, number, facts.name, returned)
            elif one.layout is not None and not one.layout.follow(facts.name, returned):
                one.layout = None

    def _read(self, copied: Copy, number: int, name: str, returned: Returned) -> None:
        copied.last_read = number
        copied.reader = copied.reader or name
        copied.outlives_source |= self._flow.is_gone(copied.source)
        if copied.layout is None:
            return
        if copied.layout.suits(name, returned):
            for key in copied.layout.results:
                if copied not in self._of_result[key]:
                    self._of_result[key].append(copied)
        else:
            copied.layout = None

    def _begin(self, number: int, returned: Returned) -> None:
        name = self._flow.facts(returned.function).name
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
        if read is None or made is None or read == made or (is_cast and torch_compat.is_in_autocast()):
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

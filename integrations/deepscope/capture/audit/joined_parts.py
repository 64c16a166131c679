"""Of tensors that were joined to one: which of them somebody reads there.

Nothing is kept of a tensor but where it lies in its storage.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate
from typing import Any, NamedTuple

import torch

from deepscope.capture.audit.flow import Flow, Returned, tensors_of
from deepscope.capture.audit.operator_facts import is_plain, is_strided

_JOINS = frozenset({"aten::cat", "aten::stack"})
_MOST_PLACES = 10_000


class _Joined(NamedTuple):
    """The result of a join, whose elements lie one behind the other."""

    operation: int
    stride: int
    """From one place to the next in the dimension that is joined."""
    ends: list[int]
    """Where each part ends in this dimension."""
    writers: list[list[int]]
    """The operations that made each part."""
    read: set[int]
    """The numbers of the parts that somebody reads."""

    @property
    def parts(self) -> range:
        """The numbers of all parts."""
        return range(len(self.ends))

    def parts_in(self, tensor: torch.Tensor) -> Iterable[int]:
        """The numbers of the parts that a view of the result has elements of; all of them where that is not clear."""
        stride, size = self.stride, self.ends[-1]
        whole, offset = stride * size, tensor.storage_offset()
        places, within = {offset // stride % size}, offset % stride
        for length, step in zip(tensor.shape, tensor.stride(), strict=True):
            if length == 1 or step % whole == 0:
                continue
            if step < stride:
                within += (length - 1) * step
            elif step % stride or step * (length - 1) >= whole or len(places) * length > _MOST_PLACES:
                return self.parts
            else:
                places = {place + turn * (step // stride) for place in places for turn in range(length)}
        if within >= stride or max(places) >= size:
            return self.parts
        return {bisect_right(self.ends, place) for place in places}


class JoinedParts:
    """Of the first step's joins outside of backward passes."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._joined: dict[int, _Joined] = {}
        """By the storage of the result."""

    def note(self, added: range, returned: Returned, *, makes: bool) -> None:
        """An operator has returned; `makes`: whether it is work of the first step, outside of a backward pass."""
        if not returned.is_view:
            self._read(returned.given)
        if makes and returned.name in _JOINS and len(added) == 1 and returned.args:
            self._join(added[0], returned)

    def unread(self) -> dict[int, set[int]]:
        """By join: the operations that made nothing but parts of it that nobody reads."""
        found = {}
        for key, one in self._joined.items():
            if not self._flow.is_gone(key) or self._flow.is_used_unseen(key):
                continue
            read = {number for part in one.read for number in one.writers[part]}
            if unread := {number for writers in one.writers for number in writers} - read:
                found[one.operation] = unread
        return found

    def _join(self, number: int, returned: Returned) -> None:
        result, parts = returned.result, [one for one in returned.args[0] if one.numel()]
        key = self._flow.key_of(result) if is_plain(result) and is_strided(result) else 0
        if not key or len(parts) < 2 or not result.is_contiguous() or result.storage_offset():
            return
        is_stack = self._flow.operations[number].name == "aten::stack"
        dimension = (*returned.args[1:2], returned.kwargs.get("dim", 0))[0] % result.dim()
        sizes = [1 if is_stack else one.shape[dimension] for one in parts]
        if sum(sizes) == result.shape[dimension]:
            writers = [list(self._flow.writers_of(one)) for one in parts]
            self._joined[key] = _Joined(number, result.stride(dimension), [*accumulate(sizes)], writers, set())

    def _read(self, values: Iterable[Any]) -> None:
        for tensor in tensors_of(values):
            one = self._joined.get(self._flow.key_of(tensor))
            if one is not None:
                one.read.update(one.parts_in(tensor) if is_strided(tensor) else one.parts)

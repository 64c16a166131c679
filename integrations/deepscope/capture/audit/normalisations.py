"""Logarithms of probabilities that a softmax normalises once more.

A softmax of `log_softmax(x)`, of that divided by a number, or with something added, is the softmax of `x` treated so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import torch

from deepscope.capture.audit.cheaper_operators import Choice
from deepscope.capture.audit.flow import Flow, Returned, tensors_of
from deepscope.capture.audit.operator_facts import is_strided
from deepscope.capture.audit.operator_rows import reads_shape_alone

SOFTMAX, LOG_SOFTMAX, LOG = "aten::_softmax", "aten::_log_softmax", "aten::log"
_COPIES = frozenset({"aten::clone", "aten::_to_copy"})
_SCALES = frozenset({"aten::mul", "aten::div"})
_SUMS = frozenset({"aten::add", "aten::sub"})
_SECOND = 0.05
"""Nothing is left of what is done for nothing."""


class _Normalised(NamedTuple):
    """A tensor that was normalised along one dimension, and what became of it since."""

    makers: tuple[int, ...]
    """The operations that normalised it: one, or a softmax and the logarithm of that."""
    since: frozenset[int]
    """The operations that have changed it, or copied it."""
    size: int
    """Of the dimension."""
    stride: int
    is_logarithm: bool
    is_same: bool
    """Whether nothing but copies was made of it."""

    def dimension_in(self, tensor: torch.Tensor) -> int | None:
        """Which dimension of a tensor in its storage that is; None where the tensor has a part of it."""
        for place, (size, stride) in enumerate(zip(tensor.shape, tensor.stride(), strict=True)):
            if size == self.size and stride == self.stride and not tensor.storage_offset() // stride % size:
                return place
        return None


class _Again(NamedTuple):
    """A softmax of what is normalised."""

    of: _Normalised
    number: int
    is_logarithm: bool


class Normalisations:
    """Of the first step's forward work."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._held: dict[int, _Normalised] = {}
        """By storage."""
        self._storages: dict[int, int] = {}
        """By operation that made such a tensor."""
        self._again: list[_Again] = []

    def note(self, added: range, returned: Returned, *, makes: bool) -> None:
        """A forward operator has returned; `makes`: whether it is work of the first step."""
        if reads_shape_alone(returned.name):
            return
        if returned.is_view:
            self._note_view(added, returned)
            return
        for key in self._flow.keys_of(returned.written()):
            self._held.pop(key, None)
        result, source = returned.result, returned.args[0] if returned.args else None
        if not makes or len(added) != 1 or not isinstance(result, torch.Tensor) or not is_strided(result):
            return
        key = self._flow.key_of(result)
        if key and isinstance(source, torch.Tensor) and is_strided(source):
            self._held.pop(key, None)
            made = self._made(added[0], returned.name, returned, source)
            if made is not None:
                self._held[key], self._storages[added[0]] = made, key

    def _note_view(self, added: range, returned: Returned) -> None:
        """An operator has passed on the storage that it was given, `aten::_unsafe_view` as an operation of its own."""
        key = next(self._flow.keys_of((returned.result,)), 0)
        if added and (held := self._held.get(key)) is not None:
            self._held[key] = held._replace(since=held.since.union(added))
            self._storages.update(dict.fromkeys(added, key))

    def _made(self, number: int, name: str, returned: Returned, source: torch.Tensor) -> _Normalised | None:
        """What an operator has made, if that is normalised."""
        result: torch.Tensor = returned.result
        held = self._held.get(self._flow.key_of(source))
        dimension = None if held is None else held.dimension_in(source)
        if name in (SOFTMAX, LOG_SOFTMAX) and result.dim():
            along, is_logarithm = int(returned.args[1]) % result.dim(), name == LOG_SOFTMAX
            if held is not None and held.is_logarithm and dimension == along:
                self._again.append(_Again(held, number, is_logarithm))
            size, stride = result.size(along), result.stride(along)
            if size < 2 or not stride:
                return None
            return _Normalised((number,), frozenset(), size, stride, is_logarithm, is_same=True)
        if held is None or dimension is None or result.shape != source.shape:
            return None
        stride, others = result.stride(dimension), [*tensors_of(returned.given[1:])]
        if name == LOG and not held.is_logarithm and not held.since:
            return held._replace(makers=(*held.makers, number), stride=stride, is_logarithm=True)
        is_scaled = name in _SCALES and all(one.numel() == 1 for one in others)
        is_changed = held.is_logarithm and (name in _SUMS or is_scaled)
        is_copy = name in _COPIES and result.is_floating_point()
        if not (is_copy or is_changed) or any(self._flow.key_of(one) in self._held for one in others):
            return None
        return held._replace(since=held.since | {number}, stride=stride, is_same=held.is_same and is_copy)

    def all(self, readers: Mapping[int, Sequence[int]]) -> Iterator[Choice]:
        """What could be left out; `readers`: as of `StepWork`."""
        again = {one.number for one in self._again}
        passing = {number for one in self._again for number in (*one.of.makers, *one.of.since)}
        free: set[int] = set()
        """Those whose results nobody reads but these and a softmax that follows."""
        for number in sorted(passing, reverse=True):
            key = self._storages[number]
            is_hidden = self._flow.is_used_unseen(key) or not self._flow.is_gone(key)
            if not is_hidden and (free | again).issuperset(readers.get(number, ())):
                free.add(number)
        for one in self._again:
            makers = one.of.makers
            if makers[-1] in free:
                yield Choice("softmax_before", makers[-1], frozenset(free.intersection(makers)), _SECOND)
            elif one.of.is_same and one.is_logarithm:
                yield Choice("softmax_again", one.number, frozenset({one.number}), _SECOND)

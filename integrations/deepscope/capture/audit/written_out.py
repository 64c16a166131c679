"""Functions that torch has an operator for, written out one by one, and a softmax of what is normalised already."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from math import prod
from typing import Any, NamedTuple

import torch

from deepscope.capture.audit.call_paths import PathEntry
from deepscope.capture.audit.cheaper_operators import OF_LIBRARIES, Choice
from deepscope.capture.audit.flow import Flow, Observer, Operation
from deepscope.capture.audit.operator_calls import COPIES, OperatorCall, aten, is_strided, key_of, keys_of, tensors_of
from deepscope.capture.audit.operator_rows import reads_shape_alone
from deepscope.capture.audit.step_work import StepWork
from deepscope.trace.format.audit import OperatorChoice

_SOFTMAX, _LOG_SOFTMAX, _LOG = "aten::_softmax", "aten::_log_softmax", "aten::log"
_SCALES = aten("mul div")
_ADDITIONS = aten("add sub")
_SECOND = 0.05
"""Nothing is left of what is done for nothing."""
_NEEDED: dict[OperatorChoice, float] = {
    "gelu": 0.45,
    "silu": 0.6,
    "relu": 0.15,
    "leaky_relu": 0.1,
    "layer_norm": 0.15,
    "softmax": 0.3,
    "log_softmax": 0.5,
    "cross_entropy": 0.45,
}
"""The share of the time, forward and backward, that torch's operator took (docs/findings/DS047.md)."""


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


class Normalisations(Observer[_Normalised]):
    """Logarithms of probabilities that a softmax normalises once more, in the first step's forward work.

    A softmax of `log_softmax(x)`, of that divided by a number, or with something added, is the softmax of `x` treated
    so.
    """

    def __init__(self, flow: Flow) -> None:
        super().__init__(flow)
        self._storages: dict[int, int] = {}
        """By operation that made such a tensor."""
        self._again: list[_Again] = []

    def note(self, call: OperatorCall) -> None:
        """It may normalise, or go on with what is normalised."""
        if reads_shape_alone(call.name):
            return
        if call.is_view:
            self._pass_on(call)
            return
        self._forget(call.written)
        result, source = call.result, call.args[0] if call.args else None
        if not call.is_of_first_step or call.number < 0 or not isinstance(result, torch.Tensor):
            return
        key = key_of(result) if is_strided(result) else 0
        if key and isinstance(source, torch.Tensor) and is_strided(source):
            self._held.pop(key, None)
            made = self._made(call, source)
            if made is not None:
                self._held[key], self._storages[call.number] = made, key

    def _pass_on(self, call: OperatorCall) -> None:
        """An operator has passed on the storage that it was given, `aten::_unsafe_view` as an operation of its own."""
        key = next(keys_of((call.result,)), 0)
        if call.numbers and (held := self._held.get(key)) is not None:
            self._held[key] = held._replace(since=held.since.union(call.numbers))
            self._storages.update(dict.fromkeys(call.numbers, key))

    def _made(self, call: OperatorCall, source: torch.Tensor) -> _Normalised | None:
        """What an operator has made, if that is normalised."""
        number, name, result = call.number, call.name, call.result
        held = self._held_of(source)
        dimension = None if held is None else held.dimension_in(source)
        if name in (_SOFTMAX, _LOG_SOFTMAX) and result.dim():
            along, is_logarithm = int(call.args[1]) % result.dim(), name == _LOG_SOFTMAX
            if held is not None and held.is_logarithm and dimension == along:
                self._again.append(_Again(held, number, is_logarithm))
            size, stride = result.size(along), result.stride(along)
            if size < 2 or not stride:
                return None
            return _Normalised((number,), frozenset(), size, stride, is_logarithm, is_same=True)
        if held is None or dimension is None or result.shape != source.shape:
            return None
        stride, others = result.stride(dimension), [*tensors_of(call.given[1:])]
        if name == _LOG and not held.is_logarithm and not held.since:
            return held._replace(makers=(*held.makers, number), stride=stride, is_logarithm=True)
        is_scaled = name in _SCALES and all(one.numel() == 1 for one in others)
        is_changed = held.is_logarithm and (name in _ADDITIONS or is_scaled)
        is_copy = name in COPIES and result.is_floating_point()
        if not (is_copy or is_changed) or any(self._held_of(one) is not None for one in others):
            return None
        return held._replace(since=held.since | {number}, stride=stride, is_same=held.is_same and is_copy)

    def choices(self, work: StepWork) -> Iterator[Choice]:
        """What could be left out."""
        again = {one.number for one in self._again}
        passing = {number for one in self._again for number in (*one.of.makers, *one.of.since)}
        free = work.read_alone({number: self._storages[number] for number in passing}, again)
        for one in self._again:
            makers = one.of.makers
            if makers[-1] in free:
                yield Choice("softmax_before", makers[-1], frozenset(free.intersection(makers)), _SECOND)
            elif one.of.is_same and one.is_logarithm:
                yield Choice("softmax_again", one.number, frozenset({one.number}), _SECOND)


class _Signature(NamedTuple):
    """The names of the operators that a function is written with."""

    kind: OperatorChoice
    needs: frozenset[str]
    others: frozenset[str] = frozenset()
    """That may be there."""
    one_of: frozenset[str] = frozenset()
    """At least one of these has to be."""
    operators: tuple[int, int] = (2, 16)
    """So many at least, and at most."""
    is_along_last: bool = False
    """Whether it reduces the last dimension."""

    def holds(self, region: Sequence[Operation]) -> bool:
        """Whether a region computes the function."""
        names = {_short_name(one) for one in region}
        return (
            self.needs <= names <= self.needs | self.others | self.one_of
            and (not self.one_of or bool(names & self.one_of))
            and self.operators[0] <= len(region) <= self.operators[1]
            and (not self.is_along_last or all(_is_along_last(one, region) for one in region))
        )


def _signature(kind: OperatorChoice, needs: str, others: str = "", **more: Any) -> _Signature:
    return _Signature(kind, frozenset(needs.split()), frozenset(others.split()), **more)


_COMPARISONS = frozenset({"gt", "ge", "lt", "le"})
_SPREADS = frozenset({"std", "var", "sqrt", "rsqrt"})
_REDUCTIONS = frozenset({"mean", "std", "var", "var_mean", "sum", "max", "amax"})
_SIGNATURES = (
    _signature("gelu", "erf mul add", "div", operators=(4, 8)),
    _signature("gelu", "tanh mul add", "pow div", operators=(7, 12)),
    _signature("silu", "sigmoid mul", operators=(2, 2)),
    _signature("leaky_relu", "where mul", one_of=_COMPARISONS, operators=(3, 3)),
    _signature("relu", "where", "zeros_like", one_of=_COMPARISONS, operators=(2, 3)),
    _signature("relu", "maximum zeros_like", operators=(2, 2)),
    _signature("softmax", "exp sum div", "sub max amax log", is_along_last=True),
    *(
        _signature("layer_norm", needs, "add div mul pow square", one_of=one_of, operators=(4, 16), is_along_last=True)
        for needs, one_of in (("sub mean", _SPREADS), ("sub var_mean", frozenset({"sqrt", "rsqrt"})))
    ),
)
_SUMS = aten("sum mean")

_Function = tuple[tuple[PathEntry, ...], object, int]
"""The lines that lead to a running function, its code, and the `id` of the innermost module around it."""


def written_out(work: StepWork) -> Iterator[Choice]:
    """Of the first step's forward work."""
    operations = work.operations
    for numbers in _regions(work):
        region = [operations[number] for number in numbers]
        kind = next((one.kind for one in _SIGNATURES if one.holds(region)), None)
        if kind in OF_LIBRARIES or (kind is not None and all(one.site.is_direct for one in region)):
            most = max(numbers, key=lambda number: (operations[number].result_bytes, number))
            yield Choice(kind, most, frozenset(numbers), _NEEDED[kind])
    yield from _logarithms(work)
    yield from _cross_entropies(work)


def _regions(work: StepWork) -> list[list[int]]:
    """Operators that one function calls and that compute from one result of another one, and from nothing else.

    What no operation has made (parameters), and tensors of one number, do not count.
    """
    operations, paths = work.operations, work.paths
    source_of: dict[int, tuple[int, _Function]] = {}
    regions: dict[tuple[int, _Function], list[int]] = defaultdict(list)
    for number, one in work.forward:
        path = paths[one.site.path]
        function = (path[:-1], path[-1][0], one.site.instances[-1] if one.site.instances else 0)
        sources = {
            source_of[source][0] if source in source_of and source_of[source][1] == function else source
            for source in one.inputs
            if operations[source].shape
        }
        if len(sources) == 1 and not one.is_sink:
            source_of[number] = key = (sources.pop(), function)
            regions[key].append(number)
    return list(regions.values())


def _short_name(one: Operation) -> str:
    return one.name.removeprefix("aten::").removesuffix("_")


def _is_along_last(one: Operation, region: Sequence[Operation]) -> bool:
    """Whether an operator is no reduction, or leaves one number for what lies along the last dimension."""
    whole = max((other.shape for other in region), key=prod)
    is_row = len(whole) > 1 and prod(one.shape) * whole[-1] == prod(whole) and one.shape[:1] == whole[:1]
    return is_row or _short_name(one) not in _REDUCTIONS


def _logarithms(work: StepWork) -> Iterator[Choice]:
    """A line's logarithms of a softmax that nobody else reads, whatever is called before and behind."""
    operations = work.operations
    for number, one in work.forward:
        if one.name == _LOG and one.site.is_direct and len(one.inputs) == 1:
            (softmax,) = one.inputs
            is_all = operations[softmax].name == _SOFTMAX and prod(operations[softmax].shape) == prod(one.shape)
            if is_all and work.readers[softmax] == [number]:
                yield Choice("log_softmax", number, frozenset({number, softmax}), _NEEDED["log_softmax"])


def _cross_entropies(work: StepWork) -> Iterator[Choice]:
    """Products of logarithms of a softmax and one-hot vectors, and their sums."""
    operations = work.operations
    one_hot: set[int] = set()
    for number, one in work.forward:
        is_copy = one.name == "aten::_to_copy" and not one_hot.isdisjoint(one.inputs)
        if one.ones or is_copy:
            one_hot.add(number)
        logarithms = {source for source in one.inputs if operations[source].name == _LOG_SOFTMAX}
        if one.name == "aten::mul" and logarithms and not one_hot.isdisjoint(one.inputs):
            readers = (reader for reader in work.readers[number] if operations[reader].step == 0)
            sums = {reader for reader in readers if operations[reader].name in _SUMS}
            members = frozenset({number, *logarithms, *sums, *(one_hot & one.inputs)})
            yield Choice("cross_entropy", number, members, _NEEDED["cross_entropy"])

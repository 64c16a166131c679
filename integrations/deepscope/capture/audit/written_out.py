"""Functions that torch has an operator for, written out in operators that go through the whole tensor one by one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from math import prod
from typing import Any, NamedTuple

from deepscope.capture.audit.cheaper_operators import Choice
from deepscope.capture.audit.flow import Operation
from deepscope.capture.audit.normalisations import LOG, LOG_SOFTMAX, SOFTMAX
from deepscope.capture.audit.operator_uses import StepWork
from deepscope.capture.audit.places import PathEntry
from deepscope.trace.format.audit import OperatorChoice

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
_SUMS = frozenset({"aten::sum", "aten::mean"})

_Function = tuple[tuple[PathEntry, ...], object, int]
"""The lines that lead to a running function, its code, and the `id` of the innermost module around it."""
OF_LIBRARIES = frozenset({"gelu"})
"""What a library's configuration may choose another operator for."""


def written_out(work: StepWork) -> Iterator[Choice]:
    """Of the first step's forward work."""
    operations = work.operations
    for numbers in _regions(work):
        region = [operations[number] for number in numbers]
        kind = next((one.kind for one in _SIGNATURES if one.holds(region)), None)
        if kind in OF_LIBRARIES or (kind is not None and all(one.call.is_direct for one in region)):
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
        path = paths[one.call.path]
        function = (path[:-1], path[-1][0], one.call.instances[-1] if one.call.instances else 0)
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
        if one.name == LOG and one.call.is_direct and len(one.inputs) == 1:
            (softmax,) = one.inputs
            is_all = operations[softmax].name == SOFTMAX and prod(operations[softmax].shape) == prod(one.shape)
            if is_all and work.readers[softmax] == [number]:
                yield Choice("log_softmax", number, frozenset({number, softmax}), _NEEDED["log_softmax"])


def _cross_entropies(work: StepWork) -> Iterator[Choice]:
    """Products of logarithms of a softmax and one-hot vectors, and their sums."""
    operations = work.operations
    one_hot: set[int] = set()
    for number, one in work.forward:
        is_copy = one.name == "aten::_to_copy" and not one_hot.isdisjoint(one.inputs)
        if number in work.watch.one_hots or is_copy:
            one_hot.add(number)
        logarithms = {source for source in one.inputs if operations[source].name == LOG_SOFTMAX}
        if one.name == "aten::mul" and logarithms and not one_hot.isdisjoint(one.inputs):
            readers = (reader for reader in work.readers[number] if operations[reader].step == 0)
            sums = {reader for reader in readers if operations[reader].name in _SUMS}
            members = frozenset({number, *logarithms, *sums, *(one_hot & one.inputs)})
            yield Choice("cross_entropy", number, members, _NEEDED["cross_entropy"])

"""Large tensors that broadcasting makes of small ones, and one-hot vectors, which are made small again."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Set

from deepscope.capture.audit.flow import Operation
from deepscope.capture.audit.operator_rows import MATRIX_PRODUCTS
from deepscope.capture.audit.operator_uses import StepWork
from deepscope.trace.format.audit import Broadcast

_TIMES = 8
"""So much larger than the arguments, and than what it is reduced to."""
_TIMES_OF_DIFFERENCES = 2
"""Distances in a few dimensions are not so much smaller than differences, and need none."""
_REDUCTIONS = frozenset(
    f"aten::{name}"
    for name in [
        "sum",
        "mean",
        "amax",
        "amin",
        "max",
        "min",
        "any",
        "all",
        "norm",
        "linalg_vector_norm",
        "logsumexp",
        "argmax",
        "argmin",
        "prod",
        "var",
        "std",
    ]
)
_OF_SUMS = frozenset(f"aten::{name}" for name in ["amax", "amin", "max", "min", "logsumexp", "argmax", "argmin"])
"""Of sums of all pairs no operator of torch computes these (Viterbi, conditional random fields)."""
_COMPARISONS = frozenset(f"aten::{name}" for name in ["eq", "ne", "lt", "le", "gt", "ge"])
_REPEAT = "aten::repeat"
_RANDOM = ("rand", "bernoulli", "dropout")
_BROADCASTING = frozenset(f"aten::{name}" for name in ["add", "sub", "mul", "div", "minimum", "maximum"]) | _COMPARISONS


_Groups = dict[tuple[int, str], dict[int, set[int]]]
"""By line and operator: of each operation that makes a large tensor, all until this is small again."""


def broadcasts(work: StepWork) -> list[Broadcast]:
    """Of the first step, by the line that broadcasts, the largest first."""
    operations, paths = work.operations, work.paths
    groups: _Groups = defaultdict(dict)
    for number, one in work.forward:
        chain = _chain(operations, work.readers, number, _ends(work, number, one))
        if chain:
            groups[work.places.number_of(paths[one.call.path][-1]), one.name][number] = chain
    found = []
    for (place, name), chains in _joined(groups).items():
        if name == _REPEAT and _reads_others(operations, _all_of(chains)):
            continue
        largest = max(chains, key=lambda number: operations[number].result_bytes)
        one, ends = operations[largest], _ends(work, largest, operations[largest])
        last = [operations[number] for number in sorted(chains[largest]) if operations[number].name in ends]
        members = _all_of(chains)
        found.append(
            Broadcast(
                place=place,
                name=name,
                reduction=last[0].name,
                shape=list(one.shape),
                given_elements=_given(work, largest, one),
                reduced_elements=0 if largest in work.watch.one_hots else max(math.prod(end.shape) for end in last),
                result_bytes=sum(operations[number].result_bytes for number in chains),
                operators=work.uses(members),
                backward=work.backward_uses(members),
            )
        )
    return sorted(found, key=lambda row: -row.result_bytes)


def _all_of(chains: Mapping[int, set[int]]) -> set[int]:
    return set().union(*chains.values())


def _joined(groups: _Groups) -> _Groups:
    """Groups of which tensors that were repeated for each other are one, that of the first."""
    found: _Groups = {}
    for key, chains in groups.items():
        others = (one for one in found if one[1] == key[1] == _REPEAT)
        first = next((one for one in others if not _all_of(found[one]).isdisjoint(_all_of(chains))), key)
        found[first] = found.get(first, {}) | chains
    return found


def _reads_others(operations: list[Operation], chain: Set[int]) -> bool:
    """Whether what a tensor was repeated for is another one as large, which no repeating made, or random numbers."""
    if any(word in operations[number].name for number in chain for word in _RANDOM):
        return True
    largest = max(math.prod(operations[number].shape) for number in chain)
    sources = set().union(*(operations[number].inputs for number in chain)) - chain
    return any(math.prod(operations[number].shape) >= largest for number in sources)


def _given(work: StepWork, number: int, one: Operation) -> int:
    """The elements of the largest argument that a large tensor is made of."""
    return work.watch.one_hots.get(number, one.given_elements)


def _ends(work: StepWork, number: int, one: Operation) -> Mapping[str, float]:
    """If an operator makes a large tensor of small ones: those that make less of it, and how many times less."""
    if not 0 < _TIMES * _given(work, number, one) <= math.prod(one.shape):
        return {}
    if number in work.watch.one_hots:  # with numbers in place of it there is no such product
        return dict.fromkeys(MATRIX_PRODUCTS, 0.0)
    times = _TIMES_OF_DIFFERENCES if one.name == "aten::sub" else _TIMES
    if one.name != _REPEAT and one.name not in _BROADCASTING:
        return {}
    return dict.fromkeys(_REDUCTIONS - _OF_SUMS if one.name == "aten::add" else _REDUCTIONS, times)


def _chain(
    operations: list[Operation], readers: dict[int, list[int]], first: int, ends: Mapping[str, float]
) -> set[int]:
    """The operations from the one that makes a large tensor to those that end it; none if it is used otherwise."""
    if not ends:
        return set()
    elements = math.prod(operations[first].shape)
    found, left, is_reduced = {first}, [first], False
    while left:
        for number in readers[left.pop()]:
            one = operations[number]
            size = math.prod(one.shape)
            if one.name in ends and ends[one.name] * size <= elements:
                is_reduced = True
                found.add(number)
            elif size != elements or one.is_sink:
                return set()
            elif number not in found:
                found.add(number)
                left.append(number)
    return found if is_reduced else set()

"""Large tensors between small ones: broadcasts, one-hot vectors, and comparisons with one class after the other."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence, Set

import torch

from deepscope.capture.audit.cheaper_operators import Choice
from deepscope.capture.audit.flow import Flow, Observer, Operation
from deepscope.capture.audit.operator_calls import MATRIX_PRODUCTS, OperatorCall, aten, is_strided, key_of, tensors_of
from deepscope.capture.audit.step_work import StepWork
from deepscope.trace.format.audit import Broadcast

_TIMES = 8
"""So much larger than the arguments, and than what it is reduced to."""
_TIMES_OF_DIFFERENCES = 2
"""Distances in a few dimensions are not so much smaller than differences, and need none."""
_REDUCTIONS = aten("sum mean amax amin max min any all norm linalg_vector_norm logsumexp argmax argmin prod var std")
_OF_SUMS = aten("amax amin max min logsumexp argmax argmin")
"""Of sums of all pairs no operator of torch computes these (Viterbi, conditional random fields)."""
_COMPARISONS = aten("eq ne lt le gt ge")
_REPEAT = "aten::repeat"
_RANDOM = ("rand", "bernoulli", "dropout")
_BROADCASTING = aten("add sub mul div minimum maximum") | _COMPARISONS


_Groups = dict[tuple[int, str], dict[int, set[int]]]
"""By line and operator: of each operation that makes a large tensor, all until this is small again."""


def broadcasts(work: StepWork) -> list[Broadcast]:
    """Of the first step, by the line that broadcasts, the largest first."""
    operations = work.operations
    groups: _Groups = defaultdict(dict)
    for number, one in work.forward:
        chain = _chain(work, number, _ends(one))
        if chain:
            groups[work.place_of(number), one.name][number] = chain
    found = []
    for (place, name), chains in _joined(groups).items():
        if name == _REPEAT and _reads_others(operations, _all_of(chains)):
            continue
        largest = max(chains, key=lambda number: operations[number].result_bytes)
        one, ends = operations[largest], _ends(operations[largest])
        last = [operations[number] for number in sorted(chains[largest]) if operations[number].name in ends]
        members = _all_of(chains)
        found.append(
            Broadcast(
                place=place,
                name=name,
                reduction=last[0].name,
                shape=list(one.shape),
                given_elements=_given(one),
                reduced_elements=0 if one.ones else max(math.prod(end.shape) for end in last),
                result_bytes=work.bytes_of(chains),
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


def _given(one: Operation) -> int:
    """The elements of the largest argument that a large tensor is made of."""
    return one.ones or one.given_elements


def _ends(one: Operation) -> Mapping[str, float]:
    """If an operator makes a large tensor of small ones: those that make less of it, and how many times less."""
    if not 0 < _TIMES * _given(one) <= math.prod(one.shape):
        return {}
    if one.ones:  # with numbers in place of it there is no such product
        return dict.fromkeys(MATRIX_PRODUCTS, 0.0)
    times = _TIMES_OF_DIFFERENCES if one.name == "aten::sub" else _TIMES
    if one.name != _REPEAT and one.name not in _BROADCASTING:
        return {}
    return dict.fromkeys(_REDUCTIONS - _OF_SUMS if one.name == "aten::add" else _REDUCTIONS, times)


def _chain(work: StepWork, first: int, ends: Mapping[str, float]) -> set[int]:
    """The operations from the one that makes a large tensor to those that end it; none if it is used otherwise."""
    if not ends:
        return set()
    operations = work.operations
    elements = math.prod(operations[first].shape)
    found, left, is_reduced = {first}, [first], False
    while left:
        for number in work.readers[left.pop()]:
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


_LEAST_COMPARED = 1 << 15
"""Elements. Comparisons of fewer are mostly calls (DS007)."""
_FEWEST = 3
"""Numbers that a tensor is compared with."""
_MOST_OF = 0.8
"""So many of the comparisons are counted and nothing else."""
_LEFT = 0.75
"""What counting all numbers at once takes, in comparisons of two tensors with one, and the counts of both."""
_LEAST_LEFT = 0.05
_COMBINED = aten("bitwise_and bitwise_or bitwise_not logical_and logical_or logical_not mul _to_copy __and__ __or__")
_COUNTED = aten("sum mean any count_nonzero")


class ClassMasks(Observer[frozenset[int]]):
    """Tensors that the first step compares with one number after the other, only to count, as metrics of classes do.

    By storage the comparisons that what it holds was made of, and of nothing else but masks.
    """

    def __init__(self, flow: Flow) -> None:
        super().__init__(flow)
        self._masks: dict[Hashable, dict[float, set[int]]] = defaultdict(lambda: defaultdict(set))
        """By tensor and number: the comparisons."""
        self._since: dict[int, set[int]] = defaultdict(set)
        """By comparison: what combines it with others, and counts it."""
        self._counted: set[int] = set()
        self._used: set[int] = set()
        """Comparisons that something else reads."""

    def note(self, call: OperatorCall) -> None:
        """It may compare, combine masks, count them, or read them otherwise."""
        if call.is_view:
            return
        given = list(tensors_of(call.given))
        masks = frozenset[int]().union(*(self._held_of(one) or () for one in given))
        self._forget(call.written)
        is_alone = call.is_of_first_step and call.number >= 0
        if masks and not (is_alone and self._goes_on(call.name, given)):
            self._used |= masks
        elif masks:
            for mask in masks:
                self._since[mask].add(call.number)
            if call.name in _COUNTED:
                self._counted |= masks
            else:
                self._hold(call, masks)
        elif is_alone and call.name == "aten::eq" and _is_large(given[0]) and isinstance(call.args[1], (int, float)):
            source = given[0]
            lies = (source.storage_offset(), tuple(source.shape), tuple(source.stride()))
            compared = (key_of(source), *self._flow.writers_of(source), lies)
            self._masks[compared][call.args[1]].add(call.number)
            self._hold(call, frozenset(call.numbers))

    def choices(self, _: StepWork) -> Iterator[Choice]:
        """One for the tensors that are counted together."""
        groups: dict[int, tuple[set[int], int]] = {}
        of_member: dict[int, int] = {}
        for number, by_number in enumerate(self._masks.values()):
            every = set[int]().union(*by_number.values())
            good = {one for one in every & self._counted - self._used if not self._flow.operations[one].is_sink}
            if len(by_number) < _FEWEST or len(good) < _MOST_OF * len(every):
                continue
            members, classes = good.union(*(self._since[one] for one in good)), len(by_number)
            for other in {of_member[one] for one in members if one in of_member}:
                others, count = groups.pop(other)
                members, classes = members | others, max(classes, count)
            groups[number] = members, classes
            of_member.update(dict.fromkeys(members, number))
        for members, classes in groups.values():
            yield Choice("classes", min(members), frozenset(members), max(_LEFT / classes, _LEAST_LEFT))

    def members(self, work: StepWork) -> set[int]:
        """All operations of these."""
        return set[int]().union(*(one.members for one in self.choices(work)))

    def _goes_on(self, name: str, given: Sequence[torch.Tensor]) -> bool:
        """Whether an operator combines masks, of classes or of others, or counts one."""
        are_masks = all(one.dtype == torch.bool or not _is_large(one) or key_of(one) in self._held for one in given)
        return name in _COUNTED or (name in _COMBINED and are_masks)

    def _hold(self, call: OperatorCall, masks: frozenset[int]) -> None:
        key = key_of(call.result) if isinstance(call.result, torch.Tensor) else 0
        if not key:
            self._used |= masks
        else:
            self._held[key] = masks


def _is_large(tensor: torch.Tensor) -> bool:
    return is_strided(tensor) and tensor.numel() >= _LEAST_COMPARED

"""Operators in place of which a cheaper one would do, by what they are given and what is read of their results."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence, Set
from itertools import chain
from typing import Any, NamedTuple

import torch

from deepscope.capture import torch_compat
from deepscope.capture.audit.flow import Flow, Observer
from deepscope.capture.audit.operator_calls import OperatorCall, aten, is_strided, key_of, keys_of, tensors_of
from deepscope.capture.audit.operator_rows import reads_shape_alone
from deepscope.capture.audit.step_work import StepWork
from deepscope.trace.format.audit import CheaperOperator, OperatorChoice

PRODUCTS = {"aten::mm": (0, 1), "aten::bmm": (0, 1), "aten::addmm": (1, 2), "aten::baddbmm": (1, 2), "aten::mv": (0, 1)}
"""Which arguments of a product are multiplied."""
CHAINED = aten("mm bmm")
"""Products of two matrices and nothing else."""
_INVERSE = "aten::linalg_inv_ex"
_EIGENVALUES = "aten::linalg_eig"
_VECTORS = {"aten::_linalg_svd": (0, 2), "aten::_linalg_eigh": (1,), _EIGENVALUES: (1,)}
"""The results of each decomposition beside its values."""
_FOURIER, _COMPLEX_FOURIER, _COPY = "aten::_fft_r2c", "aten::_fft_c2c", "aten::_to_copy"
_SORT, _CONVOLUTION, _TRACE = "aten::sort", "aten::convolution", "aten::trace"
_FOLLOWED = frozenset({*PRODUCTS, *_VECTORS, _INVERSE, _SORT, _CONVOLUTION})
"""What is read of their results is noted."""

_LEAST_ELEMENTS = 1 << 16
"""Of a matrix whose zeros are counted."""
_MOST_NONZERO = 0.03
"""Sparse products were faster with up to this share of others, forward and backward (docs/findings/DS047.md)."""
_PER_NONZERO = 12.0
"""An element of a sparse product takes so many times as long as one of a dense product."""
_PER_SORTED = 2.0
"""The largest few take that share of the whole order's time, times this."""
_NEEDED: dict[OperatorChoice, float] = {"values": 0.55, "symmetric": 0.3, "inverse": 0.3, "real": 0.5}
"""What the cheaper operator took of the other one's time (docs/findings/DS047.md)."""
_SYMMETRY = 1e-5
"""Relative to the largest element."""
_LEAST_NEEDED, _MOST_NEEDED = 0.05, 0.6
"""Of an operator's time: a cheaper one does not take less, and one that takes more is not worth a change."""
OF_LIBRARIES = frozenset({"gelu"})
"""What a library's configuration may choose another operator for."""


class Choice(NamedTuple):
    """What could be done by another operator."""

    kind: OperatorChoice
    number: int
    """The operation that could be another one."""
    members: frozenset[int]
    """With those that come with it."""
    needed: float
    """The share of their work that is left."""
    others: tuple[int, ...] = ()
    """Operations that such work begins with as well."""
    different: int = 0
    """Rows, of a product with rows that repeat."""


class _Read(NamedTuple):
    """An operation that reads all of a result."""

    number: int
    name: str
    place: int
    """Among its arguments."""
    shape: tuple[int, ...]
    """In which it reads it."""


class _Result:
    """What is read of one tensor that an operation made."""

    def __init__(self, storage: int, tensor: torch.Tensor) -> None:
        self.storage = storage
        self.shape, self.strides = tuple(tensor.shape), tuple(tensor.stride())
        self.parts: dict[tuple[Any, ...], int] = {}
        """By where each part lies that is read: its elements."""
        self.readers: list[_Read] = []
        self.is_changed = False

    @property
    def is_read(self) -> bool:
        return bool(self.parts or self.readers)

    def read_share(self) -> float:
        """Of its elements; parts that overlap count twice."""
        elements = torch.Size(self.shape).numel()
        return 1.0 if self.readers else min(sum(self.parts.values()) / max(elements, 1), 1.0)

    def is_diagonal(self) -> bool:
        """Whether only the diagonal of a matrix, or of each of a batch, is read."""
        if len(self.shape) < 2 or self.shape[-1] != self.shape[-2] or not self.is_read:
            return False
        step = sum(self.strides[-2:])
        return all(strides[-1:] == (step,) for _, _, strides in self.parts) and all(
            one.name == _TRACE for one in self.readers
        )


class CheaperOperators(Observer[_Result]):
    """Of the first step's forward work."""

    def __init__(self, flow: Flow) -> None:
        super().__init__(flow)
        self._made: dict[int, list[_Result]] = {}
        """By operation."""
        self._inner: dict[int, int] = {}
        """By product: the size of the dimension that it sums over."""
        self._nonzero: dict[int, float] = {}
        """By product with a matrix that is mostly zeros: the share of others."""
        self._counted: dict[tuple[int, int, int], float] = {}
        """That share, by the matrix's storage, version and offset."""
        self._fourier: list[int] = []
        """Transforms of real numbers that make all frequencies."""
        self._from_real: set[int] = set()
        """Copies of real numbers to complex ones."""
        self._back: set[int] = set()
        """Transforms of frequencies back to numbers."""
        self._complex: set[int] = set()
        self._symmetric: set[int] = set()

    def note(self, call: OperatorCall) -> None:
        """It may read a result that is followed, or make one."""
        number = call.number
        if number >= 0 and any(one.is_complex() for one in tensors_of((call.result,))):
            self._complex.add(number)
        if reads_shape_alone(call.name) or call.is_view:
            return
        if self._held:
            self._note_reads(call)
        if call.is_of_first_step and number >= 0:
            self._note_made(call)

    def choices(self, work: StepWork) -> Iterator[Choice]:
        """What was found; an operation may be a member of several."""
        for number, share in self._nonzero.items():
            if share:
                yield Choice("zeros", number, frozenset({number}), _PER_NONZERO * share)
        for number, results in self._made.items():
            if all(self._flow.is_let_go(one.storage) and not one.is_changed for one in results):
                yield from self._choices_of(number, results)
        for number in self._fourier:
            behind = self._complex_behind(number, work)
            if not behind.isdisjoint(self._back):  # else somebody may want all frequencies
                operations = work.operations
                whole = operations[number].result_bytes
                large = frozenset(one for one in behind if operations[one].result_bytes * 2 > whole)
                yield Choice("real", number, large, _NEEDED["real"])

    def _note_reads(self, call: OperatorCall) -> None:
        written = set(keys_of(call.written))
        for place, argument in enumerate(call.given):
            for tensor in tensors_of((argument,)):
                result = self._held_of(tensor)
                if result is None:
                    continue
                if result.storage in written or not is_strided(tensor):
                    result.is_changed = True
                elif tensor.numel() < torch.Size(result.shape).numel():
                    part = (tensor.storage_offset(), tuple(tensor.shape), tuple(tensor.stride()))
                    result.parts[part] = tensor.numel()
                else:
                    result.readers.append(_Read(call.number, call.name, place, tuple(tensor.shape)))

    def _note_made(self, call: OperatorCall) -> None:
        number, name, args = call.number, call.name, call.args
        made = [one for one in tensors_of((call.result,)) if is_strided(one)]
        if name == _COPY and not args[0].is_complex() and number in self._complex:
            self._from_real.add(number)
        if name == _FOURIER and args[3:4] == (False,):
            self._fourier.append(number)
        if name == _COMPLEX_FOURIER and args[3:4] == (False,):
            self._back.add(number)
        elif name == _COMPLEX_FOURIER and not self._from_real.isdisjoint(self._flow.operations[number].inputs):
            self._fourier.append(number)
        if name not in _FOLLOWED:
            return
        if name == _EIGENVALUES and _is_symmetric(args[0]):
            self._symmetric.add(number)
        if factors := PRODUCTS.get(name):
            self._inner[number] = int(args[factors[0]].shape[-1])
            shares = [self._nonzero_share(args[place]) for place in factors]
            if min(shares) <= _MOST_NONZERO:
                self._nonzero[number] = min(shares)
        self._made[number] = [_Result(key_of(one), one) for one in made]
        self._held.update((one.storage, one) for one in self._made[number] if one.storage)

    def _nonzero_share(self, matrix: torch.Tensor) -> float:
        """1 where it is not counted."""
        is_given = is_strided(matrix) and not matrix.requires_grad and matrix.is_floating_point()
        if not is_given or matrix.dim() < 2 or matrix.numel() < _LEAST_ELEMENTS:
            return 1.0
        key = (key_of(matrix), matrix._version, matrix.storage_offset())
        if key not in self._counted:
            with torch_compat.without_modes(), torch.no_grad():
                self._counted[key] = int(torch.count_nonzero(matrix)) / matrix.numel()
        return self._counted[key]

    def _choices_of(self, number: int, results: list[_Result]) -> Iterator[Choice]:
        one, name = self._flow.operations[number], self._flow.operations[number].name
        first, alone = results[0], frozenset({number})
        if name in _VECTORS and len(results) > max(_VECTORS[name]):
            if one.node < 0 and not any(results[place].is_read for place in _VECTORS[name]):
                yield Choice("values", number, alone, _NEEDED["values"])
            elif number in self._symmetric:
                yield Choice("symmetric", number, alone, _NEEDED["symmetric"])
        elif name == _SORT:
            yield Choice("sort", number, alone, _PER_SORTED * max(result.read_share() for result in results))
        elif name == _INVERSE:
            readers = first.readers
            if readers and not first.parts and all(reader.name in PRODUCTS for reader in readers):
                yield Choice("inverse", number, alone.union(reader.number for reader in readers), _NEEDED["inverse"])
        elif name == _CONVOLUTION:
            yield Choice("part", number, alone, first.read_share())
        elif first.is_diagonal():
            yield Choice("diagonal", number, alone, 1 / first.shape[-1])
        elif name in CHAINED and len(first.readers) == 1 and not first.parts:
            yield from self._other_order(number, first)

    def _other_order(self, number: int, result: _Result) -> Iterator[Choice]:
        """Of two products, the second of which alone reads the first: with the other two factors multiplied first."""
        (reader,) = result.readers
        second = self._flow.operations[reader.number]
        if reader.name != second.name or reader.name != self._flow.operations[number].name or reader.place > 1:
            return
        if reader.shape[:-2] != result.shape[:-2] or sorted(reader.shape[-2:]) != sorted(result.shape[-2:]):
            return
        outer, inner = sum(result.shape[-2:]), self._inner[number]
        elements, free = result.shape[-1] * result.shape[-2], second.shape[-1 if reader.place == 0 else -2]
        needed = inner * free * outer / max(elements * (inner + free), 1)
        yield Choice("order", number, frozenset({number, reader.number}), needed)

    def _complex_behind(self, first: int, work: StepWork) -> set[int]:
        """A transform, and what the first step computes of its complex numbers."""
        operations = work.operations
        found, left = {first}, [first]
        while left:
            for number in work.readers[left.pop()]:
                is_complex = number in self._complex or operations[number].name.startswith("aten::_fft_")
                if is_complex and number not in found and not operations[number].step:
                    found.add(number)
                    left.append(number)
        return found


def _is_symmetric(matrix: torch.Tensor) -> bool:
    """Whether a matrix, or each of a batch, is its own (conjugate) transpose."""
    with torch_compat.without_modes(), torch.no_grad():
        return bool((matrix - matrix.mH).abs().amax() <= _SYMMETRY * matrix.abs().amax()) if matrix.numel() else False


def cheaper_operators(
    work: StepWork, sources: Sequence[Callable[[StepWork], Iterator[Choice]]], repeats: Set[int]
) -> list[CheaperOperator]:
    """Of the first step, by line and kind, without what is done again (`repeats`); the first of `sources` wins."""
    operations = work.operations
    mine = {number for number, _ in work.forward}
    groups: dict[tuple[int, OperatorChoice], list[Choice]] = defaultdict(list)
    claimed = {number for number in mine if _is_of_one_hot(work, number)}  # `broadcasts` has these
    for one in chain.from_iterable(choices_of(work) for choices_of in sources):
        is_free = one.members <= mine and claimed.isdisjoint(one.members)
        if is_free and one.number in work.live and one.number not in repeats and one.needed <= _MOST_NEEDED:
            claimed |= one.members
            groups[work.place_of(one.number), one.kind].append(one)
    found = []
    for (place, kind), choices in groups.items():
        first = max(choices, key=lambda one: operations[one.number].result_bytes)
        largest = operations[first.number]
        is_of_library = kind in OF_LIBRARIES and not largest.site.is_direct
        members = {number for one in choices for number in one.members}
        others = {work.place_of(number) for one in choices for number in mine.intersection(one.others)}
        found.append(
            CheaperOperator(
                place=place,
                kind=kind,
                name=largest.name,
                shape=list(largest.shape),
                times=len(choices),
                module=largest.site.modules[-1] if is_of_library and largest.site.modules else "",
                different=first.different,
                needed=max(_LEAST_NEEDED, *(one.needed for one in choices)),
                others=sorted(others - {place}),
                operators=work.uses(members),
                backward=work.backward_uses_of_nodes(members),
            )
        )
    return found


def _is_of_one_hot(work: StepWork, number: int) -> bool:
    """Whether an operation is a product with one-hot vectors, or with a copy of these."""
    operations, inputs = work.operations, work.operations[number].inputs
    sources = inputs.union(*(operations[one].inputs for one in inputs))
    return operations[number].name in PRODUCTS and any(operations[one].ones for one in sources)

"""Operators in place of which a cheaper one would do, by what they are given and what is read of their results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from deepscope.capture import torch_compat
from deepscope.capture.audit.flow import Flow, Returned, tensors_of
from deepscope.capture.audit.operator_facts import is_strided
from deepscope.capture.audit.operator_rows import reads_shape_alone
from deepscope.trace.format.audit import OperatorChoice

PRODUCTS = {"aten::mm": (0, 1), "aten::bmm": (0, 1), "aten::addmm": (1, 2), "aten::baddbmm": (1, 2), "aten::mv": (0, 1)}
"""Which arguments of a product are multiplied."""
_CHAINED = frozenset({"aten::mm", "aten::bmm"})
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


class CheaperOperators:
    """Of the first step's forward work."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._results: dict[int, _Result] = {}
        """By storage."""
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

    def note(self, added: range, returned: Returned, *, makes: bool) -> None:
        """A forward operator has returned; `makes`: whether it is work of the first step."""
        number = added[0] if len(added) == 1 else -1
        if number >= 0 and any(one.is_complex() for one in tensors_of((returned.result,))):
            self._complex.add(number)
        if reads_shape_alone(returned.name) or returned.is_view:
            return
        if self._results:
            self._note_reads(number, returned)
        if makes and number >= 0:
            self._note_made(number, returned.name, returned)

    def all(self, readers: Mapping[int, Sequence[int]]) -> Iterator[Choice]:
        """What was found; an operation may be a member of several. `readers`: as of `StepWork`."""
        for number, share in self._nonzero.items():
            if share:
                yield Choice("zeros", number, frozenset({number}), _PER_NONZERO * share)
        for number, results in self._made.items():
            if all(self._is_followed(one) for one in results):
                yield from self._choices_of(number, results)
        for number in self._fourier:
            behind = self._complex_behind(number, readers)
            if not behind.isdisjoint(self._back):  # else somebody may want all frequencies
                operations = self._flow.operations
                whole = operations[number].result_bytes
                large = frozenset(one for one in behind if operations[one].result_bytes * 2 > whole)
                yield Choice("real", number, large, _NEEDED["real"])

    def _note_reads(self, number: int, returned: Returned) -> None:
        written = set(self._flow.keys_of(returned.written()))
        for place, argument in enumerate(returned.given):
            for tensor in tensors_of((argument,)):
                result = self._results.get(self._flow.key_of(tensor))
                if result is None:
                    continue
                if result.storage in written or not is_strided(tensor):
                    result.is_changed = True
                elif tensor.numel() < torch.Size(result.shape).numel():
                    part = (tensor.storage_offset(), tuple(tensor.shape), tuple(tensor.stride()))
                    result.parts[part] = tensor.numel()
                else:
                    result.readers.append(_Read(number, returned.name, place, tuple(tensor.shape)))

    def _note_made(self, number: int, name: str, returned: Returned) -> None:
        args = returned.args
        made = [one for one in tensors_of((returned.result,)) if is_strided(one)]
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
        self._made[number] = [_Result(self._flow.key_of(one), one) for one in made]
        self._results.update((one.storage, one) for one in self._made[number] if one.storage)

    def _nonzero_share(self, matrix: torch.Tensor) -> float:
        """1 where it is not counted."""
        is_given = is_strided(matrix) and not matrix.requires_grad and matrix.is_floating_point()
        if not is_given or matrix.dim() < 2 or matrix.numel() < _LEAST_ELEMENTS:
            return 1.0
        key = (self._flow.key_of(matrix), matrix._version, matrix.storage_offset())
        if key not in self._counted:
            with torch_compat.without_modes(), torch.no_grad():
                self._counted[key] = int(torch.count_nonzero(matrix)) / matrix.numel()
        return self._counted[key]

    def _is_followed(self, result: _Result) -> bool:
        flow = self._flow
        is_hidden = flow.is_used_unseen(result.storage) or not flow.is_gone(result.storage)
        return not result.is_changed and not is_hidden

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
        elif name in _CHAINED and len(first.readers) == 1 and not first.parts:
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

    def _complex_behind(self, first: int, readers: Mapping[int, Sequence[int]]) -> set[int]:
        """A transform, and what the first step computes of its complex numbers."""
        operations = self._flow.operations
        found, left = {first}, [first]
        while left:
            for number in readers.get(left.pop(), ()):
                is_complex = number in self._complex or operations[number].name.startswith("aten::_fft_")
                if is_complex and number not in found and not operations[number].step:
                    found.add(number)
                    left.append(number)
        return found


def _is_symmetric(matrix: torch.Tensor) -> bool:
    """Whether a matrix, or each of a batch, is its own (conjugate) transpose."""
    with torch_compat.without_modes(), torch.no_grad():
        return bool((matrix - matrix.mH).abs().amax() <= _SYMMETRY * matrix.abs().amax()) if matrix.numel() else False

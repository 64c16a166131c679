"""Matrices that are known to be diagonal, and what goes through all of their elements.

The Cholesky factor and the inverse of a diagonal matrix are diagonal, and so are products of two.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch

from deepscope.capture import torch_compat
from deepscope.capture.audit.cheaper_operators import CHAINED, PRODUCTS, Choice
from deepscope.capture.audit.flow import Flow, Observer
from deepscope.capture.audit.operator_calls import (
    OperatorCall,
    aten,
    covers_storage,
    is_strided,
    key_of,
    keys_of,
    tensors_of,
)
from deepscope.capture.audit.operator_rows import is_by_element, reads_shape_alone
from deepscope.capture.audit.step_work import StepWork

_SOLVERS = {
    "aten::linalg_solve_triangular": (0, 1),
    "aten::triangular_solve": (1, 0),
    "aten::_linalg_solve_ex": (0, 1),
    "aten::cholesky_solve": (1, 0),
}
"""Where each has its matrix, and the other sides."""
_FACTORS = aten("linalg_cholesky_ex cholesky linalg_inv_ex cholesky_inverse linalg_matrix_exp")
"""Their results are diagonal, too."""
_NUMBERS = aten("_linalg_det _linalg_slogdet _linalg_eigh _linalg_svd linalg_lu_factor_ex")
_KEEPING = aten("neg sqrt square abs relu clone _to_copy tril")
"""By element, where zeros stay zeros; with no other tensor."""
_SCALING, _SUMS = aten("mul div"), aten("add sub")
_REDUCTIONS = aten("all any sum mean amax amin max min norm")
_ASKING = frozenset({*PRODUCTS, *_SOLVERS, *_FACTORS, *_NUMBERS, *_SCALING})
"""Of the matrices that they are given it is seen whether they are diagonal."""
_DIAGONALS = aten("diag_embed diag")
_EYE, _POWER = "aten::eye", "aten::pow"

_MOST_ELEMENTS = 1 << 22
"""Of a matrix from before the steps whose zeros are counted."""
_LEAST_NEEDED = 0.1
"""What is left of the work: vectors take as many calls as some of it."""


class _Matrix(NamedTuple):
    """What a storage holds."""

    size: int
    """Rows of the matrix, or of each of a batch; each lies in one piece, by rows or by columns."""
    root: int
    """The operation that all of these began with."""
    is_diagonal: bool = True
    """Else it is what a library has computed of diagonal ones, element by element."""


class DiagonalMatrices(Observer[_Matrix]):
    """Of the first step's forward work."""

    def __init__(self, flow: Flow) -> None:
        super().__init__(flow)
        self._given: dict[tuple[int, int, int, tuple[int, ...]], bool] = {}
        """Whether a matrix from before the steps is diagonal, by its storage, version, offset and shape."""
        self._made: dict[int, int] = {}
        """Operations whose results hold all elements of such matrices, and the storages of these."""
        self._through: set[int] = set()
        """Operations that go through all elements, whose results would be the same."""
        self._costly: set[int] = set()
        """Those of them that are made for matrices."""
        self._of_diagonals: set[int] = set()
        """Operations that read nothing else of such matrices but their diagonals."""
        self._root_of: dict[int, int] = {}
        """By operation of all these."""
        self._parents: dict[int, int] = {}
        """Of a root that was joined with another one: that one."""
        self._sizes: dict[int, int] = {}
        """By root."""
        self._from_outside: dict[int, int] = {}
        """By storage of a matrix from before the steps: the root, which is the first operation that it is given to."""

    def note(self, call: OperatorCall) -> None:
        """It may read such matrices, or make one."""
        number, name = call.number, call.name
        if reads_shape_alone(name):
            return
        if call.is_view:
            if number >= 0:  # as `aten::_unsafe_view`
                self._pass_on(number, call)
            return
        if not call.is_of_first_step or number < 0:
            self._forget(call.written)
            return
        if self._reads_diagonals(call):
            self._of_diagonals.add(number)
        result = next((one for one in tensors_of((call.result,)) if is_strided(one)), None)
        matrices = [self._matrix(one, number, name) for one in call.args]
        known = [one for one in matrices if one is not None]
        is_costly = _is_costly(name, matrices)
        is_diagonal = not call.written and result is not None and _makes_diagonal(name, call, result, matrices)
        if is_costly or is_diagonal:
            size = max((one.size for one in known), default=0) or (result.shape[-1] if result is not None else 0)
            root = self._join({one.root for one in known} or {number}, size)
            self._root_of[number] = root
            if is_costly:
                self._costly.add(number)
                self._through.add(number)
            self._hold(number, result, _Matrix(size, root) if is_diagonal else None)
        elif call.site.is_direct or not self._goes_on(number, call, result):
            self._forget(call.written)

    def choices(self, work: StepWork) -> Iterator[Choice]:
        """What would be work on vectors."""
        flow = self._flow
        members = self._through | work.read_alone(self._made, self._through | self._of_diagonals)
        groups: dict[int, set[int]] = defaultdict(set)
        roots: dict[int, set[int]] = defaultdict(set)
        for number in members:
            groups[self._final(self._root_of[number])].add(number)
        for root in self._root_of.values():
            roots[self._final(root)].add(root)
        for final, mine in groups.items():
            outside = (key for key, root in self._from_outside.items() if self._final(root) == final)
            if mine.isdisjoint(self._costly) or not all(map(flow.is_unwritten, outside)):
                continue
            first = max(roots[final], key=lambda root: (flow.operations[root].result_bytes, -root))
            needed = max(1 / min(self._sizes[root] for root in roots[final]), _LEAST_NEEDED)
            others = tuple(sorted(roots[final] - {first}))
            yield Choice("diagonal_matrices", first, frozenset(mine), needed, others)

    def _matrix(self, value: object, number: int, name: str) -> _Matrix | None:
        """A diagonal matrix, or several, that an operator is given; `number`: its operation."""
        if not isinstance(value, torch.Tensor) or not is_strided(value) or not _is_square(value):
            return None
        size, key = value.shape[-1], key_of(value)
        held = self._held.get(key)
        if held is not None:
            return held if held.is_diagonal and held.size == size and _lies_in_pieces(value) else None
        if name not in _ASKING or not self._is_given(value, key):
            return None
        return _Matrix(size, self._from_outside.setdefault(key, number))

    def _is_given(self, matrix: torch.Tensor, key: int) -> bool:
        """Whether it is from before the steps, and diagonal with no zeros there."""
        if matrix.requires_grad or not matrix.is_floating_point() or matrix.numel() > _MOST_ELEMENTS:
            return False
        if not self._flow.is_unwritten(key):
            return False
        known = (key, matrix._version, matrix.storage_offset(), tuple(matrix.shape))
        if known not in self._given:
            with torch_compat.without_modes(), torch.no_grad():
                diagonal = matrix.diagonal(dim1=-2, dim2=-1)
                is_full = bool((diagonal != 0).all())
                self._given[known] = is_full and int(torch.count_nonzero(matrix)) == diagonal.numel()
        return self._given[known]

    def _reads_diagonals(self, call: OperatorCall) -> bool:
        given = [one for one in tensors_of(call.given) if is_strided(one) and one.dim()]
        held = [(one, matrix) for one in given if (matrix := self._held_of(one)) is not None]
        return bool(held) and all(
            (one.shape[-1], one.stride()[-1]) == (matrix.size, matrix.size + 1) for one, matrix in held
        )

    def _goes_on(self, number: int, call: OperatorCall, result: torch.Tensor | None) -> bool:
        """Whether a library goes through all elements of such matrices with this operation."""
        whole = [one for one in tensors_of(call.given) if _is_whole(one)]
        known = [(held, one.numel()) for one in whole if (held := self._held_of(one)) is not None]
        if not known or result is None:
            return False
        size = max(one.size for one, _ in known)
        if is_by_element(call.name, call.function) and result.numel() >= max(count for _, count in known):
            root = self._root_of[number] = self._join({one.root for one, _ in known}, size)
            self._hold(number, result, _Matrix(size, root, is_diagonal=False))
        elif call.name in _REDUCTIONS:
            self._root_of[number] = self._join({one.root for one, _ in known}, size)
            self._through.add(number)
        else:
            return False
        return True

    def _hold(self, number: int, result: torch.Tensor | None, matrix: _Matrix | None) -> None:
        """Follow what an operation has made."""
        key = 0 if result is None else key_of(result)
        is_followed = matrix is not None and (not matrix.is_diagonal or _lies_in_pieces(result))
        if result is None or not key:
            return
        self._held.pop(key, None)
        if matrix is not None and is_followed and covers_storage(result):
            self._held[key] = matrix
            self._made[number] = key

    def _pass_on(self, number: int, call: OperatorCall) -> None:
        key = next(keys_of((call.result,)), 0)
        if (held := self._held.get(key)) is not None:
            self._made[number], self._root_of[number] = key, held.root

    def _final(self, root: int) -> int:
        while root in self._parents:
            root = self._parents[root]
        return root

    def _join(self, roots: set[int], size: int) -> int:
        for root in roots:
            self._sizes.setdefault(root, size)
        first, *others = sorted({self._final(one) for one in roots})
        self._parents.update(dict.fromkeys(others, first))
        return first


def _is_costly(name: str, matrices: Sequence[_Matrix | None]) -> bool:
    """Whether an operator takes a diagonal matrix as one of those that it is made for."""
    if name in _SOLVERS:
        return matrices[_SOLVERS[name][0]] is not None
    places = PRODUCTS.get(name, (0,) if name in _FACTORS or name in _NUMBERS else ())
    return any(matrices[place] is not None for place in places)


def _makes_diagonal(name: str, call: OperatorCall, result: torch.Tensor, matrices: Sequence[_Matrix | None]) -> bool:
    """Whether an operator's result is diagonal."""
    args = call.args
    one, other = (*(matrix is not None for matrix in matrices), False, False)[:2]
    if not _is_square(result):
        return False
    if name in _DIAGONALS:
        places = [int(one) for one in args[1:4]]
        return bool(args[0].dim() == result.dim() - 1) and [*places, *(0, -2, -1)[len(places) :]] == [0, -2, -1]
    if name == _POWER:
        return one and isinstance(args[1], (int, float)) and args[1] > 0
    if name in _SCALING:
        return one or (name == "aten::mul" and other)
    if name in _KEEPING or name in _FACTORS:
        return one
    return name == _EYE or (one and other and (name in CHAINED or name in _SUMS or name in _SOLVERS))


def _is_square(tensor: torch.Tensor) -> bool:
    return bool(tensor.dim() > 1 and tensor.shape[-1] == tensor.shape[-2] > 1)


def _is_whole(tensor: torch.Tensor) -> bool:
    """Whether it has all elements of its storage, in whatever shape, or each several times."""
    return is_strided(tensor) and tensor.numel() > 0 and (covers_storage(tensor) or 0 in tensor.stride())


def _lies_in_pieces(tensor: torch.Tensor) -> bool:
    """Whether each matrix of its last two dimensions lies in one piece, by rows or by columns."""
    size = tensor.shape[-1]
    is_one = sorted(tensor.stride()[-2:]) == [1, size] and not tensor.storage_offset() % size**2
    return is_one and all(
        n == 1 or not stride % size**2 for n, stride in zip(tensor.shape[:-2], tensor.stride(), strict=False)
    )

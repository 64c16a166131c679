"""Products with a weight whose rows repeat: the different rows could be multiplied, and their results gathered.

Which rows repeat, because they were gathered or expanded, is known by shapes and strides alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from math import prod
from typing import Any, NamedTuple

import torch

from deepscope.capture.audit.cheaper_operators import Choice
from deepscope.capture.audit.flow import Flow, Observer, Operation
from deepscope.capture.audit.operator_calls import COPIES, JOINS, OperatorCall, is_strided, key_of
from deepscope.capture.audit.step_work import BYTE, CALL, StepWork

_FACTORS = {"aten::mm": (0, 1), "aten::addmm": (1, 2), "aten::bmm": (0, 1), "aten::linear": (0, 1)}
"""Which arguments of a product are the input and the weight."""
_MOST_SIDE_BY_SIDE = 4
"""So many gathered rows are read as one (`h[edges].flatten(1)`)."""
_FLOP = 1 / 120
"""Large products with a weight come close to what a core can do, unlike those that `StepWork` weighs."""
_GATHERED_BYTE = 1 / 5
"""Rows by numbers, read one by one, or added to where they came from."""
_LAYERS = frozenset({"Linear", "Sequential"})
"""Modules around a product that a line of the user's may call: others are a library's, which nobody changes."""


class _Part(NamedTuple):
    """Neighbouring features of a matrix."""

    width: int
    different: int
    """Rows, at most."""
    is_gathered: bool
    """Else its rows repeat by strides, if at all."""
    needs_gradient: bool


class _Rows(NamedTuple):
    """What an operation made of others' rows; each of its rows lies in one piece."""

    maker: int
    parts: tuple[_Part, ...]
    is_copy: bool
    """It does no more than to join or copy them."""

    @property
    def width(self) -> int:
        return sum(part.width for part in self.parts)


class _Product(NamedTuple):
    """A product of rows and a weight."""

    rows: int
    features: int
    """Of its result."""
    parts: tuple[_Part, ...]
    copy: int
    """The operation that joined or copied its input; -1 for none."""

    def repeats(self, part: _Part) -> bool:
        """Whether a part of the input has at least twice as many rows as there are different ones."""
        return 2 * part.different <= self.rows


class RepeatedRows(Observer[_Rows]):
    """Of the first step's forward work."""

    def __init__(self, flow: Flow, parameters: set[int]) -> None:
        """`parameters`: the storages of all."""
        super().__init__(flow)
        self._weights = set(parameters)
        self._products: dict[int, _Product] = {}
        """By operation, those with rows that repeat."""

    def note(self, call: OperatorCall) -> None:
        """It may take, join or copy rows, or multiply them."""
        if not call.is_of_first_step or call.is_view:
            return
        self._forget(call.written)
        if call.number < 0 or not isinstance(call.result, torch.Tensor) or not is_strided(call.result):
            return
        if call.name in _FACTORS:
            self._note_product(call)
        else:
            self._note_rows(call)

    def choices(self, work: StepWork) -> Iterator[Choice]:
        """Where the user's own lines call the product."""
        operations = work.operations
        products = {number: one for number, one in self._products.items() if _is_users(work, operations[number])}
        backward: dict[int, list[Operation]] = defaultdict(list)
        """By the node of its forward operation."""
        for _, one in work.backward:
            backward[one.forward_node].append(one)
        copies: set[int] = set()
        for number, product in products.items():
            one = operations[number]
            is_read_alone = product.copy >= 0 and products.keys() >= set(work.readers[product.copy])
            copy = {product.copy} - copies if is_read_alone else set()
            copies |= copy
            different = max(part.different for part in product.parts if product.repeats(part))
            behind = backward[one.node] if one.node >= 0 else []
            needed = _needed(product, one, behind, copy_bytes=work.bytes_of(copy))
            yield Choice("repeated_rows", number, frozenset({number, *copy}), needed, different=different)

    def _note_product(self, call: OperatorCall) -> None:
        rows, weight = (call.args[place] for place in _FACTORS[call.name])
        if key_of(weight) not in self._weights or not is_strided(rows) or rows.dim() < 2:
            return
        if not rows.numel() or not call.result.numel():
            return
        if weight.dim() == 3 and weight.size(0) > 1 and weight.stride(0):  # another one for each matrix
            return
        made = self._rows_of(rows)
        product = _Product(
            rows=rows.numel() // rows.size(-1),
            features=call.result.size(-1),
            parts=self._parts_of(rows),
            copy=made.maker if made is not None and made.is_copy else -1,
        )
        if any(map(product.repeats, product.parts)):
            self._products[call.number] = product

    def _note_rows(self, call: OperatorCall) -> None:
        name, args, result = call.name, call.args, call.result
        key = key_of(result)
        if not key or not args:
            return
        if name in COPIES and key_of(args[0]) in self._weights:  # as autocast does
            self._weights.add(key)
        elif result.dim() > 1 and result.numel() and result.size(-1) > 1:
            is_copy = name in JOINS or name in COPIES
            parts = self._joined(name, args) if name in JOINS else self._taken(name, args, result)
            if parts and result.is_contiguous():
                self._held[key] = _Rows(call.number, tuple(parts), is_copy)

    def _joined(self, name: str, args: Sequence[Any]) -> list[_Part]:
        """Tensors with the same rows, one beside the other; none where they are joined in another way."""
        tensors: list[torch.Tensor] = list(args[0])
        if not all(is_strided(one) and one.dim() > 1 for one in tensors):
            return []
        dimensions = tensors[0].dim() + (name == "aten::stack")
        beside = dimensions - (2 if name == "aten::stack" else 1)
        dimension = (int(args[1]) if len(args) > 1 else 0) % dimensions
        shapes = {one.shape[:-1] for one in tensors}
        if dimension != beside or len(shapes) > 1:
            return []
        return [part for one in tensors for part in self._parts_of(one)]

    def _taken(self, name: str, args: Sequence[Any], result: torch.Tensor) -> Sequence[_Part]:
        """The first argument's parts, where an operator takes or copies whole rows of it."""
        source = args[0]
        if not isinstance(source, torch.Tensor) or not is_strided(source) or source.dim() < 2:
            return []
        if name in COPIES:
            return self._parts_of(source)
        last = source.dim() - 1
        takes_rows = (
            name == "aten::embedding"
            or (name == "aten::index" and (len(args[1]) <= last or args[1][last] is None))
            or (name == "aten::index_select" and int(args[1]) % (last + 1) != last)
            or (name == "aten::gather" and int(args[1]) % (last + 1) != last and args[2].stride(-1) == 0)
            or (name == "aten::repeat" and args[1][-1] == 1)
        )
        if not takes_rows or result.size(-1) != source.size(-1):
            return []
        return [part._replace(is_gathered=True) for part in self._parts_of(source)]

    def _parts_of(self, tensor: torch.Tensor) -> tuple[_Part, ...]:
        """Of a matrix, or of one for each place of the first dimensions: its last one has the features."""
        shape, strides = tensor.shape[:-1], tensor.stride()[:-1]
        different = prod(size for size, stride in zip(shape, strides, strict=True) if stride)
        made = self._rows_of(tensor)
        if made is None:
            return (_Part(tensor.size(-1), different, is_gathered=False, needs_gradient=tensor.requires_grad),)
        return tuple(
            part._replace(different=min(part.different, different))
            for part in made.parts * (tensor.size(-1) // made.width)
        )

    def _rows_of(self, tensor: torch.Tensor) -> _Rows | None:
        """What was made that a tensor has whole rows of, maybe some of them as one; None where it has not."""
        key = key_of(tensor)
        made = self._held.get(key)
        if made is None or self._flow.is_used_unseen(key) or not tensor.size(-1):
            return None
        times, left = divmod(tensor.size(-1), made.width)
        is_whole = not left and times <= _MOST_SIDE_BY_SIDE and _lies_in_rows(tensor, made.width)
        return made if is_whole else None


def _lies_in_rows(tensor: torch.Tensor, width: int) -> bool:
    """Whether rows of so many elements lie in one piece each, and each begins at a multiple of that."""
    *others, (size, step) = zip(tensor.shape, tensor.stride(), strict=True)
    is_in_one_piece = step == 1 or size == 1
    return (
        is_in_one_piece
        and tensor.storage_offset() % width == 0
        and all(stride % width == 0 for size, stride in others if size > 1)
    )


def _is_users(work: StepWork, one: Operation) -> bool:
    """Whether a line of the user's calls a product, or `nn.Linear`, alone or in an `nn.Sequential`."""
    site = one.site
    depth = len(work.paths[site.path])
    modules = {name for name, outside in zip(site.modules, site.depths, strict=True) if outside == depth}
    return site.is_direct or modules <= _LAYERS


def _needed(product: _Product, one: Operation, backward: Sequence[Operation], *, copy_bytes: int) -> float:
    """The share of the work that is left, forward and backward, with what gathering and adding the results costs."""
    multiplied = sum(CALL + BYTE * other.result_bytes + _FLOP * other.flops for other in (one, *backward))
    repeated = [part for part in product.parts if product.repeats(part)]
    others = [part.width for part in product.parts if not product.repeats(part)]
    left = sum(others) + sum(part.width * part.different / product.rows for part in repeated)
    width = sum(part.width for part in product.parts)
    summands = len(repeated) + bool(others)
    added = (summands - 1) * (CALL * (1 + len(backward)) + BYTE * one.result_bytes)
    copied = BYTE * copy_bytes * sum(others) / width if len(others) > 1 else 0.0
    column_bytes = one.result_bytes / product.features
    moved = column_bytes * sum(_moved(product, part, has_backward=bool(backward)) for part in repeated)
    return min(max(multiplied * left / width + added + copied + moved, 0.0) / (multiplied + BYTE * copy_bytes), 1.0)


def _moved(product: _Product, part: _Part, *, has_backward: bool) -> float:
    """What gathering rows of results takes longer than gathering those of a part; less than 0 where it is faster.

    Of rows with one byte for an element, divided by how many there are.
    """
    more = product.features - part.width
    if not part.is_gathered:
        return BYTE * (more if part.needs_gradient else product.features) * has_backward
    return _GATHERED_BYTE * (more + (more if part.needs_gradient else product.features) * has_backward)

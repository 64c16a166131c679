"""Which rows of a product's input repeat, because it was gathered or expanded: known by shapes and strides alone."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import torch

from deepscope.capture.audit.flow import Flow, Returned
from deepscope.capture.audit.operator_facts import is_strided

_FACTORS = {"aten::mm": (0, 1), "aten::addmm": (1, 2), "aten::bmm": (0, 1), "aten::linear": (0, 1)}
"""Which arguments of a product are the input and the weight."""
_JOINING = frozenset({"aten::cat", "aten::stack"})
_COPYING = frozenset({"aten::clone", "aten::_to_copy"})
_MOST_SIDE_BY_SIDE = 4
"""So many gathered rows are read as one (`h[edges].flatten(1)`)."""


class Part(NamedTuple):
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
    parts: tuple[Part, ...]
    is_copy: bool
    """It does no more than to join or copy them."""

    @property
    def width(self) -> int:
        return sum(part.width for part in self.parts)


class Product(NamedTuple):
    """A product of rows and a weight."""

    rows: int
    features: int
    """Of its result."""
    parts: tuple[Part, ...]
    copy: int
    """The operation that joined or copied its input; -1 for none."""

    def repeats(self, part: Part) -> bool:
        """Whether a part of the input has at least twice as many rows as there are different ones."""
        return 2 * part.different <= self.rows


class RepeatedRows:
    """Of the first step's forward work."""

    def __init__(self, flow: Flow, parameters: set[int]) -> None:
        """`parameters`: the storages of all."""
        self._flow = flow
        self._weights = set(parameters)
        self._made: dict[int, _Rows] = {}
        """By storage."""
        self.products: dict[int, Product] = {}
        """By operation, those with rows that repeat."""

    def note(self, added: range, returned: Returned, *, makes: bool) -> None:
        """A forward operator has returned; `makes`: whether it is work of the first step."""
        if not makes or returned.is_view:
            return
        for key in self._flow.keys_of(returned.written()):
            self._made.pop(key, None)
        if len(added) != 1 or not isinstance(returned.result, torch.Tensor) or not is_strided(returned.result):
            return
        if returned.name in _FACTORS:
            self._note_product(added[0], returned.name, returned)
        else:
            self._note_rows(added[0], returned.name, returned)

    def _note_product(self, number: int, name: str, returned: Returned) -> None:
        rows, weight = (returned.args[place] for place in _FACTORS[name])
        if self._flow.key_of(weight) not in self._weights or not is_strided(rows) or rows.dim() < 2:
            return
        if not rows.numel() or not returned.result.numel():
            return
        if weight.dim() == 3 and weight.size(0) > 1 and weight.stride(0):  # another one for each matrix
            return
        made = self._rows_of(rows)
        product = Product(
            rows=rows.numel() // rows.size(-1),
            features=returned.result.size(-1),
            parts=self._parts_of(rows),
            copy=made.maker if made is not None and made.is_copy else -1,
        )
        if any(map(product.repeats, product.parts)):
            self.products[number] = product

    def _note_rows(self, number: int, name: str, returned: Returned) -> None:
        args, result = returned.args, returned.result
        key = self._flow.key_of(result)
        if not key or not args:
            return
        if name in _COPYING and self._flow.key_of(args[0]) in self._weights:  # as autocast does
            self._weights.add(key)
        elif result.dim() > 1 and result.numel() and result.size(-1) > 1:
            is_copy = name in _JOINING or name in _COPYING
            parts = self._joined(name, args) if name in _JOINING else self._taken(name, args, result)
            if parts and result.is_contiguous():
                self._made[key] = _Rows(number, tuple(parts), is_copy)

    def _joined(self, name: str, args: Sequence[Any]) -> list[Part]:
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

    def _taken(self, name: str, args: Sequence[Any], result: torch.Tensor) -> Sequence[Part]:
        """The first argument's parts, where an operator takes or copies whole rows of it."""
        source = args[0]
        if not isinstance(source, torch.Tensor) or not is_strided(source) or source.dim() < 2:
            return []
        if name in _COPYING:
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

    def _parts_of(self, tensor: torch.Tensor) -> tuple[Part, ...]:
        """Of a matrix, or of one for each place of the first dimensions: its last one has the features."""
        shape, strides = tensor.shape[:-1], tensor.stride()[:-1]
        different = prod(size for size, stride in zip(shape, strides, strict=True) if stride)
        made = self._rows_of(tensor)
        if made is None:
            return (Part(tensor.size(-1), different, is_gathered=False, needs_gradient=tensor.requires_grad),)
        return tuple(
            part._replace(different=min(part.different, different))
            for part in made.parts * (tensor.size(-1) // made.width)
        )

    def _rows_of(self, tensor: torch.Tensor) -> _Rows | None:
        """What was made that a tensor has whole rows of, maybe some of them as one; None where it has not."""
        key = self._flow.key_of(tensor)
        made = self._made.get(key)
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

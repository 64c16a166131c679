"""Which rows of a result later operators read, where an operator computes each row by itself."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from deepscope.capture.audit.flow import Flow, Observer
from deepscope.capture.audit.operator_calls import (
    OperatorCall,
    covers_storage,
    is_plain,
    is_strided,
    key_of,
    tensors_of,
)
from deepscope.capture.audit.operator_rows import (
    MOST,
    Places,
    Rows,
    Sizes,
    Taken,
    reads_shape_alone,
    rows_of,
    taken_from,
)
from deepscope.capture.audit.step_work import StepWork
from deepscope.trace.format.audit import PartlyReadResults

Mask = npt.NDArray[np.bool_]
"""Which rows are read, in the order in which they lie; shape (rows,)."""


class PartlyRead(NamedTuple):
    """A result some rows of which nobody reads."""

    is_read: Mask
    readers: frozenset[int]
    """The operations that read it row by row."""
    nodes: frozenset[int]
    """Of autograd's graph: backward they make a gradient of the whole of that of a part."""
    ignored: int | None = None
    """The target whose rows a loss leaves out, where some are read by one that does so."""
    outer: int = 1
    """How many places the first dimension has, if rows lie in its order."""

    @property
    def outermost(self) -> tuple[int, int]:
        """How many are read of so many: of the first dimension's places if some of these are not, else of all rows."""
        of_outer: Mask = np.asarray(self.is_read.reshape(self.outer, -1).any(axis=1))
        mask = self.is_read if of_outer.all() else of_outer
        return int(mask.sum()), mask.size

    @property
    def read_rows(self) -> int:
        """How many are read."""
        return int(self.is_read.sum())


class _Result(NamedTuple):
    """Where the rows of a result lie: all of a storage, each row in one piece, or so many rows by turns."""

    storage: int
    element_size: int
    shape: Sizes
    """Of the dimensions that count rows."""
    strides: Sizes
    width: int
    """Elements of a row."""
    rows: int
    step: int = 1
    """From one element of a row to the next: as many rows lie among each other."""

    @property
    def outer(self) -> int:
        """As of `PartlyRead`."""
        is_outermost = self.step == 1 and len(self.shape) > 1 and self.strides[0] == max(self.strides)
        return self.shape[0] if is_outermost else 1

    def rows_at(self, places: Places) -> Places:
        """The numbers of the rows that elements are of, in the order in which the rows lie."""
        return places // (self.width * self.step) * self.step + places % self.step


class _Read(NamedTuple):
    """What an operator reads of a storage, in elements."""

    reader: int
    """The operation that reads it row by row; -1 where it is read whatever becomes of the operation's rows."""
    by_row: Sizes
    """The strides for the rows of `reader`."""
    starts: Places
    shape: Sizes
    """Of what is read at each start, for each row."""
    strides: Sizes
    nodes: tuple[int, ...]
    """As of `PartlyRead`."""
    ignored: int | None = None
    """As of `PartlyRead`."""


class RowReads(Observer[int]):
    """Of results of the first step's forward work; by storage the operation that made all that it holds."""

    def __init__(self, flow: Flow) -> None:
        super().__init__(flow)
        self.is_blind = False
        """Some tensors were of somebody's own kind, and what reads their bytes does not show."""
        self._results: dict[int, _Result] = {}
        self._reads: dict[int, list[_Read]] = defaultdict(list)
        self._wholly: set[int] = set()
        """Operations all of whose rows are read, or may be."""

    def note(self, call: OperatorCall) -> None:
        """It may make rows, and read some; what data loaders compute counts, too."""
        self.is_blind |= getattr(call.function, "_schema", None) is None
        if reads_shape_alone(call.name) or call.is_view:
            return
        first = next((one for one in tensors_of((call.result,)) if is_strided(one)), None)
        written = call.written
        number = -1 if call.step else call.number
        rows = rows_of(call.name, call, first) if number >= 0 and first is not None else None
        result = None
        if first is not None and rows is not None and (not written or (len(written) == 1 and written[0] is first)):
            result = self._laid_out(first, rows)
        for place, argument in enumerate(call.given):
            for tensor in tensors_of((argument,)):
                maker = self._maker_of(tensor)
                if maker is None:
                    continue
                if rows is not None and result is not None and first is not None:
                    self._read(tensor, maker, number, rows.dimensions, rows.read(place, tensor, first))
                elif place == 0 and (taken := taken_from(call.name, call.args)) is not None:
                    self._take(tensor, maker, self._flow.operations[call.numbers[0]].node, taken)
                else:
                    self._read(tensor, maker)
        if result is None:
            self.read_wholly(written)
        self._forget((*written, call.result))
        if result is not None:
            self._results[number] = result
            self._held[result.storage] = number
            if self._flow.is_used_unseen(result.storage):
                self._wholly.add(number)

    def read_wholly(self, values: Iterable[Any]) -> None:
        """Somebody may read, or write to, any part of the tensors among these."""
        for tensor in tensors_of(values):
            maker = self._maker_of(tensor)
            if maker is not None:
                self._wholly.add(maker)

    def use_unseen(self, tensor: torch.Tensor, *, is_storage: bool) -> None:
        """Somebody looks at a tensor, or at its whole storage, and no operator shows it."""
        if is_storage:
            self.read_wholly((tensor,))
        elif (maker := self._maker_of(tensor)) is not None:
            self._read(tensor, maker)

    def partly_read(self) -> dict[int, PartlyRead]:
        """By operation, where some rows are read and some are not; results that somebody may still read are read.

        None where tensors were of somebody's own kind.
        """
        if self.is_blind:
            return {}
        masks: dict[int, Mask] = {}
        found: dict[int, PartlyRead] = {}
        for number, result in reversed(self._results.items()):
            reads = self._reads.get(number)
            if number in self._wholly or not reads or not self._flow.is_gone(result.storage):
                continue
            mask = self._mask(result, reads, masks)
            if mask is not None and mask.any() and not mask.all():
                masks[number] = mask
                readers = frozenset(one.reader for one in reads)
                nodes = frozenset(node for one in reads for node in one.nodes)
                left_out = (*(one.ignored for one in reads), *(found[one].ignored for one in readers & found.keys()))
                ignored = next((target for target in left_out if target is not None), None)
                found[number] = PartlyRead(mask, readers, nodes, ignored, result.outer)
        return found

    def _maker_of(self, tensor: torch.Tensor) -> int | None:
        """The operation whose rows a tensor views, as far as it is not known to be read wholly."""
        if not is_plain(tensor):
            self.is_blind = True
            return None
        maker = self._held_of(tensor)
        if maker is None or maker in self._wholly:
            return None
        if not is_strided(tensor) or tensor.element_size() != self._results[maker].element_size:
            self._wholly.add(maker)
            return None
        return maker

    def _laid_out(self, tensor: torch.Tensor, made: Rows) -> _Result | None:
        """How a result with such rows lies; None where its rows are neither in one piece each nor by turns."""
        key, dimensions = key_of(tensor), made.dimensions
        shape, strides = made.laid_out(tensor)
        width, first = prod(shape[dimensions:]), 1
        inner = [one for one in zip(shape[dimensions:], strides[dimensions:], strict=True) if one[0] > 1]
        if inner and made.along != -1:
            first = inner[-1][1]
        end = first
        for size, stride in reversed(inner):
            if stride != end:
                return None
            end *= size
        rows = prod(shape[:dimensions])
        if not key or rows < 2 or not width or rows > MOST or not covers_storage(tensor):
            return None
        by_row = strides[:dimensions]
        lie_apart = (0 < stride < first or stride % end == 0 < stride for stride in by_row)
        if not all(size == 1 or is_apart for size, is_apart in zip(shape, lie_apart, strict=False)):
            return None
        return _Result(key, tensor.element_size(), shape[:dimensions], by_row, width, rows, first)

    def _read(
        self,
        tensor: torch.Tensor,
        maker: int,
        reader: int = -1,
        dimensions: int = 0,
        by_row: tuple[Sizes, Sizes] | None = None,
    ) -> None:
        made = self._results[maker]
        is_part = tensor.numel() < made.rows * made.width
        if by_row is None:
            if not is_part:
                self._wholly.add(maker)
                return
            by_row, reader, dimensions = (tuple(tensor.shape), tuple(tensor.stride())), -1, 0
        shape, strides = by_row
        starts = np.array([tensor.storage_offset()], np.int64)
        nodes = tuple(self._nodes(tensor, maker)) if is_part else ()
        self._reads[maker].append(
            _Read(reader, strides[:dimensions], starts, shape[dimensions:], strides[dimensions:], nodes)
        )

    def _take(self, tensor: torch.Tensor, maker: int, node: int, taken: Taken) -> None:
        nodes = (*self._nodes(tensor, maker), node)
        self._reads[maker].append(_Read(-1, (), taken.starts, taken.shape, taken.strides, nodes, taken.ignored))

    def _nodes(self, tensor: torch.Tensor, maker: int) -> Iterator[int]:
        """The nodes of the views that lead from a result to a tensor."""
        node, first = tensor.grad_fn, self._flow.operations[maker].node
        while node is not None and first >= 0:
            number = int(node._sequence_nr())
            if number <= first:
                return
            yield number
            node = node.next_functions[0][0] if len(node.next_functions) == 1 else None

    def _mask(self, result: _Result, reads: Sequence[_Read], masks: dict[int, Mask]) -> Mask | None:
        """The rows that some reads are of; None for all."""
        mask = np.zeros(result.rows, np.bool_)
        for one in reads:
            starts, shape, strides = one.starts, one.shape, one.strides
            if one.reader >= 0:
                reader, rows_read = self._results[one.reader], masks.get(one.reader)
                if rows_read is None:
                    shape, strides = reader.shape + shape, one.by_row + strides
                    if prod(n for n, step in zip(shape, strides, strict=True) if step) >= result.rows * result.width:
                        return None
                else:
                    lies = reader.rows_at(_grid(reader.shape, reader.strides))
                    starts = starts + _grid(reader.shape, one.by_row)[rows_read[lies]]
            if not _mark(mask, result, starts, shape, strides):
                return None
        return mask


def _grid(shape: Sizes, strides: Sizes) -> Places:
    """Where each of so many places lies, the last dimension fastest; shape (product of `shape`,)."""
    found = np.zeros(1, np.int64)
    for size, stride in zip(shape, strides, strict=True):
        found = (found[:, None] + np.arange(size, dtype=np.int64) * stride).reshape(-1)
    return found


def _mark(mask: Mask, result: _Result, starts: Places, shape: Sizes, strides: Sizes) -> bool:
    """Mark the rows that a part of this shape at each start may touch; False for too many."""
    end, step = result.width * result.step, result.step
    sides = [(size, stride) for size, stride in zip(shape, strides, strict=True) if stride and size > 1]
    apart = [(size, stride) for size, stride in sides if stride >= end or stride % step]
    if len(starts) * prod(size for size, _ in apart) > MOST or not prod(shape):
        return not prod(shape)
    within = sum((size - 1) * stride for size, stride in sides if (size, stride) not in apart)
    starts = (starts[:, None] + _grid(*(tuple(zip(*apart, strict=True)) or ((), ()))[:2])).reshape(-1)
    first, last = result.rows_at(starts), result.rows_at(starts + within)
    if (first == last).all():
        mask[first] = True
    elif step > 1:
        return False
    else:
        edges = np.zeros(len(mask) + 1, np.int64)
        np.add.at(edges, first, 1)
        np.add.at(edges, last + 1, -1)
        mask |= np.cumsum(edges)[:-1] > 0
    return True


_FEW = 0.5
"""At most so many rows are read."""


def partly_read(work: StepWork, partly: Mapping[int, PartlyRead]) -> list[PartlyReadResults]:
    """Of the first step, the most computed first: operators one behind the other of which the same rows are read.

    `partly`: what is partly read, by operation.
    """
    operations = work.operations
    chosen = work.live & {number for number, _ in work.forward}
    few = {number: one for number, one in partly.items() if number in chosen and one.is_read.mean() <= _FEW}
    uses = work.uses(few.keys())
    mixed = {use.place for use in uses if 0 < use.unused < use.times}
    groups: dict[int, set[int]] = {}
    for number in sorted(few, reverse=True):
        mine = {number}
        for reader in few[number].readers & few.keys():
            if _share(few[reader]) == _share(few[number]):
                mine |= groups[reader]
        groups.update(dict.fromkeys(mine, mine))
    found = []
    for together in {id(one): one for one in groups.values()}.values():
        for whole in (True, False):
            mine = {n for n in together if (work.place_of(n) not in mixed) == whole}
            if not mine:
                continue
            most = max(mine, key=lambda n: (operations[n].flops, operations[n].result_bytes, -few[n].is_read.size, -n))
            nodes = frozenset().union(*(few[number].nodes for number in mine))
            found.append(
                PartlyReadResults(
                    place=work.place_of(most),
                    first=work.place_of(min(mine)),
                    rows=len(few[most].is_read),
                    read_rows=few[most].read_rows,
                    whole=whole,
                    ignored=few[most].ignored,
                    result_bytes=work.bytes_of(mine),
                    operators=work.uses(mine),
                    backward=work.backward_uses_of_nodes(mine, nodes),
                )
            )
    return sorted(found, key=lambda one: -one.result_bytes)


def partly_used_samples(work: StepWork, partly: Mapping[int, PartlyRead]) -> list[PartlyReadResults]:
    """The same of data that is loaded, by line, the most bytes first."""
    found: dict[int, PartlyReadResults] = {}
    for number, one in partly.items():
        operation = work.operations[number]
        read_rows, rows = one.outermost
        if operation.site.is_loading and work.path_of(number) and read_rows <= _FEW * rows:
            place = work.place_of(number)
            row = PartlyReadResults(
                place=place,
                first=place,
                rows=rows,
                read_rows=read_rows,
                result_bytes=operation.result_bytes,
                is_loaded=True,
            )
            if place not in found or found[place].result_bytes < row.result_bytes:
                found[place] = row
    return sorted(found.values(), key=lambda one: -one.result_bytes)


def _share(one: PartlyRead) -> Fraction:
    return Fraction(one.read_rows, len(one.is_read))

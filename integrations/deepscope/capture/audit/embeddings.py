"""Embeddings: batches of sequences with padding that are looked up, and gradients of whole tables."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import torch

from deepscope.capture.audit.flow import Flow, Observer
from deepscope.capture.audit.gradients import Gradient
from deepscope.capture.audit.operator_calls import OperatorCall, is_plain
from deepscope.capture.audit.step_work import StepWork
from deepscope.trace.format.audit import PaddedWork, TableGradient

_LOOKUP = "aten::embedding"
_NO_PADDING = -1
_SHORTEST = 2
"""A run of the padding's index is as long, where the embedding itself names none."""
_KINDS = 8
"""So many different indices tell tokens from what has few kinds (segments)."""
_MOST_LOOKUPS = 64
_LEAST_FEATURES = 2
"""A position has at least so many in work that goes through all of them."""
_DENSE = {
    "aten::embedding_dense_backward": (2, None),
    "aten::_embedding_bag_backward": (6, 8),
    "aten::_embedding_bag_dense_backward": (5, 7),
}
"""Where each operator has the number of rows, and the mode of a bag; the second argument are the rows looked up."""
_MAX = 2
"""The mode of bags that has no sparse gradient."""
_SUMS = ("aten::add", "aten::add_")


class _PaddedBatch(NamedTuple):
    """A batch of sequences that rows of a table were looked up for."""

    rows: int
    length: int
    """Of each row, with its padding."""
    padded: int
    """Positions that are padding."""
    longest: int
    """The largest number of other positions in a row."""


class Lookups(Observer[Any]):
    """Batches with padding that the first step looks up, and the gradients of whole tables."""

    def __init__(self, flow: Flow) -> None:
        super().__init__(flow)
        self.padded: list[tuple[int, _PaddedBatch]] = []
        """With their operations."""
        self.rows: dict[int, int] = {}
        """By operation that makes the gradient of a whole table: how many this has."""
        self.used_rows: dict[int, frozenset[int]] = {}
        """Those that were looked up."""

    def note(self, call: OperatorCall) -> None:
        """An embedding may be looked up."""
        if call.name == _LOOKUP and call.is_of_first_step and call.numbers:
            batch = _padded_batch(call)
            if batch is not None:
                self.padded.append((call.numbers[0], batch))

    def note_backward(self, call: OperatorCall) -> None:
        """It may give a table its gradient."""
        args = call.args
        rows, mode = _DENSE.get(call.name, (len(args), None))
        if len(args) <= max(rows, mode or 0) or not is_plain(args[1]) or (mode is not None and args[mode] == _MAX):
            return
        for number in call.numbers:
            self.used_rows[number] = frozenset(args[1].unique().tolist())
            self.rows[number] = int(args[rows])

    def made_of(self, gradients: Sequence[Gradient]) -> list[int]:
        """The operations whose results a parameter's gradients are the sum of; none if there are others among them."""
        operations = self._flow.operations
        own = {number for one in gradients for number in one.operations}
        left, seen = list(own), set(own)
        found = []
        while left:
            number = left.pop()
            if number in self.rows:
                found.append(number)
            elif number in own or operations[number].name in _SUMS:
                new = operations[number].inputs - seen
                seen |= new
                left += new
            else:
                return []
        return sorted(found)


def _padded_batch(call: OperatorCall) -> _PaddedBatch | None:
    """What an operator looks up for several rows of indices; None where there is no padding to be seen."""
    args = call.args
    if len(args) < 2 or not is_plain(args[1]) or args[1].dim() != 2 or min(args[1].shape) < 2:
        return None
    indices = args[1]
    padding = args[2] if len(args) > 2 else call.kwargs.get("padding_idx", _NO_PADDING)
    is_padding = indices == padding if padding >= 0 else _runs(indices)
    padded = int(is_padding.sum())
    if not padded:
        return None
    return _PaddedBatch(indices.shape[0], indices.shape[1], padded, int((~is_padding).sum(dim=1).max()))


def _runs(indices: torch.Tensor) -> torch.Tensor:
    """Where rows end, or begin, with an index over and over that they have nowhere else; shape of `indices`.

    Nowhere in a square: that is a table of distances between positions rather than a batch.
    """
    nothing = torch.zeros_like(indices, dtype=torch.bool)
    if indices.shape[0] == indices.shape[1] or indices.unique().numel() < _KINDS:
        return nothing
    for ends, is_behind in ((indices.flip(1), True), (indices, False)):
        run = (ends == ends[:, :1]).cumprod(dim=1).bool()
        run &= run.sum(dim=1, keepdim=True) >= _SHORTEST
        first = ends[run[:, 1], 0]
        if first.numel():
            index = first.mode().values
            run &= ends == index
            if not ((ends == index) & ~run).sum(dim=1).gt(1).any():
                return run.flip(1) if is_behind else run
    return nothing


def padded_work(work: StepWork, lookups: Lookups) -> list[PaddedWork]:
    """Of the first step, by line, the most padding first. Work after several lookups counts for the last of them."""
    operations = work.operations
    numbers = {number for number, _ in work.forward}
    claimed: set[int] = set()
    batches: dict[int, list[_PaddedBatch]] = defaultdict(list)
    members: dict[int, set[int]] = defaultdict(set)
    for number, batch in reversed(lookups.padded[-_MOST_LOOKUPS:]):
        if number not in numbers:
            continue
        following = {number}
        for later, one in work.forward:
            if later > number and not following.isdisjoint(one.inputs):
                following.add(later)
        place = work.place_of(number)
        batches[place].append(batch)
        members[place] |= {one for one in following - claimed if _has_all_positions(operations[one].shape, batch)}
        claimed |= following
    found = [
        PaddedWork(
            place=place,
            rows=sum(one.rows for one in mine),
            length=max(one.length for one in mine),
            positions=sum(one.rows * one.length for one in mine),
            padded=sum(one.padded for one in mine),
            longest=max(one.longest for one in mine),
            operators=work.uses(members[place]),
            backward=work.backward_uses(members[place]),
        )
        for place, mine in batches.items()
    ]
    return sorted(found, key=lambda one: -one.padded)


def _has_all_positions(shape: tuple[int, ...], batch: _PaddedBatch) -> bool:
    positions = batch.rows * batch.length
    return math.prod(shape) >= _LEAST_FEATURES * positions and (batch.length in shape or positions in shape)


class _Stepper(NamedTuple):
    """The optimizer of a parameter."""

    kind: str
    """Its class."""
    keeps_rows: bool
    """Whether its step leaves a row without a gradient as it is."""


def table_gradients(
    work: StepWork, lookups: Lookups, all_given: Iterable[Gradient], optimizers: Iterable[Any]
) -> list[TableGradient]:
    """Of the first step, the largest tables first."""
    operations, paths = work.operations, work.paths
    steppers, elements = _steppers(optimizers)
    given: dict[int, list[Gradient]] = defaultdict(list)
    for one in all_given:
        if operations[one.operations[0]].step == 0:
            given[id(one.parameter())].append(one)
    found = []
    for key, gradients in given.items():
        numbers = lookups.made_of(gradients)
        path = paths[operations[numbers[0]].forward_path] if numbers else ()
        stepper = steppers.get(key)
        if not path or stepper is None or not all(one.is_used for one in gradients):
            continue
        lines = {paths[operations[number].forward_path][-1:] for number in numbers}
        found.append(
            TableGradient(
                place=work.places.number_of(path[-1]),
                rows=lookups.rows[numbers[0]],
                used_rows=len(frozenset[int]().union(*(lookups.used_rows[number] for number in numbers))),
                elements=gradients[0].elements,
                optimizer=stepper.kind,
                stepped_elements=elements[stepper.kind],
                keeps_rows=stepper.keeps_rows,
                clipped=any(one.is_clipped for one in gradients),
                operators=work.uses_among(
                    [(n, one) for n, one in work.backward if paths[one.forward_path][-1:] in lines],
                    set(numbers),
                ),
            )
        )
    return sorted(found, key=lambda one: -one.elements)


_KEEPING_ROWS = (torch.optim.SGD, torch.optim.Adagrad)
"""Without momentum and weight decay."""


def _steppers(optimizers: Iterable[Any]) -> tuple[dict[int, _Stepper], Counter[str]]:
    """The optimizer of each parameter, by its `id`, and the elements that optimizers of each class step."""
    found: dict[int, _Stepper] = {}
    elements: Counter[str] = Counter()
    for optimizer in optimizers:
        kind = type(optimizer).__name__
        for group in getattr(optimizer, "param_groups", None) or ():
            is_plain = type(optimizer) in _KEEPING_ROWS and not (group.get("momentum") or group.get("weight_decay"))
            for one in group.get("params", ()):
                if isinstance(one, torch.Tensor) and one.requires_grad and id(one) not in found:
                    found[id(one)] = _Stepper(kind, is_plain)
                    elements[kind] += one.numel()
    return found, elements

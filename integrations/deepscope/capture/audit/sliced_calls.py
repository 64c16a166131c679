"""Calls one after the other that one call would do for: of slices of a tensor, and of modules alike."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from math import prod
from types import CodeType
from typing import Any, NamedTuple

import torch
from torch import nn

from deepscope.capture.audit.call_paths import CallSite, PathEntry
from deepscope.capture.audit.flow import Flow, Observer, Operation
from deepscope.capture.audit.operator_calls import COPIES, JOINS, OperatorCall, aten, key_of, tensors_of
from deepscope.capture.audit.step_work import StepWork
from deepscope.trace.format.audit import AlikeModules, SlicedCalls

_SLICING = aten("select slice unbind split split_with_sizes")
_COPYING = COPIES | {"aten::_unsafe_view"}
"""What they return is the slice still."""
_FEWEST = 4
"""Slices in a dimension, or modules that are called from one line."""
_MOST_OF = 0.8
"""So many of the slices go the same way, and of the modules do the same."""
_BATCH_NORM = "batch_norm"
"""These operators learn statistics from call to call, which their schemas do not tell; one call would learn others."""
_CELLS = frozenset({"LSTMCell", "GRUCell", "RNNCell"})
_View = tuple[int, int, tuple[int, ...], tuple[int, ...]]
"""A tensor's storage, its offset in it, its sizes and its strides."""


class _SlicedTensor(NamedTuple):
    """Tensors of one storage and shape that one line slices along one dimension."""

    path: int
    """Of the line that takes the slices."""
    storage: int
    shape: tuple[int, ...]
    dimension: int
    length: int
    """Of a slice, in this dimension."""
    stride: int
    """Of the tensor, in this dimension."""

    def is_taken_one_by_one(self, offsets: Iterable[int]) -> bool:
        """Whether slices at these offsets have one element each, or overlap: others may save memory."""
        starts = sorted(offsets)
        step = min((after - before for before, after in pairwise(starts)), default=0)
        return self.length == 1 or step < self.length * self.stride


class _FirstUse(NamedTuple):
    """The first operator that was called with a slice."""

    operation: int
    site: CallSite
    optimizer_steps: int
    """Before it."""


class SliceUses(Observer[Any]):
    """Which slices of a tensor were taken one by one, and which operators were called with each of them first.

    Of some steps; a slice is told from others by where it lies.
    """

    def __init__(self, flow: Flow) -> None:
        super().__init__(flow)
        self.uses: dict[_SlicedTensor, dict[int, _FirstUse]] = {}
        """By the offset of each slice."""
        self.optimizer_steps = 0
        self._of_view: dict[_View, tuple[_SlicedTensor, int]] = {}
        """Each with the offset of its slice."""

    def note(self, call: OperatorCall) -> None:
        """It may take slices, or be called with some; what data loaders do does not count."""
        if call.site.is_loading:
            return
        if not call.numbers:
            self._take(call)
        elif self._of_view and call.name not in JOINS:  # which take many slices at once
            for number in call.numbers:
                self._use(number, call)

    def _take(self, call: OperatorCall) -> None:
        """A view was made."""
        base = next(tensors_of(call.args), None)
        if base is None:
            return
        if call.name in _SLICING:
            if not call.site.is_within_module:  # else a library's own loop
                self._slice(base, call)
        elif isinstance(call.result, torch.Tensor) and call.result.numel() == base.numel():
            found, view = self._find(base), _view_of(call.result)
            if found is not None and view is not None:
                self._of_view[view] = found

    def _use(self, number: int, call: OperatorCall) -> None:
        for tensor in tensors_of(call.args):
            found = self._find(tensor)
            if found is None:
                continue
            is_copy = call.name in _COPYING and isinstance(call.result, torch.Tensor)
            view = _view_of(call.result) if is_copy else None
            if view is not None:
                self._of_view[view] = found
                return
            sliced, offset = found
            use = _FirstUse(number, call.site, self.optimizer_steps)
            self.uses.setdefault(sliced, {}).setdefault(offset, use)

    def _slice(self, base: torch.Tensor, call: OperatorCall) -> None:
        place = 2 if call.name.startswith("aten::split") else 1
        dimension = int(call.kwargs.get("dim", call.args[place] if len(call.args) > place else 0))
        storage = key_of(base)
        if not storage or not base.dim():
            return
        dimension %= base.dim()
        if base.size(dimension) < _FEWEST:
            return
        each, stride = base.numel() // base.size(dimension), base.stride(dimension)
        for one in tensors_of((call.result,)):
            length, view = one.numel() // max(each, 1), _view_of(one)
            if view is not None and 0 < length < base.size(dimension):
                sliced = _SlicedTensor(call.site.path, storage, tuple(base.shape), dimension, length, stride)
                self._of_view[view] = sliced, one.storage_offset()

    def _find(self, tensor: torch.Tensor) -> tuple[_SlicedTensor, int] | None:
        view = _view_of(tensor)
        return None if view is None else self._of_view.get(view)


def _view_of(tensor: torch.Tensor) -> _View | None:
    storage = key_of(tensor)
    return None if not storage else (storage, tensor.storage_offset(), tuple(tensor.shape), tensor.stride())


class _Loop(NamedTuple):
    """A line that was called for each slice."""

    entry: PathEntry
    slicing: PathEntry
    """The line that takes the slices."""
    tensor: _SlicedTensor
    uses: Sequence[_FirstUse]
    """In the order of the calls."""
    module: str


def sliced_calls(work: StepWork, slices: SliceUses) -> list[SlicedCalls]:
    """Of the first step: a row for what a function calls as often with slices as it takes them."""
    found: dict[tuple[CodeType, int], dict[PathEntry, list[_Loop]]] = defaultdict(lambda: defaultdict(list))
    for tensor, uses in slices.uses.items():
        one = _loop_of(work, tensor, list(uses.values())) if tensor.is_taken_one_by_one(uses) else None
        if one is not None:
            found[one.slicing[0], len(one.uses)][one.entry].append(one)
    return [_joined(work, by_entry) for by_entry in found.values()]


def _loop_of(work: StepWork, tensor: _SlicedTensor, uses: Sequence[_FirstUse]) -> _Loop | None:
    """The line that is called with the slices of one tensor; None where they do not all go the same way."""
    operations, paths = work.operations, work.paths
    uses = [one for one in uses if operations[one.operation].step == 0]
    if not paths[tensor.path] or len({one.operation for one in uses}) < _FEWEST:
        return None
    slicing = paths[tensor.path][-1]
    names = Counter(operations[one.operation].name for one in uses)
    entries = Counter(_entry_in(paths[one.site.path], slicing) for one in uses)
    (entry, times), *_ = entries.most_common(1)
    is_one_way = min(times, names.most_common(1)[0][1]) >= _MOST_OF * len(uses)
    if entry is None or not is_one_way or len({one.optimizer_steps for one in uses}) > 1:
        return None
    if _is_called_once_each(work, {one.operation for one in uses}):  # no call of one module could do for all
        return None
    modules = Counter(_module_below(one, paths[one.site.path], entry) for one in uses)
    chosen = sorted(uses, key=lambda one: one.operation)
    return _Loop(entry, slicing, tensor, chosen, modules.most_common(1)[0][0])


def _is_chain(work: StepWork, loop: _Loop) -> bool:
    """Whether the most of what the last call computes depends on the calls before it."""
    operations = work.operations
    *before, last = (one.operation for one in loop.uses)
    depends = set(before)
    for number in range(before[0], len(operations)):
        if not depends.isdisjoint(operations[number].inputs):
            depends.add(number)
    through = _paths_through(work, loop.entry)
    of_last = [
        number
        for number in range(last, len(operations))
        if (one := operations[number]).step == 0 and one.pass_number < 0 and one.site.path in through
    ]
    return sum(number in depends for number in of_last) > len(of_last) / 2


def _entry_in(path: Sequence[PathEntry], slicing: PathEntry) -> PathEntry | None:
    """The line at which the function that takes the slices calls what is called with them; else the innermost line."""
    same = [entry for entry in path if entry[0] is slicing[0]]
    return same[-1] if same else path[-1] if path else None


def _module_below(use: _FirstUse, path: Sequence[PathEntry], entry: PathEntry) -> str:
    """The class of the cell, else of the outermost module, that a line calls; "" for none."""
    depth = path.index(entry) + 1 if entry in path else len(path)
    below = [name for name, outside in zip(use.site.modules, use.site.depths, strict=True) if outside >= depth]
    return next((name for name in below if name in _CELLS), below[0] if below else "")


def _joined(work: StepWork, by_entry: Mapping[PathEntry, Sequence[_Loop]]) -> SlicedCalls:
    """All that one loop calls with slices, at the line that calls most operators."""
    further = {entry for loops in by_entry.values() for one in loops for entry in _going_on(work, one)}
    below = {entry: _operations_below(work, entry) for entry in dict.fromkeys([*by_entry, *further])}
    first = max(below, key=lambda entry: (len(below[entry]), entry in by_entry))
    loops = by_entry.get(first) or [one for loops in by_entry.values() for one in loops]
    largest = max(loops, key=lambda one: (len(one.uses), bool(one.module), prod(one.tensor.shape)))
    all_below = {id(one): one for operations in below.values() for one in operations}.values()
    return SlicedCalls(
        place=work.places.number_of(first),
        others=[work.places.number_of(entry) for entry in below if entry != first],
        slicing=work.places.number_of(largest.slicing),
        times=sum(len(one.uses) for one in _by_tensor(loops)),
        dimension=largest.tensor.dimension,
        shape=list(largest.tensor.shape),
        length=largest.tensor.length,
        module=largest.module,
        is_chain=_is_chain(work, largest) or any(_BATCH_NORM in one.name for one in all_below),
        operators=len(all_below),
        flops=sum(one.flops for one in all_below),
        result_bytes=sum(one.result_bytes for one in all_below if one.pass_number < 0),
    )


def _going_on(work: StepWork, loop: _Loop) -> list[PathEntry]:
    """The further lines of the function that takes the slices on which most of what was made of each one goes on."""
    operations, paths = work.operations, work.paths
    made_of: dict[int, int | None] = {one.operation: place for place, one in enumerate(loop.uses)}
    slices: dict[PathEntry, set[int]] = defaultdict(set)
    for number in range(loop.uses[0].operation, len(operations)):
        one = operations[number]
        if one.step or one.pass_number >= 0:
            continue
        sources = {made_of[source] for source in one.inputs if source in made_of}
        if number not in made_of and sources:
            made_of[number] = sources.pop() if len(sources) == 1 else None
        place, entry = made_of.get(number), _entry_in(paths[one.site.path], loop.slicing)
        if place is not None and entry is not None and entry[0] is loop.slicing[0] and entry != loop.entry:
            slices[entry].add(place)
    return [entry for entry, some in slices.items() if len(some) >= _MOST_OF * len(loop.uses)]


def _by_tensor(loops: Sequence[_Loop]) -> Iterable[_Loop]:
    """One loop for each first operator: a call may be given slices of several tensors."""
    return {loop.uses[0].operation: loop for loop in loops}.values()


def _operations_below(work: StepWork, entry: PathEntry) -> list[Operation]:
    """Of the first step, forward and backward."""
    through = _paths_through(work, entry)
    return [one for one in work.operations if one.step == 0 and one.forward_path in through]


def _paths_through(work: StepWork, entry: PathEntry) -> set[int]:
    return {number for number, path in enumerate(work.paths) if entry in path}


class _Group(NamedTuple):
    """Calls of modules of one class from one line, within one call of the module around them."""

    beginning: tuple[PathEntry, ...]
    """The lines that lead to them."""
    module: str
    parent: int
    """The `id` of the module around; 0 for none."""


def alike_modules(work: StepWork, modules: Iterable[nn.Module]) -> list[AlikeModules]:
    """Of the first step: a row for each line and class of modules."""
    found: dict[tuple[PathEntry, str], list[dict[int, list[int]]]] = defaultdict(list)
    for group, by_module in _groups(work).items():
        if _are_alike(work, by_module) and not _depend(work, by_module):
            found[group.beginning[-1], group.module].append(by_module)
    parameters = {id(one): sum(1 for _ in one.parameters()) for one in modules}
    rows = []
    for (entry, module), groups in found.items():
        own = sum(parameters.get(one, 0) for by_module in groups for one in by_module)
        rows.append(_alike_row(work, entry, module, groups, parameters=own))
    return rows


def _is_called_once_each(work: StepWork, operations: Collection[int]) -> bool:
    """Whether some operations, each of another call, all lie in modules of their own that are one class."""
    sites = [work.operations[number].site for number in operations]
    levels = zip(*(zip(site.modules, site.instances, strict=True) for site in sites), strict=False)
    return any(len({name for name, _ in level}) == 1 and len(set(level)) == len(sites) for level in levels)


def _groups(work: StepWork) -> dict[_Group, dict[int, list[int]]]:
    """By group and module: the forward operations of the first step, in the order of the calls."""
    paths = work.paths
    found: dict[_Group, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for number, one in enumerate(work.operations):
        site, outside = one.site, -1
        if one.step or one.pass_number >= 0 or site.is_loading:
            continue
        for level, (name, instance, depth) in enumerate(zip(site.modules, site.instances, site.depths, strict=True)):
            # What a library's module calls nobody can change.
            if depth > max(outside, 0):
                parent = site.instances[level - 1] if level else 0
                found[_Group(paths[site.path][:depth], name, parent)][instance].append(number)
            outside = depth
    return found


def _are_alike(work: StepWork, by_module: dict[int, list[int]]) -> bool:
    """Whether most modules do the same: operators of the same names, shapes and operations."""
    if len(by_module) < _FEWEST:
        return False
    operations = work.operations
    done = Counter(
        tuple((one.name, one.shape, one.flops) for one in map(operations.__getitem__, numbers))
        for numbers in by_module.values()
    )
    (usual, times), *_ = done.most_common(1)
    return times >= _MOST_OF * len(by_module) and not any(_BATCH_NORM in name for name, _, _ in usual)


def _depend(work: StepWork, by_module: dict[int, list[int]]) -> bool:
    """Whether a module reads what another one of them has computed, or what was made of it."""
    own = {number: module for module, numbers in by_module.items() for number in numbers}
    reads: dict[int, set[int]] = {}
    for number in range(min(own), max(own) + 1):
        one = work.operations[number]
        if one.step or one.pass_number >= 0:
            continue
        sources = {module for source in one.inputs for module in reads.get(source, ())}
        module = own.get(number)
        if module is not None:
            if sources - {module}:
                return True
            sources.add(module)
        if sources:
            reads[number] = sources
    return False


def _alike_row(
    work: StepWork, entry: PathEntry, module: str, groups: list[dict[int, list[int]]], *, parameters: int
) -> AlikeModules:
    operations = work.operations
    through = {number for number, path in enumerate(work.paths) if entry in path}
    first = min(number for by_module in groups for numbers in by_module.values() for number in numbers)
    return AlikeModules(
        place=work.places.number_of(entry),
        module=module,
        modules=max(len(by_module) for by_module in groups),
        operator=operations[first].name,
        parameters=parameters,
        operators=sum(one.step == 0 and one.forward_path in through for one in operations),
    )

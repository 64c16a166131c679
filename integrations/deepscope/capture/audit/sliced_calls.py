"""From what was watched: the lines that were called for one slice of a tensor after the other."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import prod
from types import CodeType
from typing import NamedTuple

from deepscope.capture.audit.alike_modules import is_called_once_each
from deepscope.capture.audit.flow import Operation
from deepscope.capture.audit.operator_uses import StepWork
from deepscope.capture.audit.places import PathEntry
from deepscope.capture.audit.slices import FEWEST, FirstUse, SlicedTensor
from deepscope.trace.format.audit import SlicedCalls

_MOST_OF = 0.8
"""So many of the slices go the same way."""
_BATCH_NORM = "batch_norm"
"""These operators learn statistics from call to call, of which their schemas do not tell."""
_CELLS = frozenset({"LSTMCell", "GRUCell", "RNNCell"})


class _Loop(NamedTuple):
    """A line that was called for each slice."""

    entry: PathEntry
    slicing: PathEntry
    """The line that takes the slices."""
    tensor: SlicedTensor
    uses: Sequence[FirstUse]
    """In the order of the calls."""
    module: str


def sliced_calls(work: StepWork) -> list[SlicedCalls]:
    """Of the first step: a row for what a function calls as often with slices as it takes them."""
    found: dict[tuple[CodeType, int], dict[PathEntry, list[_Loop]]] = defaultdict(lambda: defaultdict(list))
    for tensor, uses in work.watch.slices.uses.items():
        one = _loop_of(work, tensor, list(uses.values())) if tensor.is_taken_one_by_one(uses) else None
        if one is not None:
            found[one.slicing[0], len(one.uses)][one.entry].append(one)
    return [_joined(work, by_entry) for by_entry in found.values()]


def _loop_of(work: StepWork, tensor: SlicedTensor, uses: Sequence[FirstUse]) -> _Loop | None:
    """The line that is called with the slices of one tensor; None where they do not all go the same way."""
    operations, paths = work.operations, work.paths
    uses = [one for one in uses if operations[one.operation].step == 0]
    if not paths[tensor.path] or len({one.operation for one in uses}) < FEWEST:
        return None
    slicing = paths[tensor.path][-1]
    names = Counter(operations[one.operation].name for one in uses)
    entries = Counter(_entry_in(paths[one.call.path], slicing) for one in uses)
    (entry, times), *_ = entries.most_common(1)
    is_one_way = min(times, names.most_common(1)[0][1]) >= _MOST_OF * len(uses)
    if entry is None or not is_one_way or len({one.optimizer_steps for one in uses}) > 1:
        return None
    if is_called_once_each(work, {one.operation for one in uses}):  # no call of one module could do for all
        return None
    modules = Counter(_module_below(one, paths[one.call.path], entry) for one in uses)
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
        if (one := operations[number]).step == 0 and one.pass_number < 0 and one.call.path in through
    ]
    return sum(number in depends for number in of_last) > len(of_last) / 2


def _entry_in(path: Sequence[PathEntry], slicing: PathEntry) -> PathEntry | None:
    """The line at which the function that takes the slices calls what is called with them; else the innermost line."""
    same = [entry for entry in path if entry[0] is slicing[0]]
    return same[-1] if same else path[-1] if path else None


def _module_below(use: FirstUse, path: Sequence[PathEntry], entry: PathEntry) -> str:
    """The class of the cell, else of the outermost module, that a line calls; "" for none."""
    depth = path.index(entry) + 1 if entry in path else len(path)
    below = [name for name, outside in zip(use.call.modules, use.call.depths, strict=True) if outside >= depth]
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
        place, entry = made_of.get(number), _entry_in(paths[one.call.path], loop.slicing)
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

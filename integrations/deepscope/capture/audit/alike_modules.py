"""From what was watched: modules alike, each with parameters of its own, that are called one after the other."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from typing import NamedTuple

from torch import nn

from deepscope.capture.audit.operator_uses import StepWork
from deepscope.capture.audit.places import PathEntry
from deepscope.trace.format.audit import AlikeModules

FEWEST = 4
"""Modules that are called from one line."""
_MOST_OF = 0.8
"""So many of them do the same with other parameters."""
_BATCH_NORM = "batch_norm"
"""One call for all would learn other statistics."""


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
        rows.append(_row(work, entry, module, groups, parameters=own))
    return rows


def is_called_once_each(work: StepWork, operations: Collection[int]) -> bool:
    """Whether some operations, each of another call, all lie in modules of their own that are one class."""
    calls = [work.operations[number].call for number in operations]
    levels = zip(*(zip(call.modules, call.instances, strict=True) for call in calls), strict=False)
    return any(len({name for name, _ in level}) == 1 and len(set(level)) == len(calls) for level in levels)


def _groups(work: StepWork) -> dict[_Group, dict[int, list[int]]]:
    """By group and module: the forward operations of the first step, in the order of the calls."""
    paths = work.paths
    found: dict[_Group, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for number, one in enumerate(work.operations):
        call, outside = one.call, -1
        if one.step or one.pass_number >= 0 or call.is_loading:
            continue
        for level, (name, instance, depth) in enumerate(zip(call.modules, call.instances, call.depths, strict=True)):
            # What a library's module calls nobody can change.
            if depth > max(outside, 0):
                parent = call.instances[level - 1] if level else 0
                found[_Group(paths[call.path][:depth], name, parent)][instance].append(number)
            outside = depth
    return found


def _are_alike(work: StepWork, by_module: dict[int, list[int]]) -> bool:
    """Whether most modules do the same: operators of the same names, shapes and operations."""
    if len(by_module) < FEWEST:
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


def _row(
    work: StepWork,
    entry: PathEntry,
    module: str,
    groups: list[dict[int, list[int]]],
    *,
    parameters: int,
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

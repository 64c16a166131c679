"""Modules that are alike as one: `encoder.layers.*`, twelve times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from deepscope.records import Module, Numbers
from deepscope.records.why import without_numbers
from deepscope.report.module_columns import branch_name, tree_order

_SUMMED = (
    *Numbers.__struct_fields__,
    "total_backward_device_ns",
    "total_flops",
    "own_parameters",
    "parameters",
)


class Branch(NamedTuple):
    """A module in its tree, or several that are alike."""

    module: Module
    """Of several: their sums, the numbers in their path as `*`."""
    name: str
    """What its parent's path does not say."""
    modules: int
    parent: int
    """The branch that it is below, -1 for none; it stands before."""


def plain_modules(rows: Sequence[Module]) -> list[Branch]:
    """The tree of modules, one a branch."""
    found: list[Branch] = []
    places: dict[str, int] = {}
    for row in tree_order(rows):
        parent = places.get(row.parent, -1) if row.parent else -1
        found.append(Branch(row, branch_name(row), 1, parent))
        places.setdefault(row.path, len(found) - 1)
    return found


def folded_modules(rows: Sequence[Module]) -> list[Branch]:
    """The tree of modules, those in one that are alike.

    Alike are modules below one parent whose paths differ in numbers alone, of one class, with as many parameters, in
    which the same modules are that are alike in turn.
    """
    plain = plain_modules(rows)
    shapes = _shapes(plain)
    below: dict[int, list[int]] = {}
    for at, branch in enumerate(plain):
        below.setdefault(branch.parent, []).append(at)
    found: list[Branch] = []
    waiting = [(group, -1) for group in reversed(_groups(below.get(-1, []), plain, shapes))]
    while waiting:
        group, parent = waiting.pop()
        found.append(_summed([plain[at] for at in group], parent))
        inner = [one for at in group for one in below.get(at, [])]
        waiting += [(each, len(found) - 1) for each in reversed(_groups(inner, plain, shapes))]
    return found


def _shapes(plain: Sequence[Branch]) -> list[int]:
    """Of each branch a number; alike are those that have the same."""
    known: dict[object, int] = {}
    inner: list[list[tuple[str, int]]] = [[] for _ in plain]
    found = [0] * len(plain)
    for at in range(len(plain) - 1, -1, -1):  # what is below a branch stands after it
        module, parent = plain[at].module, plain[at].parent
        key = module.class_name, module.own_parameters, tuple(sorted(inner[at]))
        found[at] = known.setdefault(key, len(known))
        if parent >= 0:
            inner[parent].append((_pattern(plain[at]), found[at]))
    return found


def _pattern(branch: Branch) -> str:
    """Its name without numbers: `layers.*`; without paths (`Linear_3`) its class."""
    before, _, number = branch.name.rpartition("_")
    if number.isdecimal() and before == branch.module.class_name:
        return f"{before}_*"
    return without_numbers(branch.name)


def _groups(places: Sequence[int], plain: Sequence[Branch], shapes: Sequence[int]) -> list[list[int]]:
    """Branches that are one, the largest first."""
    groups: dict[object, list[int]] = {}
    for at in places:
        groups.setdefault((_pattern(plain[at]), shapes[at]), []).append(at)

    def size(group: Sequence[int]) -> tuple[int, int, int]:
        modules = [plain[at].module for at in group]
        return (
            -sum(one.total_device_ns for one in modules),
            -sum(one.total_cpu_ns for one in modules),
            min(group),
        )

    return sorted(groups.values(), key=size)


def _summed(group: Sequence[Branch], parent: int) -> Branch:
    first = group[0]
    if len(group) == 1:
        return first._replace(parent=parent)
    sums = {field: sum(getattr(one.module, field) for one in group) for field in _SUMMED}
    paths = {one.module.path for one in group}
    names = {one.name for one in group}
    path = first.module.path if len(paths) == 1 else _pattern(first._replace(name=first.module.path))
    name = first.name if len(names) == 1 else _pattern(first)
    return Branch(replace(first.module, path=path, **sums), name, len(group), parent)

"""The tree of modules: its order and its columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from deepscope.records import Module, Numbers, Profile
from deepscope.records.lines import without_numbers
from deepscope.report.table_column import ColumnOf, field, share_column


def tree_order(rows: Sequence[Module]) -> list[Module]:
    """The modules, each before those below it; of those below one module the largest total first.

    Paths may come twice: a module that `torch.compile` wraps bears that of its wrapper, which calls it.
    """
    by_path = {row.path for row in rows}
    below: dict[str, list[Module]] = {}
    for row in sorted(rows, key=lambda row: (-row.total_device_ns, -row.total_cpu_ns, row.path)):
        below.setdefault(row.parent if row.parent in by_path else "", []).append(row)
    found: list[Module] = []
    for top in ["", *below]:  # what is below itself alone stands behind the tree
        waiting = below.pop(top, [])[::-1]
        while waiting:
            row = waiting.pop()
            found.append(row)
            waiting += below.pop(row.path, [])[::-1]
    return found


def largest_modules(rows: Sequence[Module], limit: int) -> list[Module]:
    """The modules with the largest totals, in the order in which they stand."""
    chosen = sorted(range(len(rows)), key=lambda i: (-rows[i].total_device_ns, -rows[i].total_cpu_ns, i))[:limit]
    return [rows[i] for i in sorted(chosen)]


def depths(rows: Sequence[Module]) -> list[int]:
    """How many of the rows stand above each one."""
    parents = {row.path: row.parent for row in reversed(rows)}  # of those with one path the first
    found: dict[str, int] = {}
    for row in rows:
        way = []
        path = row.path
        while path in parents and path not in found and path not in way:
            way.append(path)
            path = parents[path]
        depth = found.get(path, -1)
        for one in reversed(way):
            depth += 1
            found[one] = depth
    return [found[row.path] for row in rows]


def children_of(rows: Sequence[Module]) -> dict[str, list[str]]:
    """By path, the paths of the modules below it, in the order of the rows."""
    found: dict[str, list[str]] = {row.path: [] for row in rows}
    for row in rows:
        if row.parent in found and row.parent != row.path:
            found[row.parent].append(row.path)
    return found


def branch_name(row: Module) -> str:
    """The part of its path that its parent's does not say."""
    return row.path.removeprefix(f"{row.parent}.") if row.parent else row.path


_INDENT = "  "
_MODULE_WIDTH = 28


def module_names(rows: Sequence[Module]) -> ColumnOf:
    """The first column in a terminal: names below those of the modules that they are in; paths in another order."""
    if [row.path for row in rows] == [row.path for row in tree_order(rows)]:
        shown = [f"{_INDENT * depth}{branch_name(row)}" for row, depth in zip(rows, depths(rows), strict=True)]
    else:
        shown = [row.path for row in rows]
    names = dict(zip(map(id, rows), shown, strict=True))
    return ColumnOf("name", "module", "text", lambda row: names[id(row)], least=_MODULE_WIDTH)


def module_columns(profile: Profile) -> list[ColumnOf]:
    """The columns behind a module's name: totals with their forward and backward parts, then what is its own."""
    per_step = profile.totals.steps * profile.totals.ranks
    backward = any(row.total_backward_device_ns for row in profile.modules)

    def forward(row: Module) -> int | None:
        return row.total_device_ns - row.total_backward_device_ns if backward else None

    def class_name(row: Module) -> str:
        return "" if row.path.startswith(row.class_name) else row.class_name

    return [
        share_column(
            "total_device_ns", profile.totals.device_ns, "Its part, with the modules in it, of all device work."
        ),
        field("total_device_ns", "total", "time", "Work of it and of the modules in it."),
        ColumnOf(
            "per_step",
            "/step",
            "time",
            lambda row: row.total_in_steps_ns / per_step if per_step > 1 else None,
            "The total in a step of a rank, without work outside the steps.",
            7,
        ),
        ColumnOf("forward_ns", "forward", "time", forward, "The part of the total in the forward pass.", 1),
        field("total_backward_device_ns", "backward", "time", "The part of the total in the backward pass.", 1),
        field("self_device_ns", "self", "time", "Work in no module further in.", 2),
        field("total_cpu_ns", "CPU", "time", "CPU time of it and of the modules in it.", 3),
        field("calls", "calls", "count", "How often it ran forward.", 4),
        field("launches", "launches", "count", "Kernels launched in no module further in.", 8),
        field("total_flops", "FLOPs", "flops", "Of it and of the modules in it, where known.", 5),
        field("parameters", "parameters", "count", "Elements of its parameters and of those of the modules in it.", 6),
        ColumnOf("class_name", "class", "text", class_name, least=10),
    ]


_SUMMED = (*Numbers.__struct_fields__, "total_backward_device_ns", "total_flops", "own_parameters", "parameters")


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
        return -sum(one.total_device_ns for one in modules), -sum(one.total_cpu_ns for one in modules), min(group)

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

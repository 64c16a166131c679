"""Where a user's line spends its time inside installed packages, and which `include=` would open them up."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePath

import numpy as np

from deepscope.analysis.analysis import Analysis
from deepscope.analysis.array_ops.selection import Mask, by_line, distinct, largest, largest_named, mask_of, of_kind
from deepscope.analysis.ownership.attribution import OwnedWork
from deepscope.analysis.ownership.calls import CallForest
from deepscope.analysis.ownership.locations import Owner, Scopes, frame_of, owner_of_file, python_module_of_file
from deepscope.records import Library
from deepscope.trace.arrays import nearest_to, pick
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int32, Int64, Trace
from deepscope.trace.names import stepped_optimizer

Opened = tuple[int, str]
"""A line and an `include=` pattern."""

_KEEP = 5
_LIBRARY = Owner.LIBRARY
_TORCH_FILE = re.compile(r"(?:^|/)torch/(?:nn|optim|distributed|utils/checkpoint|amp)")
# They only pass calls on: nothing is to be seen in them.
_TRANSPARENT = re.compile(r"torch\.(?:nn\.modules\.container|_dynamo)\b")
# Every module call passes through these; they never are the answer.
_WRAPPERS = frozenset({"wrapper", "inner", "_fn", "__call__", "decorate_context", "_wrapped", "wrapped", "<lambda>"})
_PLUMBING = re.compile(r"torch/nn/modules/module\.py$|torch/optim/optimizer\.py$|torch/utils/_contextlib\.py$")


def _include(module: str) -> str:
    """The `include=` pattern that opens a function up: the folder that holds its module.

    It names the module alone where the folder is a whole package, or torch's, which holds much that is never used.
    """
    folder = module.rpartition(".")[0]
    return f"{folder}.*" if "." in folder and not module.startswith("torch.") else module


@dataclass(frozen=True, slots=True)
class _Places:
    """The library function that each event stands for: an index into `names`, -1 for none. torch's have a column of
    their own."""

    names: list[tuple[str, str]]
    function: Int64
    torch: Int64
    composed: Mask
    """Which of them are modules that call other modules: their lines say more than those of a `Linear`."""


def hot_libraries(analysis: Analysis) -> dict[int, list[Library]]:
    """Where each line spends its time that spends most of its own device time in installed packages, largest first.

    The innermost function of a package other than torch is named, else torch's own. Of modules within each other the
    innermost one that calls modules is named.
    """
    of, counted = analysis.attribution, analysis.counted
    trace, calls, scopes, work = of.trace, of.calls, of.scopes, of.work
    places = _find_places(trace, calls, scopes)
    if not places.names:
        return {}
    strings = trace.strings
    function = _function_of_work(work, calls, scopes.marks, places)
    known = (function >= 0) & counted & (work.location == work.called_at)
    lines = len(scopes.locations)
    whole = by_line(work.location[counted], lines, work.duration_ns[counted])
    inside = by_line(work.location[known], lines, work.duration_ns[known])
    hot = np.append(inside[:lines] * 2 > whole[:lines], False)
    chosen = known & hot[work.location]
    location, function, duration = work.location[chosen], function[chosen], work.duration_ns[chosen]
    operator_name = pick(trace.events.name.astype(np.int64), analysis.operator[chosen])
    width = len(places.names)
    opened = _opened_ns(places.names, location, function, duration)
    main = {
        share.group: share.member
        for share in largest_named(location * width + function, operator_name, duration, 1, strings)
    }
    result: dict[int, list[Library]] = {}
    for share in largest(location, function, duration, _KEEP):
        module, name = places.names[share.member]
        include = _include(module)
        operator_ = main.get(share.group * width + share.member, -1)
        found = Library(
            module=module,
            function=name,
            operator=strings[operator_] if operator_ >= 0 else "",
            device_ns=share.total,
            include=include,
            include_ns=opened[share.group, include],
        )
        result.setdefault(share.group, []).append(found)
    return result


def _opened_ns(names: list[tuple[str, str]], location: Int64, function: Int64, duration: Int64) -> dict[Opened, int]:
    """Time by line and `include=` pattern; the arrays are by piece of work."""
    result: dict[Opened, int] = {}
    for share in largest(location, function, duration, len(names)):
        key = share.group, _include(names[share.member][0])
        result[key] = result.get(key, 0) + share.total
    return result


def _function_of_work(work: OwnedWork, calls: CallForest, marks: Mask, places: _Places) -> Int64:
    """The library function between each piece of work and the line that owns it, -1 for none; shape (w,)."""
    result = np.full(len(work), -1, np.int64)
    tables = (places.torch, places.function)
    for table in (np.where(chosen, table, -1) for table in tables for chosen in (True, places.composed)):
        if not (table >= 0).any():
            continue
        at = nearest_to(work.node, calls.up, marks | (table >= 0))
        found = pick(np.where(marks, -1, table), at)
        result = np.where(found >= 0, found, result)
    return result


def _find_places(trace: Trace, calls: CallForest, scopes: Scopes) -> _Places:
    index: dict[tuple[str, str], int] = {}
    n = len(trace.events)
    function, torch = np.full(n, -1, np.int64), np.full(n, -1, np.int64)

    def mark(rows: Mask, column: Int32, known: dict[int, tuple[str, str, bool]], size: int) -> None:
        """Gives the rows their functions by the value in a column; the flag says whether a function is torch's."""
        tables = np.full((2, size + 1), -1, np.int64)
        for value, (module, name, is_torch) in known.items():
            tables[int(is_torch), value] = index.setdefault((module, name), len(index))
        for table, target in zip(tables, (function, torch), strict=True):
            target[rows] = np.maximum(target[rows], table[column[rows]])

    modules = of_kind(trace, Kind.MODULE_SCOPE)
    called = distinct(trace.events.scope[modules], len(trace.scopes))
    mark(modules, trace.events.scope, {s: k for s in called if (k := _of_scope(trace, scopes, s))}, len(trace.scopes))
    for kind, judge in ((Kind.PYTHON_FUNCTION, _of_frame), (Kind.ANNOTATION, _of_annotation)):
        rows = of_kind(trace, kind)
        names = distinct(trace.events.name[rows], len(trace.strings))
        mark(rows, trace.events.name, {s: k for s in names if (k := judge(trace.strings[s]))}, len(trace.strings))
    return _Places(list(index), function, torch, _composed(calls.parent, scopes.marks, modules))


def _composed(parent: Int64, marks: Mask, modules: Mask) -> Mask:
    """Which modules call a module, with no line of the user's between; shape (n,)."""
    called = np.flatnonzero(modules)
    caller = nearest_to(pick(parent, called), parent, modules | marks)
    result = mask_of(caller[caller >= 0], len(modules))
    return result & modules


def _of_scope(trace: Trace, scopes: Scopes, index: int) -> tuple[str, str, bool] | None:
    scope = trace.scopes[index]
    owner = owner_of_file(scope.file or scope.python_module.replace(".", "/") + ".py")
    if owner == Owner.USER and scope.file and not _is_recorded(trace, scopes, scope.file):
        owner = Owner.LIBRARY
    if owner == Owner.USER or not scope.python_module or _TRANSPARENT.match(scope.python_module):
        return None
    return scope.python_module, f"{scope.name}.forward", scope.python_module.split(".")[0] == "torch"


def _is_recorded(trace: Trace, scopes: Scopes, file: str) -> bool:
    """Whether lines of a file were recorded, or would have been: packages need not be installed where others are."""
    root = trace.header.project_root
    if scopes.source != "scopes" or not root:
        return True
    inside = PurePath(file).is_relative_to(root)
    return inside or any(one.file == file for one in scopes.locations)


def _of_frame(name: str) -> tuple[str, str, bool] | None:
    frame = frame_of(name)
    if frame is None or frame.function in _WRAPPERS:
        return None
    is_torch = _TORCH_FILE.search(frame.path) is not None and not _PLUMBING.search(frame.path)
    if not is_torch and owner_of_file(frame.path) is not _LIBRARY:
        return None
    return python_module_of_file(frame.path), frame.function, is_torch


def _of_annotation(name: str) -> tuple[str, str, bool] | None:
    optimizer = stepped_optimizer(name)
    return (f"torch.optim.{optimizer.lower()}", f"{optimizer}.step", True) if optimizer else None

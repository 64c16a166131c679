"""Lines, functions, modules and the call tree as records of the Profile."""

from __future__ import annotations

from typing import Any

import numpy as np

from deepscope.analysis.libraries import hot_libraries
from deepscope.analysis.lines import Columns, path_columns
from deepscope.analysis.modules import module_columns
from deepscope.analysis.ranking import largest_named
from deepscope.analysis.result import Analysis
from deepscope.analysis.scopes import Location
from deepscope.records import CallNode, Function, Library, Line, Module, Numbers, Top
from deepscope.trace.model import Int64

__all__ = ["call_tree", "function_records", "line_records", "module_records", "no_line_record"]

_KEEP = 5


def line_records(analysis: Analysis, texts: dict[str, list[str]]) -> tuple[list[Line], Int64]:
    """Every line with any number, largest first.

    Args:
        analysis: of the trace.
        texts: lines of the user files that the trace carries, by path.

    Returns:
        The records, and for each location the position of its record, -1 for none; shape (lines,).
    """
    columns = analysis.columns
    locations = analysis.attribution.scopes.locations
    count = len(locations)
    order = _largest_first(columns, count)
    operators, kernels = _top_operators(analysis), _top_kernels(analysis)
    libraries = _libraries(analysis)
    compiled = set(analysis.compiled.tolist())
    rows = _rows(columns, order)
    records = [
        Line(
            **row,
            file=locations[i].file,
            line=locations[i].line,
            function=locations[i].function,
            exact=locations[i].exact,
            of_loop=locations[i].of_loop,
            in_compiled_region=i in compiled,
            text=_text(texts, locations[i]),
            top_operators=operators.get(i, []),
            top_kernels=kernels.get(i, []),
            libraries=libraries.get(i, []),
        )
        for i, row in zip(order.tolist(), rows, strict=True)
    ]
    position = np.full(count, -1, np.int64)
    position[order] = np.arange(len(order))
    return records, position


def no_line_record(columns: Columns) -> Numbers:
    """The work that reached no line."""
    return Numbers(**{name: int(values[-1]) for name, values in columns.items()})


def _rows(columns: Columns, order: Int64) -> list[dict[str, Any]]:
    """Each group's numbers as keyword arguments of `Numbers`."""
    names = list(columns)
    table = np.stack([columns[name][order] for name in names], axis=1).tolist() if names else []
    return [dict(zip(names, row, strict=True)) for row in table]


def _largest_first(columns: Columns, count: int) -> Int64:
    """Groups (indexes) in which any number is not zero, by self device time, then total, then CPU time."""
    some = np.zeros(count, np.bool_)
    for values in columns.values():
        some |= values[:count] != 0
    present = np.flatnonzero(some)
    keys = [-columns[name][present] for name in ("self_cpu_ns", "total_device_ns", "self_device_ns")]
    return present[np.lexsort(keys)]


def _text(texts: dict[str, list[str]], location: Location) -> str | None:
    lines = texts.get(location.file)
    return lines[location.line - 1] if lines is not None and 0 < location.line <= len(lines) else None


def _top_operators(analysis: Analysis) -> dict[int, list[Top]]:
    launched_by = np.where(analysis.counted, analysis.operator, -1)
    names = analysis.attribution.trace.events.name
    return _top(analysis, np.where(launched_by < 0, -1, names[launched_by]))


def _top_kernels(analysis: Analysis) -> dict[int, list[Top]]:
    work = analysis.attribution.work
    if work.metric != "device":
        return {}
    return _top(analysis, np.where(analysis.counted, analysis.attribution.trace.events.name[work.event], -1))


def _top(analysis: Analysis, name: Int64) -> dict[int, list[Top]]:
    strings = analysis.attribution.trace.strings
    result: dict[int, list[Top]] = {}
    attribution = analysis.attribution
    for share in largest_named(
        attribution.work_location, name.astype(np.int64), attribution.work.duration_ns, _KEEP, strings
    ):
        result.setdefault(share.group, []).append(Top(strings[share.member], share.total, share.rows))
    return result


def _libraries(analysis: Analysis) -> dict[int, list[Library]]:
    strings = analysis.attribution.trace.strings
    found = hot_libraries(analysis.attribution, analysis.operator, analysis.extent)
    return {
        line: [
            Library(
                one.module,
                one.function,
                strings[one.operator] if one.operator >= 0 else "",
                one.device_ns,
                one.include,
                one.include_ns,
            )
            for one in rows
        ]
        for line, rows in found.items()
    }


def function_records(analysis: Analysis) -> list[Function]:
    """The functions, all their lines together, by first line or else by the line that the trace knows them by."""
    locations = analysis.attribution.scopes.locations
    index: dict[tuple[str, int, str], int] = {}
    keys = [(one.file, one.first_line or one.line, one.function) for one in locations]
    group = np.array([index.setdefault(key, len(index)) for key in keys], np.int64)
    columns = {name: _summed(values, group, len(index)) for name, values in analysis.columns.items()}
    columns |= path_columns(analysis.attribution, analysis.by_path, group, len(index))
    exact = np.zeros(len(index), np.bool_)
    exact[group] = [one.exact for one in locations]
    names = list(index)
    order = _largest_first(columns, len(index))
    return [
        Function(**row, file=names[i][0], line=names[i][1], function=names[i][2], exact=bool(exact[i]))
        for i, row in zip(order.tolist(), _rows(columns, order), strict=True)
    ]


def _summed(values: Int64, group: Int64, groups: int) -> Int64:
    result = np.zeros(groups + 1, np.int64)
    np.add.at(result, np.append(group, groups), values)
    return result


def module_records(analysis: Analysis) -> list[Module]:
    """The modules with their device and CPU time; a total holds the modules called from it, and backward work."""
    columns = module_columns(analysis.attribution, analysis.modules, analysis.extent)
    order = _largest_first(columns, len(analysis.modules.names))
    return [
        Module(**row, path=analysis.modules.names[i][0], class_name=analysis.modules.names[i][1])
        for i, row in zip(order.tolist(), _rows(columns, order), strict=True)
    ]


def call_tree(analysis: Analysis, position: Int64) -> list[CallNode]:
    """The call paths that hold any time, parents first; what reached no line is a root with line -1.

    Args:
        analysis: of the trace.
        position: the record of each line, from `line_records`.
    """
    paths = analysis.attribution.paths
    values = analysis.by_path
    used = (paths.subtree_sums(np.abs(values)) != 0).any(axis=1)
    used[0] = values[0].any()
    number = np.cumsum(used) - 1
    nodes: list[CallNode] = []
    for path in np.flatnonzero(used).tolist():
        parent = paths.parent[path]
        line = int(position[paths.location[path]]) if path else -1
        device, backward, cpu = values[path].tolist()
        nodes.append(CallNode(int(number[parent]) if parent > 0 else -1, line, device, cpu, backward))
    return nodes

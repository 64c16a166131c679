"""Lines and functions of user code, their call tree, the lines of libraries below, what the framework does itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deepscope.analysis.analysis import Analysis
from deepscope.analysis.array_ops.selection import (
    Columns,
    Mask,
    by_line,
    distinct,
    largest_first,
    largest_named,
    rows,
    sums,
)
from deepscope.analysis.numbers.added_by_recording import python_alone
from deepscope.analysis.numbers.lines import OTHER, Parts, find_parts, folded, path_columns
from deepscope.analysis.numbers.recording_cost import is_slowed
from deepscope.analysis.ownership.attribution import OwnedWork
from deepscope.analysis.ownership.below import NumberedParts, find_below, library_line
from deepscope.analysis.ownership.locations import Location
from deepscope.analysis.ownership.modules import LIGHTNING
from deepscope.analysis.ownership.paths import PathTable
from deepscope.analysis.tables.libraries import hot_libraries
from deepscope.records import (
    CallNode,
    FrameworkPart,
    Function,
    Line,
    Numbers,
    Part,
    PartKey,
    Partner,
    Top,
    Why,
)
from deepscope.trace.arrays import distinct_places, distinct_values, nearest, pick, sums_with_callees
from deepscope.trace.model import Int64

_KEEP = 5


def line_table(analysis: Analysis, texts: dict[str, list[str]], whys: Sequence[Why]) -> tuple[list[Line], Int64]:
    """Every line with any number, largest first.

    Args:
        analysis: of the trace.
        texts: lines of the user files that the trace carries, by path.
        whys: what holds each location back.

    Returns:
        The records, and for each location the position of its record, -1 for none; shape (lines,).
    """
    columns = analysis.columns
    attribution = analysis.attribution
    locations = attribution.scopes.locations
    count = len(locations)
    order = largest_first(columns, count)
    operators, kernels = _top_operators(analysis), _top_kernels(analysis)
    libraries = hot_libraries(analysis)
    partners = fused_with(attribution.work, analysis.counted, locations)
    compiled = set(analysis.compiled.tolist())
    alone = python_alone(attribution.trace, locations)
    records = [
        Line(
            **row,
            file=locations[i].file,
            line=locations[i].line,
            function=locations[i].function,
            exact=locations[i].exact,
            of_loop=locations[i].of_loop,
            fused=locations[i].fused,
            in_compiled_region=i in compiled,
            slowed=is_slowed(
                row["recording_ns"],
                row["python_cpu_ns"],
                row["self_cpu_ns"] - row["python_ns"],
                analysis.steps,
                attribution.trace.header.lines,
                is_all_python=bool(alone[i]),
                uncertain=float(analysis.beside_plain.uncertain[i]),
            ),
            shared_with=partners.get(i, []),
            text=_text(texts, locations[i]),
            why=whys[i],
            top_operators=operators.get(i, []),
            top_kernels=kernels.get(i, []),
            libraries=libraries.get(i, []),
        )
        for i, row in zip(order.tolist(), rows(columns, order), strict=True)
    ]
    position = np.full(count, -1, np.int64)
    position[order] = np.arange(len(order))
    return records, position


def no_line(columns: Columns) -> Numbers:
    """The work that reached no line."""
    return Numbers(**{name: int(values[-1]) for name, values in columns.items()})


def _text(texts: dict[str, list[str]], location: Location) -> str | None:
    lines = texts.get(location.file)
    return lines[location.line - 1] if lines is not None and 0 < location.line <= len(lines) else None


def _top_operators(analysis: Analysis) -> dict[int, list[Top]]:
    names = analysis.attribution.trace.events.name.astype(np.int64)
    return _top(analysis, pick(names, np.where(analysis.counted, analysis.operator, -1)))


def _top_kernels(analysis: Analysis) -> dict[int, list[Top]]:
    work = analysis.attribution.work
    if work.metric != "device":
        return {}
    return _top(analysis, np.where(analysis.counted, analysis.attribution.trace.events.name[work.event], -1))


def _top(analysis: Analysis, name: Int64) -> dict[int, list[Top]]:
    work, strings = analysis.attribution.work, analysis.attribution.trace.strings
    result: dict[int, list[Top]] = {}
    for share in largest_named(work.location, name.astype(np.int64), work.duration_ns, _KEEP, strings):
        result.setdefault(share.group, []).append(Top(strings[share.member], share.total, share.rows))
    return result


_LINES_OF_ONE = 50
"""Lines of one kernel that are looked at, those with most nodes."""


def fused_with(work: OwnedWork, counted: Mask, locations: list[Location]) -> dict[int, list[Partner]]:
    """The lines that each line shares kernels with, the largest share first; `counted` is as `Analysis` has it."""
    rows = np.flatnonzero(work.shared & counted & (work.location >= 0))
    if not len(rows):
        return {}
    width = len(locations)
    keys, place = distinct_places(work.fused[rows] * width + work.location[rows])
    parts = sums(place, len(keys), work.duration_ns[rows])
    kernels: dict[int, list[tuple[int, int]]] = {}
    for key, part in zip(keys.tolist(), parts.tolist(), strict=True):
        kernels.setdefault(key // width, []).append((-part, key % width))
    shared: dict[int, dict[int, int]] = {}
    for lines in kernels.values():
        largest = sorted(lines)[:_LINES_OF_ONE]
        for _, line in largest:
            others = shared.setdefault(line, {})
            for part, other in largest:
                if other != line:
                    others[other] = others.get(other, 0) - part
    return {line: _partners(others, locations) for line, others in shared.items()}


def _partners(others: dict[int, int], locations: list[Location]) -> list[Partner]:
    largest = sorted(others.items(), key=lambda one: (-one[1], locations[one[0]].file, locations[one[0]].line))[:_KEEP]
    return [Partner(locations[line].file, locations[line].line, part) for line, part in largest]


def function_table(analysis: Analysis) -> list[Function]:
    """The functions, all their lines together, by first line or else by the line that the trace knows them by."""
    locations = analysis.attribution.scopes.locations
    index: dict[tuple[str, int, str], int] = {}
    keys = [(one.file, one.first_line or one.line, one.function) for one in locations]
    group = np.array([index.setdefault(key, len(index)) for key in keys], np.int64)
    with_none = np.append(group, len(index))
    columns = {name: sums(with_none, len(index) + 1, values) for name, values in analysis.columns.items()}
    columns |= path_columns(analysis.attribution.paths, analysis.by_path, group, len(index))
    exact = np.zeros(len(index), np.bool_)
    exact[group] = [one.exact or one.fused for one in locations]
    names = list(index)
    order = largest_first(columns, len(index))
    return [
        Function(**row, file=names[i][0], line=names[i][1], function=names[i][2], exact=bool(exact[i]))
        for i, row in zip(order.tolist(), rows(columns, order), strict=True)
    ]


def framework_table(analysis: Analysis) -> list[FrameworkPart]:
    """The parts with any cost, the largest first."""
    found, spans = analysis.framework, analysis.attribution.framework
    locations = analysis.attribution.scopes.locations
    rows = [
        FrameworkPart(
            framework=LIGHTNING, part=part, file=locations[line].file, line=locations[line].line, cost_ns=cost_ns
        )
        for line, costs in zip(found.line.tolist(), found.ns.tolist(), strict=True)
        for part, cost_ns in zip(spans.parts, costs, strict=True)
        if cost_ns
    ]
    return sorted(rows, key=lambda row: (-row.cost_ns, row.part))


_MOST_LIBRARY_LINES = 2000


def library_line_table(analysis: Analysis, parts: Parts, places: list[PartKey]) -> list[Line]:
    """The recorded lines of libraries, the largest first; the work stays that of the user's lines above them.

    Args:
        analysis: of the trace.
        parts: of the analysis, however small.
        places: theirs.
    """
    trace = analysis.attribution.trace
    recorded = trace.library_lines
    if not recorded.any():
        return []
    scope = trace.events.scope
    line_of = {i: library_line(trace.scopes[i]) for i in distinct(scope[recorded], len(trace.scopes))}
    lines = {line: trace.scopes[i] for i, line in line_of.items()}
    number = {place: i for i, place in enumerate(places)}
    found = [place for place in lines if place in number]
    count = len(found)
    group = np.full(len(places), -1, np.int64)
    group[[number[place] for place in found]] = np.arange(count)
    columns = _library_columns(parts, group, places, count)
    position = {place: i for i, place in enumerate(found)}
    entered = np.full(len(trace.scopes) + 1, -1, np.int64)
    for i, line in line_of.items():
        entered[i] = position.get(line, -1)
    runs = np.flatnonzero(recorded)
    runs = runs[analysis.extent.begins(trace.events, runs)]
    columns["calls"] = by_line(entered[scope[runs]], count)
    order = np.lexsort((-columns["total_device_ns"][:count], -columns["self_device_ns"][:count]))[:_MOST_LIBRARY_LINES]
    return [
        Line(**row, file=found[i].file, line=found[i].line, function=found[i].name, exact=not lines[found[i]].lowered)
        for i, row in zip(order.tolist(), rows(columns, order), strict=True)
    ]


def _library_columns(parts: Parts, group: Int64, places: list[PartKey], count: int) -> Columns:
    """Device time and launches by line; shape (count + 1,), the last place for what is below no line of a library."""
    own = np.append(group, -1)[parts.place]
    inner = pick(own, nearest(parts.parent, own >= 0))
    tree = PathTable(np.append(-1, parts.parent + 1), np.append(-1, parts.place))
    below = tree.totals(np.append(0, parts.self_ns), group, count)
    kernels = np.array([place.kind == "kernel" for place in places], np.bool_)[parts.place]
    return {
        "self_device_ns": by_line(inner, count, parts.self_ns),
        "total_device_ns": np.append(below, 0),
        "backward_device_ns": by_line(inner, count, parts.backward_ns),
        "launches": by_line(inner[kernels], count, parts.calls[kernels]),
    }


def call_tree(analysis: Analysis, position: Int64) -> tuple[list[CallNode], Int64]:
    """The call paths that hold any time, parents first; what reached no line is a root with line -1.

    Args:
        analysis: of the trace.
        position: the record of each line, from `line_table`.

    Returns:
        The nodes, and for each call path its node, -1 for a path that holds no time; shape (paths,).
    """
    paths = analysis.attribution.paths
    values = analysis.by_path
    used = (sums_with_callees(np.abs(values), paths.parent) != 0).any(axis=1)
    used[0] = values[0].any()
    number = np.where(used, np.cumsum(used) - 1, -1)
    nodes: list[CallNode] = []
    for path in np.flatnonzero(used).tolist():
        parent = int(paths.parent[path])
        line = int(position[paths.location[path]]) if path else -1
        device, backward, cpu, _ = values[path].tolist()
        nodes.append(CallNode(int(number[parent]) if parent > 0 else -1, line, device, cpu, backward))
    return nodes, number


def part_table(
    parts: Parts, places: list[PartKey], paths: PathTable, number: Int64
) -> tuple[list[Part], list[PartKey]]:
    """The parts below the call tree's nodes, parents first, and their places; the small ones are folded.

    Args:
        parts: from `all_parts`, with their `places`.
        places: what they are.
        paths: of the trace.
        number: the call tree's node of each call path, from `call_tree`; shape (paths,).
    """
    parts = folded(parts, paths.location)
    used = distinct_values(parts.place[parts.place != OTHER])
    place = np.full(len(places) + 1, len(used), np.int64)  # the last is `OTHER`
    place[used] = np.arange(len(used))
    columns = (number[parts.path], parts.parent, place[parts.place], parts.self_ns, parts.backward_ns, parts.calls)
    records = [Part(*row) for row in np.stack(columns, axis=1).tolist()]
    names = [places[i] for i in used.tolist()]
    return records, [*names, PartKey("other", "")] if (parts.place == OTHER).any() else names


def all_parts(analysis: Analysis) -> tuple[Parts, list[PartKey]]:
    """The parts of an analysis, however small, and their places."""
    places = NumberedParts()
    attribution = analysis.attribution
    work, trace = attribution.work, attribution.trace
    below = find_below(attribution, analysis.modules, analysis.counted, places)
    leaf = None
    if work.metric == "device":
        names = trace.events.name[work.event]
        known = {name: PartKey("kernel", trace.strings[name]) for name in distinct_values(names).tolist()}
        leaf = places.table(known, len(trace.strings))[names]
    return find_parts(work, analysis.counted, below, leaf, places.alike()), places.all

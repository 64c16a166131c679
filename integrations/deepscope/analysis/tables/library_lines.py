"""The lines of libraries that work ran below: what a library's file shows in an editor."""

from __future__ import annotations

import numpy as np

from deepscope.analysis.analysis import Analysis
from deepscope.analysis.array_ops.ancestry import nearest
from deepscope.analysis.array_ops.selection import Columns, by_line, distinct
from deepscope.analysis.numbers.parts import Parts
from deepscope.analysis.ownership.below import library_line
from deepscope.analysis.ownership.paths import PathTable
from deepscope.analysis.tables.numbered import rows
from deepscope.records import Line, PartKey
from deepscope.trace.arrays import pick
from deepscope.trace.model import Int64

_MOST = 2000


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
    lines = {library_line(trace.scopes[i]): trace.scopes[i] for i in distinct(scope[recorded], len(trace.scopes))}
    number = {place: i for i, place in enumerate(places)}
    found = [place for place in lines if place in number]
    count = len(found)
    group = np.full(len(places), -1, np.int64)
    group[[number[place] for place in found]] = np.arange(count)
    columns = _columns(parts, group, places, count)
    position = {place: i for i, place in enumerate(found)}
    entered = np.full(len(trace.scopes) + 1, -1, np.int64)
    for i in distinct(scope[recorded], len(trace.scopes)):
        entered[i] = position.get(library_line(trace.scopes[i]), -1)
    runs = np.flatnonzero(recorded)
    runs = runs[analysis.extent.begins(trace.events, runs)]
    columns["calls"] = by_line(entered[scope[runs]], count)
    order = np.lexsort((-columns["total_device_ns"][:count], -columns["self_device_ns"][:count]))[:_MOST]
    return [
        Line(**row, file=found[i].file, line=found[i].line, function=found[i].name, exact=not lines[found[i]].lowered)
        for i, row in zip(order.tolist(), rows(columns, order), strict=True)
    ]


def _columns(parts: Parts, group: Int64, places: list[PartKey], count: int) -> Columns:
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

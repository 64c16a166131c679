"""The call paths of user lines."""

from __future__ import annotations

import numpy as np

from deepscope.analysis.analysis import Analysis
from deepscope.analysis.numbers.parts import OTHER, Parts, find_parts, folded
from deepscope.analysis.ownership.below import Places, find_below
from deepscope.analysis.ownership.paths import PathTable
from deepscope.records import CallNode, Part, PartKey
from deepscope.trace.arrays import distinct_values
from deepscope.trace.model import Int64


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
    used = (paths.subtree_sums(np.abs(values)) != 0).any(axis=1)
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
    places = Places()
    attribution = analysis.attribution
    work, trace = attribution.work, attribution.trace
    below = find_below(attribution, analysis.modules, analysis.counted, places)
    leaf = None
    if work.metric == "device":
        names = trace.events.name[work.event]
        known = {name: PartKey("kernel", trace.strings[name]) for name in distinct_values(names).tolist()}
        leaf = places.table(known, len(trace.strings))[names]
    return find_parts(work, analysis.counted, below, leaf, places.alike()), places.all

"""The call paths of user lines, and each function's own time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from deepscope.analysis.analysis import Analysis
from deepscope.analysis.array_ops.ancestry import sums_with_callees
from deepscope.analysis.array_ops.intervals import Intervals
from deepscope.analysis.array_ops.selection import Columns
from deepscope.analysis.critical.lines import PARTS
from deepscope.analysis.numbers.lines import OTHER, Parts, find_parts, folded
from deepscope.analysis.numbers.recording_cost import RecordingCost
from deepscope.analysis.ownership.below import NumberedParts, find_below
from deepscope.analysis.ownership.paths import PathTable
from deepscope.analysis.tables.critical import StepPaths
from deepscope.records import CallNode, OwnLine, OwnTimes, Part, PartKey
from deepscope.trace.arrays import distinct_places, distinct_values
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


LINES = 100
"""Rows at most, the longest lines."""
_PARTS = {
    "operator_ns": ("operator_ns",),
    "python_ns": ("python_ns",),
    "data_ns": ("data_ns",),
    "device_ns": ("kernel_ns", "copy_ns"),
    "delay_ns": ("launch_ns", "gap_ns", "return_ns"),
}


_NO_LINE, _OTHERS = -1, -2


def columns_by_block(paths: StepPaths, steps_per_block: int) -> tuple[Int64, list[Columns]]:
    """The numbers of the blocks of steps, and the columns of each."""
    blocks, place = distinct_places(paths.steps // steps_per_block)
    return blocks, [paths.columns(np.flatnonzero(place == block)) for block in range(len(blocks))]


def whole_columns(by_block: Sequence[Columns]) -> Columns:
    """The sums over the blocks."""
    return {name: np.sum([one[name] for one in by_block], axis=0) for name in PARTS}


def own_times(
    paths: StepPaths,
    blocks: Int64,
    by_block: Sequence[Columns],
    line_position: Int64,
    steps_per_block: int,
    *,
    recording: RecordingCost,
) -> OwnTimes:
    """The table; `line_position` is the place of each location in the table of lines, -1 for none.

    What recording costs is taken off Python's time, and off the steps: it says nothing of the rank.
    """
    place = distinct_places(paths.steps // steps_per_block)[1]
    spans = [Intervals(paths.spans.start[place == one], paths.spans.end[place == one]) for one in range(len(blocks))]
    costs = zip(by_block, spans, strict=True)
    taken = np.stack([np.minimum(one["python_ns"], recording.by_line(span)) for one, span in costs])
    own = np.stack([_sum(one, (name for name in PARTS if name != "communication_ns")) for one in by_block]) - taken
    parts = {name: _sum(whole_columns(by_block), of) for name, of in _PARTS.items()}
    parts["python_ns"] = parts["python_ns"] - taken.sum(axis=0)
    position = np.append(line_position, _NO_LINE)
    here = np.flatnonzero(own.any(axis=0))
    known = here[position[here] >= 0]
    known = known[np.argsort(-own[:, known].sum(axis=0), kind="stable")]
    groups = [
        *((int(position[one]), [one]) for one in known[:LINES].tolist()),
        (_NO_LINE, here[position[here] < 0].tolist()),
        (_OTHERS, known[LINES:].tolist()),
    ]
    duration = paths.spans.end - paths.spans.start
    wall = -taken.sum(axis=1)
    np.add.at(wall, place, duration)
    return OwnTimes(
        blocks=blocks.tolist(),
        steps=np.bincount(place, minlength=len(blocks)).tolist(),
        wall_ns=wall.tolist(),
        communication_ns=[int(one["communication_ns"].sum()) for one in by_block],
        lines=[
            OwnLine(
                line=row,
                times_ns=own[:, which].sum(axis=1).tolist(),
                **{name: int(values[which].sum()) for name, values in parts.items()},
            )
            for row, which in groups
            if which
        ],
    )


def _sum(columns: Columns, names: Iterable[str]) -> Int64:
    found: Int64 = np.sum([columns[name] for name in names], axis=0)
    return found

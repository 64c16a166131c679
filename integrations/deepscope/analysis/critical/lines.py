"""The critical path by line: how long each line is on it, by what is done meanwhile."""

from __future__ import annotations

import numpy as np

from deepscope.analysis.algebra.intervals import union
from deepscope.analysis.algebra.selection import Columns, by_line
from deepscope.analysis.critical.parts import Parts
from deepscope.analysis.critical.path import Path, PathKind
from deepscope.analysis.critical.pieces import Pieces
from deepscope.analysis.critical.timelines import Timelines
from deepscope.trace.arrays import distinct_values
from deepscope.trace.model import Int64, Kind

__all__ = ["KINDS", "path_by_line"]

KINDS = ("cpu_ns", "data_ns", "kernel_ns", "copy_ns", "communication_ns", "launch_ns", "gap_ns", "return_ns")
"""The columns, in the order of a step: fields of `records.CriticalTimes`."""


def path_by_line(
    path: Path,
    pieces: Pieces,
    parts: Parts,
    timelines: Timelines,
    *,
    kinds: Int64,
    call_locations: Int64,
    lines: int,
) -> Columns:
    """Time on the path by line; columns of shape (lines + 1,) that together sum to the path.

    Args:
        path: the path, or a part of it.
        pieces: of device work.
        parts: of the pieces.
        timelines: of the threads.
        kinds: `Kind` of each piece; shape (p,).
        call_locations: the line that owns the call of each join; shape (j,).
        lines: how many there are.
    """
    columns = {name: np.zeros(lines + 1, np.int64) for name in KINDS}
    length = path.end - path.start

    def add(name: str, location: Int64, values: Int64) -> None:
        columns[name] += by_line(location, lines, values)

    for kind, name in ((PathKind.LAUNCH, "launch_ns"), (PathKind.GAP, "gap_ns")):
        rows = path.kind == kind
        add(name, pieces.location[path.where[rows]], length[rows])
    rows = path.kind == PathKind.RETURN
    add("return_ns", call_locations[path.where[rows]], length[rows])
    work = path.kind == PathKind.WORK
    piece = path.where[work]
    communicates, copies = pieces.collective[piece], kinds[piece] == Kind.MEMCPY
    for name, chosen in (
        ("communication_ns", communicates),
        ("copy_ns", copies & ~communicates),
        ("kernel_ns", ~copies & ~communicates),
    ):
        add(name, *parts.between(piece[chosen], path.start[work][chosen], path.end[work][chosen]))
    on_thread = path.kind == PathKind.THREAD
    for thread in distinct_values(path.where[on_thread]).tolist():
        rows = on_thread & (path.where == thread)
        own = union(path.start[rows], path.end[rows])
        line = timelines.of_thread(thread)
        spent = own.overlap_ns(line.start, line.end)
        add("data_ns", line.location[line.loads], spent[line.loads])
        add("cpu_ns", line.location[~line.loads], spent[~line.loads])
        columns["cpu_ns"][lines] += own.total_ns - int(spent.sum())
    return columns

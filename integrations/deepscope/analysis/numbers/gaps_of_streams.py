"""Why streams idle between pieces of work, and how their time is divided, as HTA defines it.

hta/analyzers/breakdown_analysis.py and communication_analysis.py of version 0.5.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from deepscope.analysis.algebra.intervals import union
from deepscope.analysis.algebra.selection import Mask
from deepscope.analysis.ownership.owned_work import OwnedWork
from deepscope.trace.arrays import distinct_places
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Events, Int64

GAPS = ("host wait", "kernel wait", "other wait")
"""The work was launched after the one before it had ended; else the gap is short; else neither."""

_SHORT_NS = 30_000
"""HTA's threshold is 30 in the unit of the trace's times, microseconds (its documentation says nanoseconds)."""


@dataclass(frozen=True, slots=True)
class Gaps:
    """The time between each piece of work and the one before it on its stream; arrays of shape (g,)."""

    row: Int64
    """The later piece of work."""
    gap_ns: Int64
    """0 where the two overlap."""
    cause: Int64
    """Index into `GAPS`."""


def gaps(events: Events, work: OwnedWork, which: Mask) -> Gaps:
    """The gaps of all streams. `which` are the pieces of work that count, shape (w,)."""
    rows = np.flatnonzero(which & work.counts)
    _, stream = stream_of(events, work, rows)
    rows = rows[np.lexsort((work.start_ns[rows], stream))]
    _, stream = stream_of(events, work, rows)
    same = stream[1:] == stream[:-1]
    later, before = rows[1:][same], rows[:-1][same]
    gap = np.maximum(work.start_ns[later] - work.end_ns[before], 0)
    host = (work.node[later] >= 0) & (work.launch_ns[later] > work.end_ns[before])
    return Gaps(later, gap, np.where(host, 0, np.where(gap < _SHORT_NS, 1, 2)))


def stream_of(events: Events, work: OwnedWork, rows: Int64) -> tuple[list[tuple[int, int]], Int64]:
    """The streams of some work, as (device, stream) in ascending order, and which of them each piece ran on."""
    streams, place = distinct_places(events.stream[work.event[rows]])
    keys, both = distinct_places(work.device[rows] * len(streams) + place)
    return [(key // len(streams), int(streams[key % len(streams)])) for key in keys.tolist()], both


class Spans(NamedTuple):
    """How the time from the first to the last work is divided."""

    whole_ns: int
    compute_ns: int
    idle_ns: int
    communication_ns: int
    """The union of collectives."""
    overlap_ns: int
    """The part of it that computation overlaps."""


def spans(work: OwnedWork, which: Mask) -> Spans:
    """Divides the time of some work, all devices and streams together; `which` has shape (w,)."""
    rows = which & work.counts
    busy = union(work.start_ns[rows], work.end_ns[rows])
    if not len(busy.start):
        return Spans(0, 0, 0, 0, 0)
    kernels = rows & (work.kind == Kind.KERNEL)
    compute, communication = (
        union(work.start_ns[one], work.end_ns[one]) for one in (kernels & ~work.collective, kernels & work.collective)
    )
    whole = int(busy.end[-1] - busy.start[0])
    return Spans(
        whole,
        compute.total_ns,
        whole - busy.total_ns,
        communication.total_ns,
        int(compute.overlap_ns(communication.start, communication.end).sum()),
    )

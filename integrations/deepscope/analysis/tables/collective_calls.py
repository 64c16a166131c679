"""The calls of collectives and of point-to-point messages, one by one."""

from __future__ import annotations

import numpy as np

from deepscope.analysis.analysis import Analysis
from deepscope.analysis.numbers.collective_calls import CollectiveCalls
from deepscope.records import CollectiveCall
from deepscope.trace.arrays import pick
from deepscope.trace.model import Int64

MOST_CALLS = 4096
"""Calls that are kept of a rank."""
_MOST_NS = 1 << 62
"""Of the time since the epoch that the head of a trace tells."""


def collective_call_table(
    analysis: Analysis, calls: CollectiveCalls, row: Int64, position: Int64
) -> list[CollectiveCall]:
    """The first calls in the order of their launches; what is beyond `MOST_CALLS` is left out.

    Args:
        analysis: of the trace.
        calls: of its extent.
        row: of each call its place in the table of collectives.
        position: of each location its place in the table of lines, -1 for none.
    """
    attribution = analysis.attribution
    events, steps = attribution.trace.events, attribution.training.steps
    event, launched_by, work = (column[:MOST_CALLS] for column in (calls.event, calls.launched_by, calls.work))
    launch = calls.launch_ns(events)[:MOST_CALLS]
    owners = attribution.owners.location
    own = np.where(launched_by >= 0, owners[launched_by], owners[event])
    location = np.where(work >= 0, pick(attribution.work.location, work), own)
    size = np.array([one.size_bytes for one in calls.facts], np.int64)
    base_ns = attribution.trace.unix_base_ns
    start = np.minimum(events.start_ns[event] + (base_ns if abs(base_ns) < _MOST_NS else 0), _MOST_NS - 1)
    columns = (
        start,
        start + events.duration_ns[event],
        pick(steps.number, steps.of(launch)),
        row[:MOST_CALLS],
        calls.number[:MOST_CALLS],
        calls.peer[:MOST_CALLS],
        pick(position, location),
        pick(size, calls.of[:MOST_CALLS]),
    )
    return [CollectiveCall(*values) for values in zip(*(column.tolist() for column in columns), strict=True)]

"""The line of a graph break ends where dynamo begins with what comes after it.

The recorder learns that the line has ended when the next frame starts. By then dynamo has looked up what to run and
opened the compiled region. Both belong to the line that called the compiled function.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from deepscope.trace.joins.nesting import parents
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64, Trace
from deepscope.trace.names import is_cache_lookup, is_compiled_region


def end_broken_lines(trace: Trace) -> Trace:
    """The trace without the ends of line scopes that reach into a compiled region but do not hold all of it."""
    regions = _spans(trace, is_compiled_region)
    if not len(regions):
        return trace
    events = trace.events
    rows = np.concatenate([np.flatnonzero(events.kind == Kind.LINE_SCOPE), regions])
    above = parents(events.start_ns[rows], events.end_ns[rows], events.thread[rows]).tolist()
    start, end, thread = (column[rows].tolist() for column in (events.start_ns, events.end_ns, events.thread))
    lookups = _starts_by_thread(trace, _spans(trace, is_cache_lookup))
    duration = events.duration_ns.copy()
    for region in range(len(rows) - len(regions), len(rows)):
        line = above[region]
        while line >= 0 and end[line] < end[region]:
            before = lookups.get(thread[region], [])
            last = bisect_right(before, start[region]) - 1
            begins = before[last] if last >= 0 and before[last] >= start[line] else start[region]
            duration[rows[line]] = min(duration[rows[line]], begins - start[line])
            line = above[line]
    is_line = events.kind == Kind.LINE_SCOPE
    return replace(trace, events=replace(events, duration_ns=np.where(is_line, duration, events.duration_ns)))


def _spans(trace: Trace, is_meant: Callable[[str], bool]) -> Int64:
    """Dynamo's spans with such names (events)."""
    names = np.array([is_meant(name) for name in trace.strings] + [False])
    kind = trace.events.kind
    return np.flatnonzero(((kind == Kind.OPERATOR) | (kind == Kind.ANNOTATION)) & names[trace.events.name])


def _starts_by_thread(trace: Trace, spans: Int64) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for span in spans[np.argsort(trace.events.start_ns[spans], kind="stable")].tolist():
        found.setdefault(int(trace.events.thread[span]), []).append(int(trace.events.start_ns[span]))
    return found

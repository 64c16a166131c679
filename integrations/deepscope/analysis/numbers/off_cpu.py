"""Python's own time that was no work: the thread slept, or waited for a file, a lock, or loader workers."""

from __future__ import annotations

import numpy as np

from deepscope.analysis.algebra.extent import Extent
from deepscope.analysis.algebra.selection import distinct, named, of_kind
from deepscope.analysis.ownership.workers import HAS_WORKERS
from deepscope.trace.format.span_names import parse_off_cpu
from deepscope.trace.joins.nesting import innermost
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Events, Int64, Trace

__all__ = ["waiting_ns"]


def waiting_ns(
    trace: Trace, scopes: Int64, python_ns: Int64, in_calls_ns: Int64, extent: Extent
) -> tuple[Int64, Int64]:
    """How long Python waited in each run of a line: for loader workers, and for anything else.

    The recorder marks how long a stretch of a line was off the CPU, but not where in it. Operators and runtime calls
    may have waited, so their time is taken off first: Python waited at least the rest. 0 without marks in the trace.

    Args:
        trace: any trace.
        scopes: the runs of lines (events); shape (k,).
        python_ns: Python's own time in each.
        in_calls_ns: time of operators and runtime calls in each.
        extent: the part of the trace that counts.

    Returns:
        Two arrays of shape (k,), which together are at most `python_ns`.
    """
    events = trace.events
    nothing = np.zeros(len(scopes), np.int64)
    others = of_kind(trace, Kind.OTHER) & extent.holds(events.start_ns)
    off_ns = np.zeros(len(trace.strings) + 1, np.int64)
    for name in distinct(events.name[others], len(trace.strings)):
        off_ns[name] = parse_off_cpu(trace.strings[name]) or 0
    marked = np.where(others, off_ns[events.name], 0)
    marks = np.flatnonzero(marked)
    if not len(marks) or not len(scopes):
        return nothing, nothing
    length = events.duration_ns[scopes]
    place = _scope_around(events, marks, scopes)
    away_ns = nothing.copy()
    known = place >= 0
    np.add.at(away_ns, place[known], np.minimum(marked[marks[known]], length[place[known]]))
    waited_ns = np.clip(np.minimum(away_ns, length) - in_calls_ns, 0, python_ns)
    loads = np.flatnonzero(named(trace, of_kind(trace, Kind.ANNOTATION, Kind.OPERATOR), HAS_WORKERS.search))
    loading_ns = nothing.copy()
    around = _scope_around(events, loads, scopes)
    known = around >= 0
    np.add.at(loading_ns, around[known], extent.clipped_ns(events.start_ns[loads[known]], events.end_ns[loads[known]]))
    for_loader_ns = np.minimum(waited_ns, loading_ns)
    return for_loader_ns, waited_ns - for_loader_ns


def _scope_around(events: Events, inner: Int64, scopes: Int64) -> Int64:
    """The run of a line that was open at the start of each event: a position in `scopes`, -1 for none."""
    return innermost(
        events.start_ns[inner],
        events.thread[inner],
        events.start_ns[scopes],
        events.end_ns[scopes],
        events.thread[scopes],
    )

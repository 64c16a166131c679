"""Where Python's own time was no work: the thread slept, or waited for a file, a lock, or the data loader's workers."""

from __future__ import annotations

import numpy as np

from deepscope.analysis.algebra.selection import named, of_kind
from deepscope.analysis.extent import Extent
from deepscope.analysis.numbers.workers import HAS_WORKERS
from deepscope.analysis.ownership.attribution import Attribution
from deepscope.trace.format.span_names import parse_off_cpu
from deepscope.trace.joins.nesting import innermost
from deepscope.trace.model import Int64, Kind

__all__ = ["waiting_ns"]


def waiting_ns(
    attribution: Attribution, extent: Extent, scopes: Int64, python_ns: Int64, in_calls_ns: Int64
) -> tuple[Int64, Int64]:
    """Of the Python time of each run of a line, what it waited for loader workers and what it was blocked otherwise.

    The recorder marks how long a stretch of a line was off the CPU, not where in it: what operators and runtime calls
    may have waited is taken off first, so that these are the least that Python waited. 0 where the trace has no marks.

    Args:
        attribution: of the trace.
        extent: what of it is looked at.
        scopes: the runs of lines (events); shape (k,).
        python_ns: Python's own time in each.
        in_calls_ns: time of operators and runtime calls in each.

    Returns:
        Two arrays of shape (k,), which together are at most `python_ns`.
    """
    trace = attribution.trace
    events = trace.events
    nothing = np.zeros(len(scopes), np.int64)
    marked = np.array([parse_off_cpu(name) or 0 for name in trace.strings] + [0], np.int64)[events.name]
    marks = np.flatnonzero((marked > 0) & of_kind(trace, Kind.OTHER) & extent.holds(events.start_ns))
    if not len(marks) or not len(scopes):
        return nothing, nothing
    length = events.duration_ns[scopes]
    place = _scope_around(attribution, marks, scopes)
    away_ns = nothing.copy()
    known = place >= 0
    np.add.at(away_ns, place[known], np.minimum(marked[marks[known]], length[place[known]]))
    waited_ns = np.clip(np.minimum(away_ns, length) - in_calls_ns, 0, python_ns)
    loads = np.flatnonzero(named(trace, of_kind(trace, Kind.ANNOTATION, Kind.OPERATOR), HAS_WORKERS.search))
    loading_ns = nothing.copy()
    around = _scope_around(attribution, loads, scopes)
    known = around >= 0
    np.add.at(loading_ns, around[known], extent.clipped_ns(events.start_ns[loads[known]], events.end_ns[loads[known]]))
    for_loader_ns = np.minimum(waited_ns, loading_ns)
    return for_loader_ns, waited_ns - for_loader_ns


def _scope_around(attribution: Attribution, inner: Int64, scopes: Int64) -> Int64:
    """The run of a line that was open at the start of each event: a position in `scopes`, -1 for none."""
    events = attribution.trace.events
    return innermost(
        events.start_ns[inner],
        events.thread[inner],
        events.start_ns[scopes],
        events.end_ns[scopes],
        events.thread[scopes],
    )

"""Python's own time that was no work: the thread waited for loader workers, was blocked, or had no core."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from deepscope.analysis.algebra.extent import Extent
from deepscope.analysis.algebra.selection import distinct, named, of_kind
from deepscope.analysis.ownership.workers import HAS_WORKERS
from deepscope.trace.arrays import pick
from deepscope.trace.format.span_names import parse_off_cpu
from deepscope.trace.joins.nesting import innermost
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Events, Int64, Trace


class Waiting(NamedTuple):
    """How long Python waited in each run of a line; shape (k,) each."""

    loader_ns: Int64
    """For workers of a data loader."""
    blocked_ns: Int64
    """Asleep, or for a file, a network, a lock, another thread."""
    core_ns: Int64
    """It could run and had no core."""


def waiting(
    trace: Trace, scopes: Int64, caller: Int64, *, python_ns: Int64, in_calls_ns: Int64, extent: Extent
) -> Waiting:
    """How long Python waited in each run of a line, and for what.

    The recorder marks how long a stretch of a line was off the CPU, but not where in it. Operators and runtime calls
    may have been blocked, so their time is taken off first: Python was blocked for at least the rest. 0 without marks.

    Args:
        trace: any trace.
        scopes: the runs of lines (events); shape (k,).
        caller: the run that each one was called from, -1 for none; shape (k,).
        python_ns: Python's own time in each.
        in_calls_ns: time of operators and runtime calls in each.
        extent: the part of the trace that counts.

    Returns:
        The three parts, which together are at most `python_ns`.
    """
    events = trace.events
    nothing = np.zeros(len(scopes), np.int64)
    others = of_kind(trace, Kind.OTHER) & extent.holds(events.start_ns)
    off_ns, core_ns = (np.zeros(len(trace.strings) + 1, np.int64) for _ in range(2))
    for name in distinct(events.name[others], len(trace.strings)):
        found = parse_off_cpu(trace.strings[name])
        if found is not None:
            off_ns[name], core_ns[name] = found
    marks = np.flatnonzero(others & (off_ns[events.name] > 0))
    if not len(marks) or not len(scopes):
        return Waiting(nothing, nothing, nothing)
    length = events.duration_ns[scopes]
    place = _scope_around(events, marks, scopes)
    away_ns, without_core_ns = (
        _in_runs(of_name[events.name[marks]], place, caller, length) for of_name in (off_ns, core_ns)
    )
    waited_ns = np.clip(away_ns - without_core_ns - in_calls_ns, 0, python_ns)
    for_core_ns = _of_python(without_core_ns, python_ns - waited_ns, in_calls_ns)
    loads = np.flatnonzero(named(trace, of_kind(trace, Kind.ANNOTATION, Kind.OPERATOR), HAS_WORKERS.search))
    loading_ns = _sums(
        _scope_around(events, loads, scopes), extent.clipped_ns(events.start_ns[loads], events.end_ns[loads]), length
    )
    for_loader_ns = np.minimum(waited_ns, loading_ns)
    return Waiting(for_loader_ns, waited_ns - for_loader_ns, for_core_ns)


def _in_runs(marked_ns: Int64, place: Int64, caller: Int64, length: Int64) -> Int64:
    """What marks tell, by run; shape (k,). A stretch reaches back to the last event of the hooks, so what is longer
    than the run of a line was before it, between two lines of its function: it counts at their caller."""
    in_run = np.where(place >= 0, np.minimum(marked_ns, pick(length, place)), 0)
    before = _sums(pick(caller, place), marked_ns - in_run, length)
    return np.asarray(np.minimum(_sums(place, in_run, length) + before, length))


def _sums(place: Int64, values_ns: Int64, most_ns: Int64) -> Int64:
    """Sums by `place` (-1 for none), each at most that of `most_ns`."""
    result = np.zeros(len(most_ns), np.int64)
    known = place >= 0
    np.add.at(result, place[known], values_ns[known])
    return np.minimum(result, most_ns)


def _of_python(without_core_ns: Int64, python_ns: Int64, in_calls_ns: Int64) -> Int64:
    """Python's part of the time without a core in each run, from the lengths of its Python and of its calls.

    A thread loses its core anywhere, so both bear it by their lengths; but for what is longer than one of the two, and
    then was in the other.
    """
    whole = np.maximum(python_ns + in_calls_ns, 1)
    by_length = (without_core_ns.astype(np.float64) * python_ns / whole).astype(np.int64)
    by_length = np.where(without_core_ns > python_ns, 0, by_length)
    by_length = np.where(without_core_ns > in_calls_ns, without_core_ns, by_length)
    return np.clip(by_length, np.maximum(without_core_ns - in_calls_ns, 0), python_ns).clip(0)


def _scope_around(events: Events, inner: Int64, scopes: Int64) -> Int64:
    """The run of a line that was open at the start of each event: a position in `scopes`, -1 for none."""
    return innermost(
        events.start_ns[inner],
        events.thread[inner],
        events.start_ns[scopes],
        events.end_ns[scopes],
        events.thread[scopes],
    )

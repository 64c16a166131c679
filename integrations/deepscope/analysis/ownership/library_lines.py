"""Runs of library lines, laid between what they call and what called them. Nothing else moves.

A library's line owns nothing. So every way up must pass the same events as in a trace without library lines: these are
put in where the event above both is the same one.
"""

from __future__ import annotations

import numpy as np

from deepscope.analysis.algebra.ancestry import nearest_to
from deepscope.analysis.algebra.selection import Mask
from deepscope.trace.arrays import pick
from deepscope.trace.joins.nesting import Nesting
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64, Trace


def put_in_between(trace: Trace, parent: Int64, nested: Int64, library: Mask) -> Int64:
    """The parents of all events, runs of library lines among them; shape (n,).

    Args:
        trace: any trace.
        parent: the event that encloses each one, as if there were no library lines; shape (n,).
        nested: the events that `parent` is about, ascending.
        library: which events are runs of library lines; shape (n,).
    """
    rows = np.union1d(nested, np.flatnonzero(library))
    above = np.full(len(parent), -1, np.int64)
    above[rows] = pick(rows, _parents(trace, rows, library[rows]))
    around = nearest_to(above, above, ~library)
    result: Int64 = np.where(library | (around == parent), above, parent)
    return result


def _parents(trace: Trace, rows: Int64, library: Mask) -> Int64:
    """Parents of some events, as positions: of an annotation and a library's line that overlap in part, neither is the
    other's. `with record_function(…):` begins within its own line, and ends within another run of it.
    """
    events = trace.events
    start, end, kind = events.start_ns[rows], events.end_ns[rows], events.kind[rows]
    above = Nesting.of(start, end, events.thread[rows], kind).parents_of(start, end, events.thread[rows])
    annotation = kind == Kind.ANNOTATION
    for inner, outer in ((annotation, library), (library, annotation)):
        late = np.flatnonzero(inner & (above >= 0))
        while len(late):
            late = late[outer[above[late]] & (end[late] > end[above[late]])]
            above[late] = above[above[late]]
            late = late[above[late] >= 0]
    return above

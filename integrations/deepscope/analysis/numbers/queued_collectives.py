"""The operators that hand collectives to threads of a backend on the CPU (`c10d::allreduce_` to `gloo:all_reduce`)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from deepscope.analysis.array_ops.selection import distinct, named, of_kind
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64, Trace

_PREFIX = "c10d::"
_MESSAGES = frozenset({"send", "recv"})


def queued_by(trace: Trace, spans: Int64, kind_of: Callable[[str], str]) -> Int64:
    """The operator that each span (an event, of all that the trace has) is the work of; -1 where it cannot be told.

    A message's span is opened within its operator. Collectives are queued and taken out in order: the operators of a
    kind are those of the spans of that kind if there are as many, and none begins after its span.

    Args:
        trace: of the spans.
        spans: of backends that work on the CPU, by their starts; shape (c,).
        kind_of: torch's word for a collective, by a name.
    """
    events = trace.events
    found = np.full(len(spans), -1, np.int64)
    operators = np.flatnonzero(named(trace, of_kind(trace, Kind.OPERATOR), lambda name: name.startswith(_PREFIX)))
    if not len(spans) or not len(operators):
        return found
    operators = operators[np.argsort(events.start_ns[operators], kind="stable")]
    words: dict[str, int] = {"": -1}
    number = np.full(len(trace.strings), -1, np.int64)
    both = np.concatenate((events.name[spans], events.name[operators]))
    for code in distinct(both, len(trace.strings)):
        number[code] = words.setdefault(kind_of(trace.strings[code].rpartition(":")[2]), len(words))
    of_spans, of_operators = number[events.name[spans]], number[events.name[operators]]
    for word, kind in words.items():
        ours, theirs = np.flatnonzero(of_spans == kind), operators[of_operators == kind]
        if kind < 0 or not len(ours) or not len(theirs):
            continue
        if word in _MESSAGES:
            found[ours] = _around(trace, spans[ours], theirs)
        elif len(ours) == len(theirs) and (events.start_ns[theirs] <= events.start_ns[spans[ours]]).all():
            found[ours] = theirs
    return found


def _around(trace: Trace, spans: Int64, operators: Int64) -> Int64:
    """The last operator that began on the thread of each span, where it had not ended when the span began."""
    events = trace.events
    found = np.full(len(spans), -1, np.int64)
    for thread in np.unique(events.thread[spans]).tolist():
        ours = np.flatnonzero(events.thread[spans] == thread)
        theirs = operators[events.thread[operators] == thread]
        start = events.start_ns[spans[ours]]
        place = np.searchsorted(events.start_ns[theirs], start, side="right") - 1
        known = place >= 0
        last = theirs[place[known]]
        known[known] = events.end_ns[last] >= start[known]
        found[ours[known]] = theirs[place[known]]
    return found

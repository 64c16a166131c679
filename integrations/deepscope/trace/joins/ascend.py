"""Ascend's `trace_view.json` made like the others: calls on the threads that made them, work joined to its calls.

msprof (https://gitee.com/ascend/msprof-analyze) puts the calls into CANN under a process of their own. `HostToDevice`
arrows say which call launched a piece of work; the `connection_id` of the two is not always the same.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from deepscope.trace.joins.backward import arrow_ends
from deepscope.trace.joins.nesting import innermost
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Events, Flows, Int32, Int64, Trace

CANN = "CANN"


def corrected(trace: Trace, arrows: Flows) -> Trace:
    """The trace with CANN's calls on the threads that made them, and with work joined to them by `arrows`."""
    events = trace.events
    home = _home_threads(trace)
    events = replace(events, thread=home[events.thread])
    arrows = replace(arrows, thread=home[arrows.thread])
    return replace(trace, events=replace(events, correlation=_joined(events, arrows)))


def _home_threads(trace: Trace) -> Int32:
    """The thread that each thread's events go to: CANN's go to the thread of the same number, if it has events."""
    events = trace.events
    used = np.bincount(events.thread[events.kind <= Kind.RUNTIME], minlength=len(trace.threads)) > 0
    home = np.arange(len(trace.threads), dtype=np.int32)
    own = {one.tid: i for i, one in enumerate(trace.threads) if used[i] and one.process_name != CANN}
    for i, one in enumerate(trace.threads):
        if one.process_name == CANN:
            home[i] = own.get(one.tid, i)
    return home


def _joined(events: Events, arrows: Flows) -> Int64:
    """Correlations: work at the head of a `HostToDevice` arrow has that of the call around its tail."""
    tails, heads = arrow_ends(arrows)
    calls = np.flatnonzero((events.kind == Kind.RUNTIME) & (events.correlation >= 0))
    work = np.flatnonzero((events.kind >= Kind.KERNEL) & (events.kind <= Kind.DEVICE_SPAN))
    call, target = _around(events, calls, arrows, tails), _around(events, work, arrows, heads)
    hit = (call >= 0) & (target >= 0)
    correlation: Int64 = events.correlation.copy()
    correlation[work[target[hit]]] = correlation[calls[call[hit]]]
    return correlation


def _around(events: Events, chosen: Int64, arrows: Flows, ends: Int64) -> Int64:
    """Which of the chosen events stands around each end of an arrow (indexes into `chosen`), -1 for none."""
    start, end = events.start_ns[chosen], events.end_ns[chosen]
    return innermost(arrows.ts_ns[ends], arrows.thread[ends], start, end, events.thread[chosen])

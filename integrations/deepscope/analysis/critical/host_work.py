"""What a CPU thread does while it is on the path: operators, other code, waiting for ranks (gloo, MPI) or a task."""

from __future__ import annotations

import numpy as np

from deepscope.analysis.array_ops.intervals import Intervals, union
from deepscope.analysis.array_ops.selection import Mask, named, of_kind
from deepscope.analysis.critical.timelines import ThreadTimeline
from deepscope.analysis.numbers.collective_calls import works_on_cpu
from deepscope.analysis.ownership.attribution import Attribution
from deepscope.analysis.ownership.calls import CPU_KINDS
from deepscope.trace.arrays import distinct_values
from deepscope.trace.communication import is_collective
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64
from deepscope.trace.names import ANNOUNCEMENT, is_communication_span

_LATE_NS, _LATE = 100_000, 0.5
"""Another thread may close a span so much, and this share of the time waited, after the thread that waited for it has
gone on: on a busy machine it is interrupted."""
_PAUSE_NS = 1_000_000
"""So long Python may take between two operators of a thread that records nothing else; what is longer is no work."""
_WRAPPERS = ("autograd::engine::", "torch::autograd::", "_c10d_functional", "DistributedDataParallel.", "FSDP")
"""Operators that run hooks, and so wait within themselves."""


class HostWork:
    """The intervals of each thread, made when it is first asked for."""

    def __init__(self, of: Attribution) -> None:
        trace, events = of.trace, of.trace.events
        on_cpu = of_kind(trace, Kind.OPERATOR)
        own_clock = named(trace, on_cpu | of_kind(trace, Kind.ANNOTATION), _is_span)
        rows = np.flatnonzero(own_clock)
        rows = rows[np.argsort(events.end_ns[rows], kind="stable")]
        self._span_start, self._span_end = events.start_ns[rows], events.end_ns[rows]
        computing: Mask = on_cpu & ~own_clock & ~named(trace, on_cpu, _waits)
        self._nodes = np.flatnonzero(computing)
        self._thread = events.thread[self._nodes]
        self._of = of
        self._operators: dict[int, Intervals] = {}
        self._waiting: dict[int, Intervals] = {}
        self._idle: dict[int, Intervals] = {}

    def operators(self, thread: int) -> Intervals:
        """When the thread runs operators, those excepted that exchange data with other ranks or run hooks."""
        if thread not in self._operators:
            events, own = self._of.trace.events, self._nodes[self._thread == thread]
            self._operators[thread] = union(events.start_ns[own], events.end_ns[own])
        return self._operators[thread]

    def waiting(self, thread: int, line: ThreadTimeline) -> Intervals:
        """When the thread waits for other ranks: between its operators, while it stays on one line, during the spans of
        backends that end in this time. A span that ends later was not waited for."""
        if thread not in self._waiting:
            self._waiting[thread] = self._waits(self.operators(thread), line)
        return self._waiting[thread]

    def idle(self, thread: int) -> Intervals:
        """When a thread of a pool has no task: for long nothing is open on it. The training thread, which may run
        Python that is not recorded, and autograd's, whose pauses are its own, never are."""
        if thread not in self._idle:
            self._idle[thread] = self._without_task(thread)
        return self._idle[thread]

    def _without_task(self, thread: int) -> Intervals:
        events = self._of.trace.events
        own = events.thread == thread
        if thread == self._of.training.thread or (self._of.calls.root[own] >= 0).any():
            none = np.zeros(0, np.int64)
            return Intervals(none, none)
        rows = np.flatnonzero(own & of_kind(self._of.trace, *CPU_KINDS))
        whole = Intervals(events.start_ns.min(keepdims=True), events.end_ns.max(keepdims=True))
        free = union(events.start_ns[rows], events.end_ns[rows]).complement(whole)
        long = free.end - free.start > _PAUSE_NS
        return Intervals(free.start[long], free.end[long])

    def _waits(self, operators: Intervals, line: ThreadTimeline) -> Intervals:
        none = np.zeros(0, np.int64)
        if not len(self._span_end):
            return Intervals(none, none)
        begin, end = _between(operators, line, int(self._span_start.min()), int(self._span_end.max()))
        first = np.searchsorted(self._span_end, begin, side="right")
        late = _LATE_NS + (_LATE * (end - begin)).astype(np.int64)
        last = np.searchsorted(self._span_end, end + late, side="right")
        count = last - first
        gap = np.repeat(np.arange(len(begin)), count)
        span = np.arange(len(gap)) - np.repeat(np.cumsum(count) - count, count) + first[gap]
        since = np.maximum(begin[gap], self._span_start[span])
        return union(since, np.minimum(end[gap], self._span_end[span]))


def _between(operators: Intervals, line: ThreadTimeline, low: int, high: int) -> tuple[Int64, Int64]:
    """The stretches on one line without an operator, as far as they lie between two instants."""
    inside = (line.end > low) & (line.start < high)
    busy = (operators.end > low) & (operators.start < high)
    op_start, op_end = operators.start[busy], operators.end[busy]
    cuts = np.concatenate((line.start[inside], line.end[inside], op_start, op_end, [low, high]))
    cuts = distinct_values(cuts[(cuts >= low) & (cuts <= high)])
    begin, end = cuts[:-1], cuts[1:]
    free = Intervals(op_start, op_end).locate(begin) < 0
    return begin[free], end[free]


def _is_span(name: str) -> bool:
    return is_communication_span(name) and works_on_cpu(name)


def _waits(name: str) -> bool:
    return name == ANNOUNCEMENT or name.startswith(_WRAPPERS) or is_collective(name)

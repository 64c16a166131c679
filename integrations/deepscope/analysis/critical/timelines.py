"""The line that each CPU thread was on, in touching stretches of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deepscope.analysis.array_ops.intervals import Intervals, union
from deepscope.analysis.array_ops.selection import Mask
from deepscope.analysis.numbers.phases import PhaseTimeline
from deepscope.analysis.ownership.attribution import Attribution
from deepscope.records import PHASES
from deepscope.trace.arrays import distinct_values, pick
from deepscope.trace.joins.nesting import innermost
from deepscope.trace.model import Int64


@dataclass(frozen=True, slots=True)
class ThreadTimeline:
    """What a thread was on, in touching stretches; arrays of shape (k,)."""

    start: Int64
    end: Int64
    location: Int64
    """The line, -1 for none."""
    loads: Mask
    """Whether the training thread loaded data."""

    def between(self, start: int, end: int) -> ThreadTimeline:
        """The stretches with a part between two instants."""
        low = int(np.searchsorted(self.end, start, side="right"))
        chosen = slice(low, max(low, int(np.searchsorted(self.start, end, side="left"))))
        return ThreadTimeline(self.start[chosen], self.end[chosen], self.location[chosen], self.loads[chosen])

    def on_lines_before(self, lines: Sequence[int]) -> Int64:
        """How long it was on each of some lines before each stretch and before the end; shape (lines, k + 1)."""
        length = self.end - self.start
        before = np.zeros((len(lines), len(length) + 1), np.int64)
        for row, line in zip(before, lines, strict=True):
            np.cumsum(np.where(self.location == line, length, 0), out=row[1:])
        return before


class Timelines:
    """The timelines of threads, each made when it is first asked for."""

    def __init__(self, of: Attribution, phases: PhaseTimeline) -> None:
        events, location = of.trace.events, of.owners.location
        nodes = of.calls.nested.events
        above = of.calls.parent[nodes]
        marks = nodes[location[nodes] != np.where(above < 0, -1, location[above])]
        self._marks = marks
        self._thread = events.thread[marks]
        self._of = of
        is_data = phases.phase == PHASES.index("data")
        self._data = union(phases.spans.start[is_data], phases.spans.end[is_data])
        self._made: dict[int, ThreadTimeline] = {}

    def of_thread(self, thread: int) -> ThreadTimeline:
        """The timeline of a thread; while a thread of the engine is on no line, that of the training thread's line."""
        if thread not in self._made:
            self._made[thread] = self._make(thread)
        return self._made[thread]

    def _make(self, thread: int) -> ThreadTimeline:
        of = self._of
        training = of.training.thread
        own = self._marks[self._thread == thread]
        is_engine = thread != training and bool((of.calls.root[of.trace.events.thread == thread] >= 0).any())
        trains = self.of_thread(training) if is_engine and training >= 0 else None
        events = of.trace.events
        start, end = events.start_ns[own], events.end_ns[own]
        cuts = [start, end]
        if trains is not None:
            cuts += [trains.start, trains.end]
        if thread == training:
            cuts += [self._data.start, self._data.end]
        begin = distinct_values(np.concatenate(cuts))
        zero = np.zeros(len(begin), np.int64)
        found = innermost(begin, zero, start, end, np.zeros(len(own), np.int64))
        location = pick(of.owners.location[own], found)
        if trains is not None and len(trains.start):
            place = Intervals(trains.start, trains.end).locate(begin)
            location = np.where(found < 0, pick(trains.location, place), location)
        loads = self._data.locate(begin) >= 0 if thread == training else np.zeros(len(begin), np.bool_)
        after = np.append(begin[1:], begin[-1:])
        return ThreadTimeline(begin, after, location, loads)

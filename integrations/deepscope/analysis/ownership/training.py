"""The thread that trains, its steps (`ProfilerStep#N`), the window that they span, and the threads of data loaders."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from deepscope.analysis.array_ops.intervals import Intervals, union
from deepscope.analysis.array_ops.selection import named, of_kind
from deepscope.analysis.ownership.calls import STEP, step_events
from deepscope.trace.arrays import nearest
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64, Trace
from deepscope.trace.names import is_backward_root, is_forked_function


@dataclass(frozen=True, slots=True)
class StepSpans:
    """Disjoint spans of time in ascending order."""

    number: Int64
    """Shape (s,)."""
    spans: Intervals
    """Shape (s,)."""

    def __len__(self) -> int:
        return len(self.number)

    def of(self, ts: Int64) -> Int64:
        """Index of the step that each instant lies in, -1 for none; shape (q,)."""
        return self.spans.locate(ts)

    def chosen(self, number: int) -> Intervals:
        """The spans of the step of this number; empty where there is none."""
        hit = self.number == number
        return Intervals(self.spans.start[hit], self.spans.end[hit])


@dataclass(frozen=True, slots=True)
class Training:
    """Where and when a trace trains."""

    thread: int
    """Index into `Trace.threads`; -1 for none."""
    steps: StepSpans
    window: Intervals
    """The stretch of time that idle time and wall time refer to: the steps; without steps, first to last event."""


def find_training(trace: Trace, parent: Int64, launched_by: Int64) -> Training:
    """The training thread with its steps.

    `parent` is the event that encloses each one on its thread, shape (n,); `launched_by` are the CPU events that
    launched device work, shape (w,); -1 for none.
    """
    thread = _training_thread(trace, parent, launched_by)
    steps = _find_steps(trace, thread)
    return Training(thread, steps, _window(trace, steps))


def _find_steps(trace: Trace, training_thread: int) -> StepSpans:
    """The steps on the training thread. If two overlap, the earlier one ends where the later begins."""
    events = trace.events
    found = np.flatnonzero(step_events(trace) & (events.thread == training_thread))
    found = found[np.argsort(events.start_ns[found], kind="stable")]
    start = events.start_ns[found]
    end = start + events.duration_ns[found]
    if len(found) > 1:
        end = np.concatenate((np.minimum(end[:-1], start[1:]), end[-1:]))
    real = end > start
    numbers = [STEP.match(trace.strings[name]) for name in events.name[found[real]].tolist()]
    number = np.array([int(match[1]) for match in numbers if match], np.int64)
    return StepSpans(number, Intervals(start[real], end[real]))


def _window(trace: Trace, steps: StepSpans) -> Intervals:
    if len(steps):
        return union(steps.spans.start, steps.spans.end)
    counted = ~of_kind(trace, Kind.OTHER, Kind.DEVICE_SPAN)
    if not counted.any():
        return union(np.zeros(0, np.int64), np.zeros(0, np.int64))
    start, end = trace.events.start_ns[counted], trace.events.end_ns[counted]
    return union(start.min(keepdims=True), end.max(keepdims=True))


def _training_thread(trace: Trace, parent: Int64, launched_by: Int64) -> int:
    """The thread with the steps, else the one with most launches.

    Launches below autograd's engine or in forked functions of TorchScript do not count. Without launches it is the
    thread with most line scopes, else with most operators; with nothing on the CPU there is none, -1.
    """
    thread = trace.events.thread
    elsewhere = named(
        trace, of_kind(trace, Kind.OPERATOR), lambda name: is_backward_root(name) or is_forked_function(name)
    )
    engine = nearest(parent, elsewhere) >= 0
    launching = launched_by[launched_by >= 0]
    candidates = (
        np.flatnonzero(step_events(trace)),
        launching[~engine[launching]],
        np.flatnonzero(trace.user_lines & ~engine),
        launching,
        np.flatnonzero(of_kind(trace, Kind.OPERATOR) & ~engine),
        np.flatnonzero(of_kind(trace, Kind.ANNOTATION, Kind.PYTHON_FUNCTION, Kind.RUNTIME)),
    )
    for events in candidates:
        if len(events):
            return int(np.bincount(thread[events]).argmax())
    return -1


HAS_WORKERS = re.compile(r"^enumerate\(DataLoader\)#.*MultiProcessing")
HAS_NO_WORKERS = re.compile(r"^enumerate\(DataLoader\)#.*SingleProcess")
"""How torch's loaders name the span around each batch, and those derived from them (torchdata's)."""


@dataclass(frozen=True, slots=True)
class WorkerTime:
    """What one worker spent on one line, over the whole window."""

    file: str
    line: int
    function: str
    self_ns: int
    cpu_ns: int
    """The part of it on the CPU; 0 in traces that do not know it."""


def worker_lines(trace: Trace) -> list[WorkerTime]:
    """The lines of all workers, not yet summed by line; those of files that the trace does not name are left out."""
    header = trace.header
    return [
        WorkerTime(path, line.line, line.function, line.self_ns, min(line.cpu_ns, line.self_ns))
        for worker in header.workers
        for line in worker.lines
        if (path := header.path_of(line.file))
    ]


def worker_count(trace: Trace) -> int:
    """How many workers the loader has, the largest where there are several; 0 where the trace does not know."""
    return max((worker.num_workers for worker in trace.header.workers), default=0)

"""Phases of training, a partition of the training thread's time: data loading, forward, backward, optimizer, other."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from deepscope.analysis.array_ops.intervals import NO_INTERVALS, Extent, Intervals, union
from deepscope.analysis.array_ops.selection import distinct, named, of_kind, sums
from deepscope.analysis.numbers.work import HostTimeline, idle
from deepscope.analysis.ownership.attribution import OwnedWork
from deepscope.analysis.ownership.calls import CallForest
from deepscope.analysis.ownership.modules import ModuleScopes
from deepscope.analysis.ownership.owners import LineRuns, Operators
from deepscope.analysis.ownership.training import StepSpans, Training
from deepscope.records import PHASES
from deepscope.trace.arrays import distinct_places, distinct_values, pick, position_in
from deepscope.trace.joins.nesting import innermost, open_around
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Events, Int64, Trace

_DATA, _FORWARD, _BACKWARD, _OPTIMIZER, _OTHER = range(5)

# torch's own annotations, and the actions of Lightning's profilers as its PyTorchProfiler writes them.
_NAMES = (
    (
        _DATA,
        re.compile(
            r"^enumerate\(DataLoader\)#|dataloader_next$|[.\]](?:train|val|test|predict|sanity_check)_next$|batch_to_device$"
        ),
    ),
    (_OPTIMIZER, re.compile(r"^Optimizer\.(?:step|zero_grad)#|optimizer_(?:step|zero_grad)$")),
    (_BACKWARD, re.compile(r"\.backward$|^backward$")),
    (_FORWARD, re.compile(r"DataParallel\.forward$|[.\]](?:training|validation|test|predict)_step$|^forward$")),
)


def phase_of_name(name: str) -> int | None:
    """The phase (index into `PHASES`) that an annotation marks by its name; None for none."""
    return next((phase for phase, pattern in _NAMES if pattern.search(name)), None)


@dataclass(frozen=True, slots=True)
class PhaseTimeline:
    """The phase of the training thread in touching stretches that fill the window; arrays of shape (k,)."""

    spans: Intervals
    phase: Int64
    """Index into `PHASES`."""

    def at(self, ts: Int64) -> Int64:
        """The phase at each instant, "other" outside the window; shape (q,)."""
        if not len(self.phase):
            return np.full(len(ts), _OTHER, np.int64)
        found = self.spans.locate(ts)
        return np.where(found < 0, _OTHER, self.phase[found])

    def spans_of(self, name: str) -> Intervals:
        """The stretches in a phase (of `PHASES`); touching ones are one."""
        chosen = self.phase == PHASES.index(name)
        return union(self.spans.start[chosen], self.spans.end[chosen])

    def wall_ns(self, within: Intervals) -> Int64:
        """Time in each phase within some spans; shape (5,)."""
        return sums(self.phase, len(PHASES), within.overlap_ns(self.spans.start, self.spans.end))

    def calls(self, extent: Extent) -> Int64:
        """How often each phase was entered; shape (5,)."""
        entered = np.append(True, self.phase[1:] != self.phase[:-1])[: len(self.phase)]
        counted = entered & extent.holds(self.spans.start)
        return np.bincount(self.phase[counted], minlength=len(PHASES)).astype(np.int64)


def find_phases(
    trace: Trace, calls: CallForest, operators: Operators, modules: ModuleScopes, training: Training
) -> PhaseTimeline:
    """The phases of a trace; the innermost span that marks one decides."""
    start, end, phase = _spans(trace, calls, operators, modules, training)
    pieces = training.window.cut(np.concatenate((start, end, training.steps.spans.start)))
    zero = np.zeros(len(pieces.start), np.int64)
    found = innermost(pieces.start, zero, start, end, np.zeros(len(start), np.int64))
    return PhaseTimeline(pieces, np.where(found < 0, _OTHER, pick(phase, found)))


def phase_of_work(work: OwnedWork, timeline: PhaseTimeline) -> Int64:
    """The phase of each launch, by autograd's engine or by the clock of the training thread; shape (w,)."""
    return np.where(work.backward, _BACKWARD, timeline.at(work.launch_ns))


def _spans(
    trace: Trace, calls: CallForest, operators: Operators, modules: ModuleScopes, training: Training
) -> tuple[Int64, Int64, Int64]:
    """Start, end and phase of every span of the training thread that marks a phase."""
    events = trace.events
    found, phase = _annotated(trace, calls, modules, training.thread)
    start, end = events.start_ns[found], events.end_ns[found]
    ahead = _forward_operators(events, calls, operators, training.thread)
    backward = _backward_spans(events, calls, ahead)
    if not (phase == _FORWARD).any():
        # Gradients may be zeroed between the loss and `backward()`: that parts nothing.
        parts = ~named(trace, events.name >= 0, lambda name: "zero_grad" in name)[found]
        forward = _forward_spans(events, ahead, np.concatenate((end[parts], backward.end)), backward, training)
    else:
        forward = NO_INTERVALS
    extra = np.repeat([_BACKWARD, _FORWARD], [len(backward.start), len(forward.start)])
    return (
        np.concatenate((start, backward.start, forward.start)),
        np.concatenate((end, backward.end, forward.end)),
        np.concatenate((phase, extra)),
    )


def _annotated(trace: Trace, calls: CallForest, modules: ModuleScopes, training_thread: int) -> tuple[Int64, Int64]:
    """Events of the training thread that mark a phase (indexes), and which: annotations and outermost module calls."""
    here = trace.events.thread == training_thread
    own = trace.header.phases
    phase = np.full(len(trace.strings) + 1, -1, np.int64)
    annotations = here & of_kind(trace, Kind.ANNOTATION)
    for name in distinct(trace.events.name[annotations], len(trace.strings)):
        text = trace.strings[name]
        known = PHASES.index(own[text]) if own.get(text) in PHASES else phase_of_name(text)
        phase[name] = -1 if known is None else known
    by_event = np.where(annotations, phase[trace.events.name], -1)
    outer = modules.nodes[modules.callers_on_thread < 0]
    outer = outer[here[outer] & ~calls.backward[outer] & (trace.events.kind[outer] != Kind.ANNOTATION)]
    if len(outer):
        marked = np.flatnonzero(by_event >= 0)
        enclosing = pick(by_event[marked], open_around(trace.events, outer, marked))
        by_event[outer[enclosing != _DATA]] = _FORWARD
    found = np.flatnonzero(by_event >= 0)
    return found, by_event[found]


def _forward_operators(events: Events, calls: CallForest, operators: Operators, training_thread: int) -> Int64:
    """Outermost operators of the training thread that autograd's engine did not start (indexes in order of time)."""
    found = operators.nodes[operators.caller < 0]
    found = found[(events.thread[found] == training_thread) & ~calls.backward[found]]
    return np.asarray(found[np.argsort(events.start_ns[found], kind="stable")])


def _backward_spans(events: Events, calls: CallForest, forward_operators: Int64) -> Intervals:
    """One span for each run of autograd's engine: what it did, on any thread, between two forward operators."""
    roots = np.flatnonzero(calls.root == np.arange(len(events)))
    if not len(roots):
        return Intervals(roots, roots)
    run = np.searchsorted(events.start_ns[forward_operators], events.start_ns[roots])
    _, group = distinct_places(run)
    start = np.full(group.max() + 1, np.iinfo(np.int64).max)
    end = np.full(group.max() + 1, np.iinfo(np.int64).min)
    np.minimum.at(start, group, events.start_ns[roots])
    np.maximum.at(end, group, events.end_ns[roots])
    return Intervals(start, end)


def _forward_spans(
    events: Events, forward_operators: Int64, ends: Int64, backward: Intervals, training: Training
) -> Intervals:
    """The forward passes where nothing marks them: from the first differentiable operator to the backward pass.

    Args:
        events: of the trace.
        forward_operators: outermost ones of the training thread, in order of time.
        ends: ends of all other phases.
        backward: the runs of autograd's engine.
        training: of the trace.
    """
    begins = events.start_ns[forward_operators[events.sequence[forward_operators] >= 0]]
    ends = np.sort(np.concatenate((ends, training.steps.spans.start)))
    before = np.searchsorted(ends, backward.start, side="right") - 1
    boundary = np.where(before < 0, training.window.start.min(initial=0), pick(ends, before))
    first = np.searchsorted(begins, boundary)
    start = np.where(first < len(begins), pick(begins, np.minimum(first, len(begins) - 1)), backward.start)
    real = start < backward.start
    return Intervals(start[real], backward.start[real])


class LineStepTimes(NamedTuple):
    """Times, each of a line in a step; arrays of one shape. Lines and steps may come again."""

    location: Int64
    """Index of the line, -1 for none."""
    step: Int64
    duration_ns: Int64


def idle_by_step(work: OwnedWork, line: HostTimeline, steps: StepSpans, within: Intervals) -> LineStepTimes:
    """Idle time of all devices by the line and the step that it fell into; `line` is the timeline of `within`."""
    cuts = np.concatenate((line.start, line.end, steps.spans.start, steps.spans.end))
    cuts = distinct_values(cuts)
    begin, after = cuts[:-1], cuts[1:]
    step = steps.of(begin)
    place = np.searchsorted(line.start, begin, side="right") - 1
    inside = (step >= 0) & (place >= 0)
    begin, after, step, place = begin[inside], after[inside], step[inside], place[inside]
    duration = np.zeros(len(begin), np.int64)
    for gap in idle(work, within):
        duration += gap.overlap_ns(begin, after)
    return LineStepTimes(line.location[place], step, duration)


def python_by_step(events: Events, runs: LineRuns, python_ns: Int64, steps: StepSpans) -> LineStepTimes:
    """Python's time by the line and the step of each run.

    That of a run that is not within one step is divided by its time in each of them that it spent in no other line.

    Args:
        events: of the trace.
        runs: of lines, k of them.
        python_ns: of each run; shape (k,).
        steps: of the trace.
    """
    start, end = events.start_ns[runs.nodes], events.end_ns[runs.nodes]
    step = steps.of(start)
    is_within = (step >= 0) & (end <= pick(steps.spans.end, step))
    divided = np.flatnonzero(~is_within & (python_ns > 0) & (steps.spans.overlap_ns(start, end) > 0))
    whole = np.flatnonzero(is_within)
    shares = LineStepTimes(runs.location[whole], step[whole], python_ns[whole])
    if not len(divided):
        return shares
    own = _overlaps(start[divided], end[divided], steps.spans)
    called_by = position_in(divided, runs.caller, len(runs.nodes))
    inner = np.flatnonzero((called_by >= 0) & is_within)
    np.subtract.at(own, (called_by[inner], step[inner]), end[inner] - start[inner])
    outer = np.flatnonzero((called_by >= 0) & ~is_within)
    np.subtract.at(own, called_by[outer], _overlaps(start[outer], end[outer], steps.spans))
    own = np.maximum(own, 0)
    lasted = np.maximum(end[divided] - start[divided], 1)
    of_others = np.bincount(called_by[called_by >= 0], (end - start)[called_by >= 0], len(divided)).astype(np.int64)
    free = np.maximum(np.maximum(lasted - of_others, own.sum(axis=1)), 1)
    part = (python_ns[divided, None] * (own / free[:, None])).astype(np.int64)
    row, column = np.nonzero(part)
    return LineStepTimes(
        np.concatenate((shares.location, runs.location[divided][row])),
        np.concatenate((shares.step, column)),
        np.concatenate((shares.duration_ns, part[row, column])),
    )


def _overlaps(start: Int64, end: Int64, spans: Intervals) -> Int64:
    """How much of each interval lies in each span; shape (intervals, spans)."""
    first, last = np.maximum(start[:, None], spans.start), np.minimum(end[:, None], spans.end)
    overlap: Int64 = np.maximum(last - first, 0)
    return overlap

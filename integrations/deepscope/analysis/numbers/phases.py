"""Phases of training, a partition of the training thread's time: data loading, forward, backward, optimizer, other."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from deepscope.analysis.algebra.ancestry import pick
from deepscope.analysis.algebra.intervals import Intervals
from deepscope.analysis.algebra.selection import distinct, named, of_kind
from deepscope.analysis.extent import WHOLE, Extent
from deepscope.analysis.ownership.attribution import Attribution
from deepscope.analysis.ownership.modules import ModuleScopes
from deepscope.trace.arrays import distinct_places, distinct_values
from deepscope.trace.joins.nesting import innermost
from deepscope.trace.model import Int64, Kind

__all__ = ["PHASES", "PhaseTimeline", "find_phases", "phase_of_name", "phase_of_work"]

PHASES = ("data", "forward", "backward", "optimizer", "other")
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
    """Index into `PHASES` of what an annotation marks by its name alone."""
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

    def wall_ns(self, within: Intervals) -> Int64:
        """Time in each phase within some spans; shape (5,)."""
        result = np.zeros(len(PHASES), np.int64)
        np.add.at(result, self.phase, within.overlap_ns(self.spans.start, self.spans.end))
        return result

    def calls(self, extent: Extent = WHOLE) -> Int64:
        """How often each phase was entered; shape (5,)."""
        entered = np.append(True, self.phase[1:] != self.phase[:-1])[: len(self.phase)]
        counted = entered & extent.holds(self.spans.start)
        return np.bincount(self.phase[counted], minlength=len(PHASES)).astype(np.int64)


def find_phases(attribution: Attribution, modules: ModuleScopes) -> PhaseTimeline:
    """The phases of a trace, the innermost span that marks one deciding."""
    start, end, phase = _spans(attribution, modules)
    window = attribution.window
    cuts = distinct_values(np.concatenate((start, end, window.start, window.end, attribution.steps.spans.start)))
    inside = window.locate(cuts) >= 0
    begin = cuts[inside]
    after = np.append(cuts[1:], cuts[-1:])[inside]
    zero = np.zeros(len(begin), np.int64)
    found = innermost(begin, zero, start, end, np.zeros(len(start), np.int64))
    return PhaseTimeline(Intervals(begin, after), np.where(found < 0, _OTHER, pick(phase, found)))


def phase_of_work(attribution: Attribution, timeline: PhaseTimeline) -> Int64:
    """The phase of each launch, by autograd's engine or by the clock of the training thread; shape (w,)."""
    return np.where(attribution.work_backward, _BACKWARD, timeline.at(attribution.work.launch_ns))


def _spans(attribution: Attribution, modules: ModuleScopes) -> tuple[Int64, Int64, Int64]:
    """Start, end and phase of every span of the training thread that marks a phase."""
    events = attribution.trace.events
    found, phase = _annotated(attribution, modules)
    start, end = events.start_ns[found], events.end_ns[found]
    backward = _backward_spans(attribution)
    if not (phase == _FORWARD).any():
        # Gradients may be zeroed between the loss and `backward()`: that parts nothing.
        parts = ~named(attribution.trace, events.name >= 0, lambda name: "zero_grad" in name)[found]
        forward = _forward_spans(attribution, np.concatenate((end[parts], backward.end)), backward)
    else:
        forward = Intervals(np.zeros(0, np.int64), np.zeros(0, np.int64))
    extra = np.repeat([_BACKWARD, _FORWARD], [len(backward.start), len(forward.start)])
    return (
        np.concatenate((start, backward.start, forward.start)),
        np.concatenate((end, backward.end, forward.end)),
        np.concatenate((phase, extra)),
    )


def _annotated(attribution: Attribution, modules: ModuleScopes) -> tuple[Int64, Int64]:
    """Events of the training thread that mark a phase (indexes), and which: annotations and outermost module calls."""
    trace = attribution.trace
    here = trace.events.thread == attribution.training_thread
    own = trace.header.phases
    phase = np.full(len(trace.strings) + 1, -1, np.int64)
    annotations = here & of_kind(trace, Kind.ANNOTATION)
    for name in distinct(trace.events.name[annotations], len(trace.strings)):
        text = trace.strings[name]
        known = PHASES.index(own[text]) if own.get(text) in PHASES else phase_of_name(text)
        phase[name] = -1 if known is None else known
    by_event = np.where(annotations, phase[trace.events.name], -1)
    outer = modules.nodes[modules.callers_on_thread < 0]
    outer = outer[here[outer] & (attribution.calls.root[outer] < 0) & (trace.events.kind[outer] != Kind.ANNOTATION)]
    if len(outer):
        marked = np.flatnonzero(by_event >= 0)
        thread, start = trace.events.thread, trace.events.start_ns
        around = innermost(start[outer], thread[outer], start[marked], trace.events.end_ns[marked], thread[marked])
        enclosing = pick(by_event[marked], around)
        by_event[outer[enclosing != _DATA]] = _FORWARD
    found = np.flatnonzero(by_event >= 0)
    return found, by_event[found]


def _forward_operators(attribution: Attribution) -> Int64:
    """Outermost operators of the training thread that autograd's engine did not start (indexes in order of time)."""
    events, operators = attribution.trace.events, attribution.operators
    found = operators.nodes[operators.caller < 0]
    found = found[(events.thread[found] == attribution.training_thread) & (attribution.calls.root[found] < 0)]
    return np.asarray(found[np.argsort(events.start_ns[found], kind="stable")])


def _backward_spans(attribution: Attribution) -> Intervals:
    """One span for each run of autograd's engine: what it did, on any thread, between two forward operators."""
    events = attribution.trace.events
    roots = np.flatnonzero(attribution.calls.root == np.arange(len(events)))
    if not len(roots):
        return Intervals(roots, roots)
    run = np.searchsorted(events.start_ns[_forward_operators(attribution)], events.start_ns[roots])
    _, group = distinct_places(run)
    start = np.full(group.max() + 1, np.iinfo(np.int64).max)
    end = np.full(group.max() + 1, np.iinfo(np.int64).min)
    np.minimum.at(start, group, events.start_ns[roots])
    np.maximum.at(end, group, events.end_ns[roots])
    return Intervals(start, end)


def _forward_spans(attribution: Attribution, ends: Int64, backward: Intervals) -> Intervals:
    """Where nothing marks the forward pass: from the first differentiable operator after another phase to the backward.

    Args:
        attribution: of the trace.
        ends: ends of all other phases.
        backward: the runs of autograd's engine.
    """
    events = attribution.trace.events
    operators = _forward_operators(attribution)
    begins = events.start_ns[operators[events.sequence[operators] >= 0]]
    ends = np.sort(np.concatenate((ends, attribution.steps.spans.start)))
    before = np.searchsorted(ends, backward.start, side="right") - 1
    boundary = np.where(before < 0, attribution.window.start.min(initial=0), pick(ends, before))
    first = np.searchsorted(begins, boundary)
    start = np.where(first < len(begins), pick(begins, np.minimum(first, len(begins) - 1)), backward.start)
    real = start < backward.start
    return Intervals(start[real], backward.start[real])

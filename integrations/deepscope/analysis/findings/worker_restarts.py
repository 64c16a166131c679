"""Workers of data loaders that are started anew for each epoch (DS021)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from deepscope.analysis.array_ops.intervals import NO_INTERVALS, Intervals
from deepscope.analysis.array_ops.selection import named, of_kind
from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.library_options import framework_option, keeps_workers
from deepscope.analysis.findings.rule import Rule
from deepscope.analysis.ownership.training import HAS_WORKERS
from deepscope.records import Finding
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64

WORKER_RESTARTS_WORTH = 0.02
"""It is named if it would save at least this share of the wall time."""
SHORTEST_NS = 1_000_000
"""Starting a process takes at least this."""
_SEEDS = "aten::random_".__eq__
SEEDS = 8
"""Between the first seed and the first batch an iterator starts at most so many operators: for its seed and its
sampler's."""


@dataclass(frozen=True, slots=True)
class _Restarts:
    """Starts of workers that some had run before, each array of shape (k,)."""

    starting: Intervals
    """From the loader's seed to the request for the first batch."""
    longer_ns: Int64
    """How much longer than usual the request before (which ends the old workers) and the first one take."""


def restarts(facts: Facts) -> Intervals:
    """When the training thread was starting workers anew, if that is found."""
    return facts.once(_found).starting if WORKER_RESTARTS.found(facts) else NO_INTERVALS


def waited_longer_ns(facts: Facts) -> int:
    """How much longer batches took for it, in a trace of the CPU alone, if that is found."""
    return int(facts.once(_found).longer_ns.sum()) if WORKER_RESTARTS.found(facts) and not facts.has_device else 0


def _found(facts: Facts) -> _Restarts:
    """A loader draws a seed as an iterator begins (torch/utils/data/dataloader.py), then makes its workers."""
    trace, events = facts.trace, facts.trace.events
    thread = events.thread == facts.attribution.training.thread
    spans = np.flatnonzero(named(trace, of_kind(trace, Kind.ANNOTATION, Kind.OPERATOR) & thread, HAS_WORKERS.search))
    spans = spans[np.argsort(events.start_ns[spans], kind="stable")]
    drawn = begun_anew(facts, spans, had_before=True)
    start, length = events.start_ns[spans], events.duration_ns[spans]
    anew = (drawn >= 0) & (start - drawn >= SHORTEST_NS)
    anew &= (facts.analysis.window.locate(drawn) >= 0) & facts.analysis.extent.holds(drawn)
    more = np.maximum(length - int(np.median(length)), 0) if len(length) else length
    before = np.append(np.zeros(1, np.int64), more)[:-1]
    return _Restarts(Intervals(drawn[anew], start[anew]), (before + more)[anew])


def begun_anew(facts: Facts, spans: Int64, *, had_before: bool = False) -> Int64:
    """When the iterator of each request was begun (ns), -1 where it is that of the one before; shape (k,).

    Args:
        facts: of the analysis.
        spans: requests for batches (events) of the training thread, by time.
        had_before: the first one counts, too, in a window with steps before it; else it is -1.
    """
    trace, events, attribution = facts.trace, facts.trace.events, facts.attribution
    thread = events.thread == attribution.training.thread
    seed = np.sort(events.start_ns[np.flatnonzero(named(trace, of_kind(trace, Kind.OPERATOR) & thread, _SEEDS))])
    if not len(seed) or not len(spans):
        return np.full(len(spans), -1, np.int64)
    steps = attribution.training.steps
    counts = had_before and len(steps) > 0 and steps.number[0] > 0
    since = steps.spans.start[:1] if counts else events.end_ns[spans[:1]]
    start, end = events.start_ns[spans], np.concatenate((since, events.end_ns[spans[:-1]]))
    first = np.searchsorted(seed, end)
    drawn = seed[np.minimum(first, len(seed) - 1)]
    outer = attribution.operators.nodes[attribution.operators.caller < 0]
    outer = np.sort(events.start_ns[outer[thread[outer]]])
    few = np.searchsorted(outer, start) - np.searchsorted(outer, drawn) <= SEEDS
    return np.where((first < len(seed)) & (drawn < start) & few, drawn, -1)


def _find_worker_restarts(facts: Facts) -> Iterator[Finding]:
    if keeps_workers(facts.trace):
        return
    found = facts.once(_found)
    starting = found.starting
    if not len(starting.start):
        return
    if facts.has_device:
        by_line = sum((facts.by_line_of_cpu(one.intersection(starting)) for one in facts.gaps.rest), _nothing(facts))
        saving = int(by_line.sum()) // facts.devices
    else:
        by_line = facts.by_line_of_cpu(starting)
        saving = int(by_line.sum()) + int(found.longer_ns.sum())
    if saving < max(WORKER_RESTARTS_WORTH * facts.wall_ns, 1):
        return
    yield WORKER_RESTARTS.finding(
        facts,
        location=int(by_line[:-1].argmax()) if by_line[:-1].any() else -1,
        message="the data loader starts its worker processes anew for each epoch",
        evidence={
            "restarts": len(starting.start),
            "starting_ns": starting.total_ns,
            "batches_longer_ns": int(found.longer_ns.sum()),
        },
        saving_ns=saving,
        remedy="Keep them: `DataLoader(…, persistent_workers=True)`." + framework_option(facts, WORKER_RESTARTS.code),
    )


def _nothing(facts: Facts) -> Int64:
    return np.zeros(facts.lines + 1, np.int64)


WORKER_RESTARTS = Rule("DS021", "Loader workers started anew", _find_worker_restarts, measured_on=("cpu",))

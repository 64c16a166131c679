"""Collectives of a trace, one row each: of a device its kernels, else what gloo runs on threads of its own."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from deepscope.analysis.array_ops.intervals import Intervals, covered_by
from deepscope.analysis.array_ops.selection import Mask, distinct, named, of_kind
from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.tables.messages import kind_of_collective
from deepscope.trace.arrays import distinct_values, nearest_to, pick
from deepscope.trace.communication import is_collective
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64, Trace


class CollectiveKind(IntEnum):
    """What a collective does."""

    OTHER = 0
    ALL_REDUCE = 1
    REDUCE_SCATTER = 2
    ALL_GATHER = 3
    ALL_TO_ALL = 4


_OPERATIONS = {
    "all_reduce": CollectiveKind.ALL_REDUCE,
    "reduce_scatter": CollectiveKind.REDUCE_SCATTER,
    "all_gather": CollectiveKind.ALL_GATHER,
    "all_to_all": CollectiveKind.ALL_TO_ALL,
    "send_recv": CollectiveKind.ALL_TO_ALL,
}
"""By torch's word; NCCL moves an all-to-all by kernels that send and receive."""


def operation_of(name: str) -> CollectiveKind:
    """What a collective of this name does."""
    return _OPERATIONS.get(kind_of_collective(name), CollectiveKind.OTHER)


@dataclass(frozen=True, slots=True)
class Collectives:
    """Collectives that were started within the extent, in the order of their starts; arrays of shape (k,)."""

    start: Int64
    end: Int64
    exposed_ns: Int64
    """How long nothing is computed meanwhile on the same device (or, without devices, in the process); of what runs at
    the same time the one that started first has it."""
    launch_ns: Int64
    """When the CPU started it."""
    location: Int64
    """The line that started it, -1 for none."""
    operation: Int64
    """An `CollectiveKind`."""
    backward: Mask
    """Whether it was started below autograd's engine."""

    def __len__(self) -> int:
        return len(self.start)

    def choose(self, rows: Mask) -> Collectives:
        """The collectives of some rows."""
        return Collectives(
            self.start[rows],
            self.end[rows],
            self.exposed_ns[rows],
            self.launch_ns[rows],
            self.location[rows],
            self.operation[rows],
            self.backward[rows],
        )


def collectives(facts: Facts) -> Collectives:
    """The collectives of the extent."""
    return facts.once(_of_devices if facts.has_device else _of_gloo)


def _of_devices(facts: Facts) -> Collectives:
    work, trace = facts.work, facts.trace
    rows = np.flatnonzero(facts.analysis.counted & work.collective & work.counts)
    rows = rows[np.argsort(work.start_ns[rows], kind="stable")]
    start, end = work.start_ns[rows], work.end_ns[rows]
    exposed = np.zeros(len(rows), np.int64)
    for device in distinct_values(work.device[rows]).tolist():
        others = (work.device == device) & ~work.collective & (work.kind == Kind.KERNEL)
        here = work.device[rows] == device
        exposed[here] = _exposed_ns(start[here], end[here], covered_by(work, others))
    return Collectives(
        start=start,
        end=end,
        exposed_ns=exposed,
        launch_ns=work.launch_ns[rows],
        location=work.location[rows],
        operation=_operations(trace, work.event[rows], _callers(facts, work.node[rows])),
        backward=work.backward[rows],
    )


def _of_gloo(facts: Facts) -> Collectives:
    trace, attribution, events = facts.trace, facts.attribution, facts.trace.events
    spans = named(trace, of_kind(trace, Kind.ANNOTATION), lambda name: name.startswith("gloo:"))
    rows = np.flatnonzero(spans & (events.thread != attribution.training.thread))
    rows = rows[np.argsort(events.start_ns[rows], kind="stable")]
    caller = _started_by(facts, rows)
    launch = np.where(caller >= 0, events.start_ns[caller], events.start_ns[rows])
    keep = facts.analysis.extent.holds(launch)
    rows, caller, launch = rows[keep], caller[keep], launch[keep]
    operators = attribution.operators
    outer = operators.nodes[operators.caller < 0]
    outer = outer[~named(trace, of_kind(trace, Kind.OPERATOR), is_collective)[outer]]
    start, end = events.start_ns[rows], events.end_ns[rows]
    return Collectives(
        start=start,
        end=end,
        exposed_ns=_exposed_ns(start, end, covered_by(events, outer)),
        launch_ns=launch,
        location=pick(attribution.owners.location, caller),
        operation=_operations(trace, rows, caller),
        backward=(caller >= 0) & attribution.calls.backward[caller],
    )


def _exposed_ns(start: Int64, end: Int64, computing: Intervals) -> Int64:
    """How much of each collective, in the order of starts, lies beside no computation and no earlier collective."""
    reach = np.maximum.accumulate(np.append(np.iinfo(np.int64).min, end))[:-1]
    begin = np.minimum(np.maximum(start, reach), end)
    return np.asarray(end - begin - computing.overlap_ns(begin, end))


def _callers(facts: Facts, nodes: Int64) -> Int64:
    """The operator or annotation around each launch that names a collective (`c10d::allreduce_`), -1 for none."""
    trace = facts.trace
    telling = named(trace, of_kind(trace, Kind.OPERATOR, Kind.ANNOTATION), lambda name: operation_of(name) > 0)
    return nearest_to(nodes, facts.attribution.calls.parent, telling)


def _started_by(facts: Facts, spans: Int64) -> Int64:
    """The operator (`c10d::allreduce_`) that started each of gloo's spans, -1 where it is not in the trace.

    gloo takes them from a queue: the n-th of a kind to start was the n-th to be asked for. A trace may begin between.
    """
    trace, events = facts.trace, facts.trace.events
    asked = np.flatnonzero(named(trace, of_kind(trace, Kind.OPERATOR), lambda name: name.startswith("c10d::")))
    asked = asked[np.argsort(events.start_ns[asked], kind="stable")]
    nobody = np.full(len(asked), -1, np.int64)
    of_span, of_asked = _operations(trace, spans, np.full(len(spans), -1, np.int64)), _operations(trace, asked, nobody)
    result = np.full(len(spans), -1, np.int64)
    for kind in distinct_values(of_span).tolist():
        mine, candidates = np.flatnonzero(of_span == kind), asked[of_asked == kind]
        if not len(candidates):
            continue
        before = np.searchsorted(events.start_ns[candidates], events.start_ns[spans[mine]], side="right")
        late = int(np.maximum(np.arange(1, len(mine) + 1) - before, 0).max())
        place = np.arange(len(mine)) - late
        known = (place >= 0) & (place < len(candidates))
        result[mine[known]] = candidates[place[known]]
    return result


def _operations(trace: Trace, events: Int64, callers: Int64) -> Int64:
    """What each collective does, by its own name or by that of its caller (-1 for none); shape of `events`."""
    table = np.zeros(len(trace.strings) + 1, np.int64)
    names = trace.events.name[events]
    named_by = np.where(callers >= 0, trace.events.name[callers], -1)
    for name in distinct(np.concatenate((names, named_by)), len(trace.strings)):
        table[name] = operation_of(trace.strings[name])
    return np.where(table[named_by] > 0, table[named_by], table[names])


def share_of_wall(facts: Facts, spent_ns: Int64) -> Int64:
    """What some work on the devices takes of the wall time, in ns; shape of `spent_ns`.

    With several devices it is divided by their number. Where the devices are behind the CPU, their work outlasts the
    window: then the wall time is all theirs, and each piece has its share of it.
    """
    if not facts.has_device:
        return spent_ns
    whole = int(facts.work.duration_ns[facts.analysis.counted].sum())
    part = min(1.0, facts.wall_ns * facts.devices / max(whole, 1))
    return np.asarray((spent_ns * part).astype(np.int64) // facts.devices)

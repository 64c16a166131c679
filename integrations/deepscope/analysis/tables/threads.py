"""The tables of threads and of streams."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import NamedTuple, get_args

import numpy as np

from deepscope.analysis.analysis import Analysis
from deepscope.analysis.array_ops.intervals import covered_by, union_of
from deepscope.analysis.array_ops.selection import Mask, mask_of, named, of_kind, sums
from deepscope.analysis.ownership.attribution import OwnedWork
from deepscope.analysis.ownership.calls import CPU_KINDS, step_events
from deepscope.records import HostThread, Stream, ThreadRole
from deepscope.trace.arrays import distinct_places, distinct_values
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Events, Int64
from deepscope.trace.names import is_backward_root


def thread_table(analysis: Analysis) -> list[HostThread]:
    """The threads with events within the extent: the training thread, autograd's, the others, each by their start."""
    attribution, extent = analysis.attribution, analysis.extent
    trace, work = attribution.trace, attribution.work
    events = trace.events
    on_cpu = of_kind(trace, *CPU_KINDS) & ~step_events(trace)
    if extent.spans is not None:
        on_cpu &= extent.clipped_ns(events.start_ns, events.end_ns) > 0
    found = distinct_values(events.thread[on_cpu])
    threads = len(trace.threads)

    def union_ns(which: Mask) -> Int64:
        """Length of the union of some events within the extent by thread."""
        rows = np.flatnonzero(which & on_cpu)
        groups, lengths = extent.grouped_union_ns(events.start_ns[rows], events.end_ns[rows], events.thread[rows])
        return sums(groups, threads, lengths)

    first, last = np.full(threads, np.iinfo(np.int64).max), np.full(threads, np.iinfo(np.int64).min)
    np.minimum.at(first, events.thread[on_cpu], events.start_ns[on_cpu])
    np.maximum.at(last, events.thread[on_cpu], events.end_ns[on_cpu])
    span = extent.clipped_ns(first[found], last[found])
    operators, runtime = of_kind(trace, Kind.OPERATOR), of_kind(trace, Kind.RUNTIME)
    parent = attribution.calls.parent
    code = of_kind(trace, Kind.LINE_SCOPE, Kind.PYTHON_FUNCTION, Kind.MODULE_SCOPE)
    code &= ~np.append(code, False)[parent]  # the outermost alone, and so for annotations
    in_code = union_ns(operators | runtime | code)
    everything = union_ns(operators | runtime | code | (parent < 0))
    in_calls, in_runtime = union_ns(operators | runtime), union_ns(runtime)
    waited = mask_of(analysis.waits, len(events))
    begun = extent.holds(events.start_ns)
    launched = analysis.counted & (work.node >= 0)
    launched_on = events.thread[work.node[launched]]
    columns = {
        "operator_ns": in_calls - in_runtime,
        "runtime_ns": in_runtime,
        "python_ns": in_code - in_calls,
        "annotation_ns": everything - in_code,
        "operators": sums(events.thread[operators & begun], threads),
        "runtime_calls": sums(events.thread[runtime & begun], threads),
        "launches": sums(launched_on[work.counts[launched] & (work.kind[launched] == Kind.KERNEL)], threads),
        "device_ns": sums(launched_on, threads, work.duration_ns[launched]),
        "wait_ns": union_ns(waited),
    }
    engine = distinct_values(events.thread[named(trace, operators, is_backward_root)]).tolist()
    order: tuple[ThreadRole, ...] = get_args(ThreadRole)
    numbers = {role: count() for role in order}
    roles: dict[int, ThreadRole] = {
        place: "training" if place == attribution.training.thread else "autograd" if place in engine else "other"
        for place in found.tolist()
    }
    spans = dict(zip(found.tolist(), span.tolist(), strict=True))
    return [
        HostThread(
            role=roles[place],
            number=next(numbers[roles[place]]),
            process=str(trace.threads[place].pid),
            thread=str(trace.threads[place].tid),
            name=trace.threads[place].name,
            span_ns=spans[place],
            rest_ns=spans[place] - int(everything[place]),
            **{name: int(column[place]) for name, column in columns.items()},
        )
        for place in sorted(roles, key=lambda one: (order.index(roles[one]), int(first[one]), one))
    ]


def stream_table(analysis: Analysis) -> list[Stream]:
    """The streams with work within the extent, by device and number; none where the CPU is the device."""
    work, events = analysis.attribution.work, analysis.attribution.trace.events
    if work.metric != "device":
        return []
    everything = np.flatnonzero(work.counts)
    streams, of_piece = stream_of(events, work, everything)
    # Parts of one kernel lie in a row behind its largest.
    place = np.full(int(work.piece[-1]) + 1, -1, np.int64)
    place[work.piece[everything]] = of_piece
    of_row = place[work.piece]
    counted = analysis.counted
    kinds = {
        "collective": counted & work.collective,
        "kernel": counted & (work.kind == Kind.KERNEL) & ~work.collective,
        "copy": counted & (work.kind == Kind.MEMCPY),
        "fill": counted & (work.kind == Kind.MEMSET),
    }

    def spent(rows: Mask) -> list[int]:
        found: list[int] = sums(of_row[rows], len(streams), work.duration_ns[rows]).tolist()
        return found

    device_ns = spent(counted)
    times = {name: spent(rows) for name, rows in kinds.items()}
    counts = {name: sums(of_row[rows & work.counts], len(streams)).tolist() for name, rows in kinds.items()}
    between = gaps(events, work, counted)
    waits = np.zeros((len(streams), 3), np.int64)
    np.add.at(waits, (of_row[between.row], between.cause), between.gap_ns)
    window = analysis.window
    busy = [
        covered_by(work, rows).intersection(window) for rows in (everything[of_piece == i] for i in range(len(streams)))
    ]
    return [
        Stream(
            device=device,
            stream=number,
            device_ns=device_ns[i],
            kernel_ns=times["kernel"][i],
            copy_ns=times["copy"][i],
            fill_ns=times["fill"][i],
            collective_ns=times["collective"][i],
            kernels=counts["kernel"][i],
            copies=counts["copy"][i],
            fills=counts["fill"][i],
            collectives=counts["collective"][i],
            busy_ns=busy[i].total_ns,
            overlapped_ns=union_of(*(one for j, one in enumerate(busy) if streams[j][0] == device and j != i))
            .intersection(busy[i])
            .total_ns,
            idle_ns=analysis.unrecorded.total_ns - busy[i].total_ns,
            **dict(zip(("host_wait_ns", "kernel_wait_ns", "other_wait_ns"), waits[i].tolist(), strict=True)),
        )
        for i, (device, number) in enumerate(streams)
        if device_ns[i] or busy[i].total_ns or counts["kernel"][i]
    ]


# Why streams idle between pieces of work, and how their time is divided, as HTA defines it.
#
# hta/analyzers/breakdown_analysis.py and communication_analysis.py of version 0.5.


GAPS = ("host wait", "kernel wait", "other wait")
"""The work was launched after the one before it had ended; else the gap is short; else neither."""

_SHORT_NS = 30_000
"""HTA's threshold is 30 in the unit of the trace's times, microseconds (its documentation says nanoseconds)."""


@dataclass(frozen=True, slots=True)
class StreamGaps:
    """The time between each piece of work and the one before it on its stream; arrays of shape (g,)."""

    row: Int64
    """The later piece of work."""
    gap_ns: Int64
    """0 where the two overlap."""
    cause: Int64
    """Index into `GAPS`."""


def gaps(events: Events, work: OwnedWork, which: Mask) -> StreamGaps:
    """The gaps of all streams. `which` are the pieces of work that count, shape (w,)."""
    rows = np.flatnonzero(which & work.counts)
    _, stream = stream_of(events, work, rows)
    order = np.lexsort((work.start_ns[rows], stream))
    rows, stream = rows[order], stream[order]
    same = stream[1:] == stream[:-1]
    later, before = rows[1:][same], rows[:-1][same]
    gap = np.maximum(work.start_ns[later] - work.end_ns[before], 0)
    host = (work.node[later] >= 0) & (work.launch_ns[later] > work.end_ns[before])
    return StreamGaps(later, gap, np.where(host, 0, np.where(gap < _SHORT_NS, 1, 2)))


def stream_of(events: Events, work: OwnedWork, rows: Int64) -> tuple[list[tuple[int, int]], Int64]:
    """The streams of some work, as (device, stream) in ascending order, and which of them each piece ran on."""
    streams, place = distinct_places(events.stream[work.event[rows]])
    keys, both = distinct_places(work.device[rows] * len(streams) + place)
    return [(key // len(streams), int(streams[key % len(streams)])) for key in keys.tolist()], both


class Spans(NamedTuple):
    """How the time from the first to the last work is divided."""

    whole_ns: int
    compute_ns: int
    idle_ns: int
    communication_ns: int
    """The union of collectives."""
    overlap_ns: int
    """The part of it that computation overlaps."""


def spans(work: OwnedWork, which: Mask) -> Spans:
    """Divides the time of some work, all devices and streams together; `which` has shape (w,)."""
    rows = which & work.counts
    busy = covered_by(work, rows)
    if not len(busy.start):
        return Spans(0, 0, 0, 0, 0)
    kernels = rows & (work.kind == Kind.KERNEL)
    compute, communication = (covered_by(work, one) for one in (kernels & ~work.collective, kernels & work.collective))
    whole = int(busy.end[-1] - busy.start[0])
    return Spans(
        whole,
        compute.total_ns,
        whole - busy.total_ns,
        communication.total_ns,
        int(compute.overlap_ns(communication.start, communication.end).sum()),
    )

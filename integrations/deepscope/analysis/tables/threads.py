"""The threads of the CPU, and what each spent its time on."""

from __future__ import annotations

from itertools import count

import numpy as np
import numpy.typing as npt

from deepscope.analysis.analysis import Analysis
from deepscope.analysis.array_ops.selection import Mask, named, of_kind
from deepscope.analysis.ownership.calls import CPU_KINDS, step_events
from deepscope.records import HostThread, ThreadRole
from deepscope.trace.arrays import distinct_values
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64
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

    def sums(thread: npt.NDArray[np.integer], values: Int64 | None = None) -> Int64:
        result = np.zeros(threads, np.int64)
        np.add.at(result, thread, 1 if values is None else values)
        return result

    def union_ns(which: Mask) -> Int64:
        return _union_by_thread(analysis, which & on_cpu)

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
    waited = np.zeros(len(events), np.bool_)
    waited[analysis.waits] = True
    begun = extent.holds(events.start_ns)
    launched = analysis.counted & (work.node >= 0)
    columns = {
        "operator_ns": in_calls - in_runtime,
        "runtime_ns": in_runtime,
        "python_ns": in_code - in_calls,
        "annotation_ns": everything - in_code,
        "operators": sums(events.thread[operators & begun]),
        "runtime_calls": sums(events.thread[runtime & begun]),
        "launches": sums(events.thread[work.node[launched & work.counts & (work.kind == Kind.KERNEL)]]),
        "device_ns": sums(events.thread[work.node[launched]], work.duration_ns[launched]),
        "wait_ns": union_ns(waited),
    }
    engine = distinct_values(events.thread[named(trace, operators, is_backward_root)]).tolist()
    numbers: dict[ThreadRole, count[int]] = {"training": count(), "autograd": count(), "other": count()}
    order: dict[ThreadRole, int] = {"training": 0, "autograd": 1, "other": 2}
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
        for place in sorted(roles, key=lambda one: (order[roles[one]], int(first[one]), one))
    ]


def _union_by_thread(analysis: Analysis, which: Mask) -> Int64:
    """Length of the union of some events within the extent by thread; shape (threads,)."""
    trace = analysis.attribution.trace
    events = trace.events
    rows = np.flatnonzero(which)
    result = np.zeros(len(trace.threads), np.int64)
    groups, lengths = analysis.extent.grouped_union_ns(
        events.start_ns[rows], events.end_ns[rows], events.thread[rows].astype(np.int64)
    )
    np.add.at(result, groups, lengths)
    return result

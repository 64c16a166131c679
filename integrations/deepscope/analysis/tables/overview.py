"""The overview: the split of the steps' time, the use of the devices, why they idle; the sums over a whole trace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from deepscope.analysis.analysis import Analysis
from deepscope.analysis.array_ops.intervals import NO_INTERVALS, Intervals, covered_by, union
from deepscope.analysis.array_ops.selection import Floats, Mask, distinct, named, of_kind, sums
from deepscope.analysis.numbers.flops import kernels_with_tensor_cores
from deepscope.analysis.numbers.recording_cost import whole_recording_ns
from deepscope.analysis.numbers.work import idle
from deepscope.analysis.ownership.attribution import Attribution, OwnedWork, busy_with
from deepscope.analysis.ownership.calls import step_events
from deepscope.analysis.tables.threads import GAPS, gaps, spans
from deepscope.records import OverviewRow, Resolved, Totals
from deepscope.trace.arrays import distinct_values
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Events, Int64, Trace
from deepscope.trace.names import is_communication_span, is_loading_span


def overview_table(analysis: Analysis) -> list[OverviewRow]:
    """Its rows in the order of the sections; without a device the steps' time alone."""
    attribution = analysis.attribution
    events, work = attribution.trace.events, attribution.work
    added = NO_INTERVALS if work.metric == "device" else analysis.added.idle
    steps = step_time(events, work, find_roles(attribution), without=added)
    inside = analysis.extent.holds(steps.host_start)
    steps = StepTime(steps.start[inside], steps.end[inside], steps.host_start[inside], steps.parts[inside])
    rows = _step_rows(steps)
    if work.metric != "device":
        return rows
    used = device_use(attribution.trace, work, steps.window, analysis.counted)
    return [
        *rows,
        *_span_rows(analysis),
        *(
            OverviewRow(section="device", device=f"device:{device}", name=name, time_ns=time_ns, whole_ns=whole_ns)
            for device, name, time_ns, whole_ns in used
        ),
    ]


def _step_rows(steps: StepTime) -> list[OverviewRow]:
    count, whole_ns = len(steps.start), int(steps.parts.sum())
    return [
        OverviewRow(section="step", name=role, time_ns=time_ns, whole_ns=whole_ns, steps=count)
        for role, time_ns in zip(ROLES, steps.parts.sum(axis=0).tolist(), strict=True)
        if count
    ]


def _span_rows(analysis: Analysis) -> list[OverviewRow]:
    events, work = analysis.attribution.trace.events, analysis.attribution.work
    which = _work_of_steps(analysis)
    found = spans(work, which)
    between = gaps(events, work, which)
    waits = sums(between.cause, len(GAPS), between.gap_ns)
    parts = (
        ("span", "compute", found.compute_ns, found.whole_ns),
        ("span", "non-compute", found.whole_ns - found.compute_ns - found.idle_ns, found.whole_ns),
        ("span", "idle", found.idle_ns, found.whole_ns),
        ("overlap", "communication", found.overlap_ns, found.communication_ns),
        *(("idle", name, int(ns), int(waits.sum())) for name, ns in zip(GAPS, waits, strict=True)),
    )
    return [
        OverviewRow(section=section, name=name, time_ns=time, whole_ns=whole)  # type: ignore[arg-type]
        for section, name, time, whole in parts
        if whole
    ]


def _work_of_steps(analysis: Analysis) -> Mask:
    """The work that HTA looks at: with two steps or more what was launched before the last one ended; shape (w,).

    Of one step that is chosen, what was launched in it.
    """
    work, steps = analysis.attribution.work, analysis.attribution.training.steps
    if analysis.extent.spans is not None or len(steps) < 2:
        return analysis.counted
    return np.asarray((work.node >= 0) & (work.launch_ns <= steps.spans.end.max()))


# How well devices are used: utilisation, multiprocessors, occupancy, tensor cores, as torch-tb-profiler defines them.
#
# torch_tb_profiler/profiler/gpu_metrics_parser.py and kernel_parser.py of version 0.4.3.


class DeviceUse(NamedTuple):
    """One measure of one device, as a part of a time."""

    device: int
    name: str
    time_ns: int
    whole_ns: int


def device_use(trace: Trace, work: OwnedWork, window: Intervals, counted: Mask) -> list[DeviceUse]:
    """The measures of every device that ran kernels; what the trace does not tell is left out.

    Utilisation, SM efficiency and occupancy are of the window, from the first step to the last; tensor cores of the
    work that is `counted`, shape (w,).
    """
    events = trace.events
    kernels = np.flatnonzero((work.kind == Kind.KERNEL) & work.counts) if work.metric == "device" else np.zeros(0, int)
    if not len(kernels) or not len(window.start):
        return []
    begin, end = int(window.start[0]), int(window.end[-1])
    with_cores = kernels_with_tensor_cores(trace, of_kind(trace, Kind.KERNEL))
    found: list[DeviceUse] = []
    for device in distinct_values(work.device[kernels]).tolist():
        here = kernels[work.device[kernels] == device]
        event = work.event[here]
        start, stop = np.maximum(work.start_ns[here], begin), np.minimum(work.end_ns[here], end)
        busy = union(start, stop).total_ns
        found.append(DeviceUse(device, "utilisation", busy, end - begin))
        blocks = events.blocks_per_sm[event].astype(np.float64)
        if (blocks > 0).any():
            efficient = sm_efficiency_ns(start, stop, np.where(stop > start, np.maximum(blocks, 0), 0))
            found.append(DeviceUse(device, "SM efficiency", efficient, end - begin))
        occupied, known = _occupied(events, event, np.maximum(stop - start, 0))
        if known:
            found.append(DeviceUse(device, "occupancy", occupied, known))
        ours = here[counted[here]]
        duration = work.end_ns[ours] - work.start_ns[ours]
        if duration.sum():
            tensor = int(duration[with_cores[work.event[ours]]].sum())
            found.append(DeviceUse(device, "tensor cores", tensor, int(duration.sum())))
    return found


def sm_efficiency_ns(start: Int64, end: Int64, blocks: Floats) -> int:
    """Time weighted by how many of the multiprocessors have a block: the sum over running kernels, at most 1."""
    ts = np.concatenate((start, end))
    step = np.concatenate((blocks, -blocks)).astype(np.float64)
    order = np.argsort(ts, kind="stable")
    ts = ts[order]
    running = np.clip(np.cumsum(step[order]), 0, 1)
    return round(float((running[:-1] * np.diff(ts)).sum()))


def _occupied(events: Events, event: Int64, duration: Int64) -> tuple[int, int]:
    """Time weighted by the occupancy that Kineto estimates, and the time of the kernels of which it is known."""
    occupancy = np.minimum(events.occupancy[event].astype(np.int64), 100)
    known = occupancy >= 0
    return round(float((occupancy / 100 * duration)[known].sum())), int(duration[known].sum())


# The time of steps, split by what goes on: device first, then the runtime, data loading, other work of the CPU.
#
# The definition is that of torch-tb-profiler (torch_tb_profiler/profiler/event_parser.py and overall_parser.py,
# 0.4.3).


ROLES = ("kernel", "memcpy", "memset", "communication", "runtime", "data loader", "CPU", "other")
"""The parts of a step; where several hold, the first counts."""
_OPERATOR_CATEGORIES = {"cpu_op", "operator", "python"}
_FEWER = 0.8
"""A last step with less than this share of the work of the one before was cut off by the recording's end."""


@dataclass(frozen=True, slots=True)
class Roles:
    """What each event is to the split of the steps' time; masks of shape (n,)."""

    by_name: dict[str, Mask]
    """By the words of `ROLES`, the last excepted."""
    step_start: Int64
    """The steps on the CPU, in the order of their starts; shape (s,)."""
    step_end: Int64


def find_roles(of: Attribution) -> Roles:
    """The roles by what events are, whatever their categories are called."""
    trace, work = of.trace, of.work
    collective = np.zeros(len(trace.events), np.bool_)
    if work.metric == "device":
        collective[work.event[work.collective]] = True
    on_cpu = of_kind(trace, Kind.OPERATOR, Kind.ANNOTATION)
    operators = _operators(trace)
    loading = named(trace, on_cpu, is_loading_span)
    communicating = named(trace, on_cpu, is_communication_span)
    roles = {
        "kernel": of_kind(trace, Kind.KERNEL) & ~collective,
        "memcpy": of_kind(trace, Kind.MEMCPY),
        "memset": of_kind(trace, Kind.MEMSET),
        "communication": collective | communicating,
        "runtime": of_kind(trace, Kind.RUNTIME),
        "data loader": loading,
        "CPU": operators & ~loading & ~communicating,
    }
    spans = of.training.steps.spans
    if len(spans.start):
        return Roles(roles, spans.start, spans.end)
    start, end = _whole(trace, operators | loading)
    return Roles(roles, *((start, end) if len(start) else (of.training.window.start, of.training.window.end)))


def _operators(trace: Trace) -> Mask:
    """Operators, and annotations that old recorders write as such (`Optimizer.step#…`); steps left out."""
    words = {
        code
        for code in distinct(trace.events.category, len(trace.strings))
        if trace.strings[code].lower() in _OPERATOR_CATEGORIES
    }
    annotations = of_kind(trace, Kind.ANNOTATION) & np.isin(trace.events.category, list(words))
    return np.asarray(of_kind(trace, Kind.OPERATOR) | (annotations & ~step_events(trace)))


def _whole(trace: Trace, which: Mask) -> tuple[Int64, Int64]:
    """One span, from the first start to the last end of some events; none where there are none."""
    if not which.any():
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    start, end = trace.events.start_ns[which], trace.events.end_ns[which]
    return start.min(keepdims=True), end.max(keepdims=True)


@dataclass(frozen=True, slots=True)
class StepTime:
    """The steps, each from its begin to the end of the work that it launched, and what they are made of."""

    start: Int64
    """Shape (s,)."""
    end: Int64
    host_start: Int64
    """When each begins on the CPU; shape (s,)."""
    parts: Int64
    """Nanoseconds of each step by role; shape (s, 8), in the order of `ROLES`."""

    @property
    def window(self) -> Intervals:
        """From the begin of the first to the end of the last."""
        return union(self.start[:1], self.end[-1:])


def step_time(events: Events, work: OwnedWork, roles: Roles, *, without: Intervals = NO_INTERVALS) -> StepTime:
    """Splits the time of the steps, but for stretches that count nowhere."""
    start, end = _with_their_work(events, work, roles)
    left = without.complement(union(start, end))
    # Steps that overlap (a device's beside the CPU's) are counted one by one, as the definition has it.
    parts = np.zeros((len(start), len(ROLES)), np.int64)
    for place, role in enumerate(ROLES[:-1]):
        which = roles.by_name[role]
        spans = covered_by(events, which)
        parts[:, place] = spans.intersection(left).overlap_ns(start, end)
        left = spans.complement(left)
    parts[:, -1] = left.overlap_ns(start, end)
    return StepTime(start, end, roles.step_start[: len(start)], parts)


def _with_their_work(events: Events, work: OwnedWork, roles: Roles) -> tuple[Int64, Int64]:
    """The steps, each reaching to the end of the work that it launched, the next from there on.

    A last step that launched nothing, or much less than the one before it, is left out: its work came too late for the
    recording.
    """
    start, end = roles.step_start.copy(), roles.step_end.copy()
    whole = np.flatnonzero(work.counts & (work.node >= 0)) if work.metric == "device" else np.zeros(0, np.int64)
    whole = whole[roles.by_name["runtime"][work.node[whole]]]
    call = work.node[whole]
    call_start, call_end = events.start_ns[call], events.end_ns[call]
    step = np.searchsorted(np.maximum.accumulate(end), call_start, side="right") if len(end) else call
    inside = step < len(end)
    inside[inside] = (call_start[inside] >= start[step[inside]]) & (call_end[inside] <= end[step[inside]])
    whole, step = whole[inside], step[inside]
    if not len(whole):
        return start, end
    count = np.bincount(step, minlength=len(start))
    last = np.full(len(start), np.iinfo(np.int64).min)
    np.maximum.at(last, step, work.end_ns[whole])
    before = _work_before(work, whole[step == 0], whole, int(start[0]))
    for i in range(len(start)):
        start[i] = max(before, int(start[i]))
        before = end[i] = max(int(start[i]), int(end[i]), int(last[i]))
    kept = int(np.flatnonzero(count)[-1]) + 1
    if kept > 1 and count[kept - 2] * _FEWER > count[kept - 1]:
        kept -= 1
    return start[:kept], end[:kept]


def _work_before(work: OwnedWork, of_first: Int64, of_steps: Int64, begin: int) -> int:
    """When work launched in no step ended that was done before the first step's own; at least the step's begin."""
    if not len(of_first):
        return begin
    others = np.ones(len(work), np.bool_)
    others[of_steps] = False
    ends = work.end_ns[others & work.counts]
    return max(begin, int(ends[ends < work.start_ns[of_first].min()].max(initial=begin)))


def totals(analysis: Analysis) -> Totals:
    """The sums over everything within the extent."""
    attribution, columns = analysis.attribution, analysis.columns
    work = attribution.work
    busy = sum(int(analysis.window.overlap_ns(one.start, one.end).sum()) for one in work.busy.values())
    if analysis.extent.work is not None:  # its own work, whenever the device came to it
        busy = sum(one.total_ns for one in busy_with(work, analysis.counted).values())
    whole = {
        name: int(columns[name].sum())
        for name in (
            "wait_ns",
            "launches",
            "operators",
            "peak_bytes",
            "flops",
            "recording_ns",
            "worker_ns",
            "worker_cpu_ns",
        )
    }
    if analysis.is_whole:  # Entries without a scope and calls cost, too; in which step, nobody knows.
        whole["recording_ns"] = max(
            whole["recording_ns"],
            whole_recording_ns(
                attribution.trace, attribution.scopes.locations, columns["python_cpu_ns"], whole["recording_ns"]
            ),
        )
    return Totals(
        device_ns=int(work.duration_ns[analysis.counted].sum()),
        compiled_at_call_ns=int(work.duration_ns[analysis.counted & work.without_sources].sum()),
        busy_ns=busy,
        idle_ns=sum(one.total_ns for one in idle(work, analysis.unrecorded)),
        wall_ns=analysis.unrecorded.total_ns,
        added_ns=analysis.window.total_ns - analysis.unrecorded.total_ns,
        behind_ns=analysis.behind_ns if analysis.is_whole else 0,
        steps=analysis.steps,
        **whole,
    )


def resolved(analysis: Analysis) -> Resolved:
    """How far device time came: an exact line, a function (a line by its definition alone), a module, or nowhere.

    Work of compiled code counts as the line that called it: how it is divided beyond that is a policy.
    """
    work = analysis.attribution.work
    exact = np.array([one.exact for one in analysis.attribution.scopes.locations] + [False])
    known = work.location >= 0
    is_exact = np.where(work.called_at >= 0, exact[work.called_at], True)
    in_module = analysis.modules.of_work(work) >= 0
    duration = np.where(analysis.counted, work.duration_ns, 0)
    return Resolved(
        line_ns=int(duration[known & is_exact].sum()),
        function_ns=int(duration[known & ~is_exact].sum()),
        module_ns=int(duration[~known & in_module].sum()),
        none_ns=int(duration[~known & ~in_module].sum()),
    )

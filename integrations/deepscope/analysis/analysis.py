"""All analyses of one part of a trace (which a view asks for), run once and shared by tables and findings."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import NamedTuple

import numpy as np

from deepscope.analysis.array_ops.intervals import Extent, Intervals, covered_by, union_of
from deepscope.analysis.array_ops.selection import Columns, Mask
from deepscope.analysis.numbers.added_by_recording import Added, BesidePlain, added_by_recording, added_to_lines
from deepscope.analysis.numbers.cpu_time import cpu_time
from deepscope.analysis.numbers.flops import OperatorFlops, flops_of_operators
from deepscope.analysis.numbers.idle_causes import FrameworkTime, idle_by_cause
from deepscope.analysis.numbers.lines import line_columns, path_values
from deepscope.analysis.numbers.memory import MemoryUse, find_memory
from deepscope.analysis.numbers.phases import PhaseTimeline, find_phases, phase_of_work
from deepscope.analysis.numbers.work import HostTimeline, find_waits, timeline
from deepscope.analysis.ownership.attribution import Attribution
from deepscope.analysis.ownership.locations import compiled_regions
from deepscope.analysis.ownership.modules import ModuleScopes, find_modules
from deepscope.errors import OptionError
from deepscope.records import PHASES, WHOLE, View
from deepscope.trace.arrays import distinct_values, nearest, pick
from deepscope.trace.model import Int64

_EVER = 2**61
"""Beyond any time of a trace."""


class SelectedRows(NamedTuple):
    """What counts, and where wall time and idle time are measured."""

    extent: Extent
    window: Intervals
    steps: int


def narrow(attribution: Attribution, modules: ModuleScopes, phases: PhaseTimeline, view: View) -> SelectedRows:
    """The part of a trace that a view asks for.

    Work belongs to the phase of its launch, and to the modules that it ran below; so do operators and lines, to the
    phase by the clock of the training thread.

    Raises:
        OptionError: the trace has no step of this number; the message lists those that it has.
    """
    training = attribution.training
    if view.step is None:
        window, steps = training.window, len(training.steps)
        extent = Extent(None)
    else:
        if view.step not in training.steps.number:
            known = ", ".join(map(str, training.steps.number.tolist()))
            raise OptionError("step", view.step, f"no such step; it has {known or 'no steps'}")
        window = training.steps.chosen(view.step)
        steps = len(window.start)
        extent = Extent(window)
    if not view.is_filtered:
        return SelectedRows(extent, window, steps)
    work = attribution.work
    chosen = extent.launched(work.launch_ns)
    spans, events = extent.spans, None
    if view.phase:
        chosen &= phase_of_work(work, phases) == PHASES.index(view.phase)
        of_phase = _spans_of(phases, view.phase)
        spans = of_phase if spans is None else spans.intersection(of_phase)
        window = window.intersection(of_phase)
    if view.module:
        events = _below(modules, view.module)
        below = modules.events_of(work)
        chosen &= (below >= 0) & events[below]
        calls = modules.nodes[events[modules.nodes]]
        of = attribution.trace.events
        window = window.intersection(covered_by(of, calls[of.thread[calls] == training.thread]))
    return SelectedRows(Extent(spans, events, chosen), window, steps)


def _spans_of(phases: PhaseTimeline, name: str) -> Intervals:
    """When the training thread was in a phase; "other" is all the rest of time, outside the window, too."""
    if name != "other":
        return phases.spans_of(name)
    others = union_of(*(phases.spans_of(one) for one in PHASES if one != name))
    return others.complement(Intervals(np.array([-_EVER]), np.array([_EVER])))


def _below(modules: ModuleScopes, pattern: str) -> Mask:
    """Which events ran in a module whose path or class matches, or in one within it; shape (n,)."""
    if not len(modules.nodes):
        return np.zeros(len(modules.of_event), np.bool_)
    found = [any(fnmatchcase(name, pattern) for name in one[:2]) for one in modules.instances]
    inside = nearest(modules.callers, np.array(found, np.bool_)[modules.instance]) >= 0
    return np.append(inside, False)[modules.of_event]


@dataclass(frozen=True, slots=True)
class Analysis:
    """A trace (or a step of it) with its numbers."""

    attribution: Attribution
    extent: Extent
    steps: int
    """How many there are in it."""
    window: Intervals
    """The stretches of time that are looked at."""
    unrecorded: Intervals
    """`window` without `added.idle`: where wall time and idle time are measured."""
    added: Added
    """What recording added."""
    counted: Mask
    """Which pieces of work were launched within the extent; shape (w,)."""
    columns: Columns
    """By line; shape (lines + 1,), the last place for no line."""
    by_path: Int64
    """Self values by call path, shape (paths, 4): device time, its backward part, CPU time, the part outside steps."""
    operator: Int64
    """The event of the operator that launched each piece of work, -1 for none; shape (w,)."""
    flops: OperatorFlops
    """Of each operator, each product counted once."""
    memory: MemoryUse
    waits: Int64
    """The events (ascending) in which a CPU thread waits for the device."""
    modules: ModuleScopes
    phases: PhaseTimeline
    idle_causes: Columns
    """Idle time by line and cause; zeros where the CPU is the device."""
    framework: FrameworkTime
    """The part of the lines' cost that is the framework's own."""
    timeline: HostTimeline | None
    """What the training thread was on in the window; None without a device, which has idle time to explain."""
    python_by_run: Int64
    """`CpuTime.python_by_run`."""
    beside_plain: BesidePlain
    """`CpuTime.beside_plain`."""
    compiled: Int64
    """Lines (ascending) that call compiled functions."""

    @property
    def behind_ns(self) -> int:
        """How long a device goes on, behind the window's end, with what was launched within the extent."""
        work = self.attribution.work
        ends = work.end_ns[self.counted] if work.metric == "device" else work.end_ns[:0]
        return max(int(ends.max(initial=0)) - int(self.window.end.max(initial=0)), 0) if len(ends) else 0

    @property
    def step_spans(self) -> tuple[Intervals, Int64]:
        """The steps within the extent, and their places among those of the trace; without steps the window, and -1."""
        steps = self.attribution.training.steps
        if not len(steps):
            return self.window, np.full(len(self.window.start), -1, np.int64)
        chosen = np.flatnonzero(self.extent.holds(steps.spans.start))
        return Intervals(steps.spans.start[chosen], steps.spans.end[chosen]), chosen

    @property
    def is_whole(self) -> bool:
        """Whether nothing of the trace is left out."""
        return self.extent.is_whole


def analyse(attribution: Attribution, view: View = WHOLE) -> Analysis:
    """Runs the analyses over the part of the trace that a view asks for.

    Raises:
        OptionError: the trace has no such step.
    """
    trace, calls, operators, work = attribution.trace, attribution.calls, attribution.operators, attribution.work
    training, runs = attribution.training, attribution.runs
    modules = find_modules(trace, calls)
    phases = find_phases(trace, calls, operators, modules, training)
    extent, window, steps = narrow(attribution, modules, phases, view)
    waits = find_waits(trace, work)
    scopes, owners = attribution.scopes, attribution.owners
    cpu = cpu_time(attribution, extent)
    by_path = path_values(work, cpu.self_by_path, extent)
    has_device = work.metric == "device"
    added = added_by_recording(attribution, waits) if has_device else added_to_lines(attribution, cpu.recording_by_run)
    unrecorded = added.idle.complement(window)
    flops = flops_of_operators(trace, operators)
    line = timeline(trace.events, runs, training.thread, unrecorded) if has_device else None
    memory = find_memory(trace, calls.nested, owners.location, len(scopes.locations), extent, on_cpu=not has_device)
    callers = owners.location[compiled_regions(trace)]
    idle_causes, of_idle = idle_by_cause(attribution, line, unrecorded, phases, waits)
    framework = of_idle if has_device else cpu.framework
    return Analysis(
        attribution=attribution,
        extent=extent,
        steps=steps,
        window=window,
        unrecorded=unrecorded,
        added=added,
        counted=extent.launched(work.launch_ns),
        columns=line_columns(
            attribution,
            cpu,
            framework,
            extent,
            by_path=by_path,
            waits=waits,
            flops=flops.counted,
            memory=memory,
            idle_in=unrecorded,
            timeline=line,
        ),
        by_path=by_path,
        operator=pick(operators.nodes, pick(operators.around, work.node)),
        flops=flops,
        memory=memory,
        waits=waits,
        modules=modules,
        phases=phases,
        idle_causes=idle_causes,
        framework=framework,
        timeline=line,
        python_by_run=cpu.python_by_run,
        beside_plain=cpu.beside_plain,
        compiled=distinct_values(callers[callers >= 0]),
    )

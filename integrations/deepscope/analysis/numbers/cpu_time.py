"""CPU time by line: inside the line's scopes, without (self) and with (total) the lines called from it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from deepscope.analysis.algebra.ancestry import nearest, nearest_to, position_in, self_values
from deepscope.analysis.algebra.extent import Extent
from deepscope.analysis.algebra.selection import Columns, Mask, by_line, of_kind
from deepscope.analysis.numbers.framework_time import FrameworkTime, python_of_framework
from deepscope.analysis.numbers.off_cpu import Waiting, waiting
from deepscope.analysis.numbers.recording_cost import cost_by_run, cost_of_entry_ns, most_in_step, without_recording
from deepscope.analysis.ownership.calls import CallForest
from deepscope.analysis.ownership.framework import FrameworkSpans
from deepscope.analysis.ownership.locations import Scopes
from deepscope.analysis.ownership.operators import Operators
from deepscope.analysis.ownership.owners import LineRuns, Owners
from deepscope.analysis.ownership.paths import PathTable
from deepscope.analysis.ownership.training import Steps
from deepscope.trace.arrays import pick
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Events, Int64, Trace


@dataclass(frozen=True, slots=True)
class CpuTime:
    """CPU time by call path on the thread itself, and the columns of lines that go with it."""

    self_by_path: Int64
    """Shape (paths,); the first place is time in operators that ran with no line open on their thread."""
    columns: Columns
    """Entries and what they cost; self time outside operators and runtime calls, and the part of it that was waiting.
    Frames have entries alone, `Call stack` texts nothing."""
    python_by_run: Int64
    """`python_ns` of each of `LineRuns.nodes`; empty for `Call stack` texts."""
    framework: FrameworkTime
    """The part of Python's time that is the framework's."""


def cpu_time(
    trace: Trace,
    scopes: Scopes,
    runs: LineRuns,
    *,
    calls: CallForest,
    operators: Operators,
    owners: Owners,
    paths: PathTable,
    framework: FrameworkSpans,
    steps: Steps,
    extent: Extent,
) -> CpuTime:
    """CPU time of every line. A line's total is the sum over the paths that hold it, `PathTable.totals`.

    Without scopes in the trace (`Call stack` texts alone) the operators' own time stands in for the scopes'.
    """
    self_by_path = np.zeros(len(paths), np.int64)
    if scopes.source == "call_stack":
        counted = extent.begins(trace.events, operators.nodes)
        # As with scopes, the time of autograd's engine is not the forward line's.
        path = np.where(calls.backward, 0, owners.path)[operators.nodes]
        np.add.at(self_by_path, path[counted], operators.self_ns[counted])
        nothing = np.zeros(len(scopes.locations) + 1, np.int64)
        columns = _columns(nothing, nothing, nothing, Waiting(nothing, nothing, nothing))
        return CpuTime(self_by_path, columns, np.zeros(0, np.int64), FrameworkTime.none(len(framework.parts)))
    counted = extent.begins(trace.events, operators.nodes)
    around = position_in(runs.nodes, owners.open_scope[operators.nodes[counted]], len(trace.events))
    times = _times(trace, runs, scopes, parent=calls.parent, around=around, extent=extent)
    whole = times
    if not extent.is_whole and trace.header.lines.backend:
        around = position_in(runs.nodes, owners.open_scope[operators.nodes], len(trace.events))
        whole = _times(trace, runs, scopes, parent=calls.parent, around=around, extent=Extent(None))
    own, python, columns, of_framework = _of_runs(
        trace, runs, scopes, times, whole, parent=calls.parent, framework=framework, steps=steps, extent=extent
    )
    np.add.at(self_by_path, runs.path, own)
    self_by_path[0] = _without_line_ns(trace.events, operators, owners.open_scope, extent)
    return CpuTime(self_by_path, columns, python, of_framework)


def _columns(calls: Int64, recording: Int64, python: Int64, waits: Waiting) -> Columns:
    return {
        "calls": calls,
        "recording_ns": recording,
        "python_ns": python,
        "python_cpu_ns": python - sum(waits),
        "loader_wait_ns": waits.loader_ns,
        "blocked_ns": waits.blocked_ns,
        "core_wait_ns": waits.core_ns,
    }


class _Times(NamedTuple):
    """Of each run of a line, as recorded and outside the runs in it; arrays of shape (k,)."""

    within: Int64
    outside: Int64
    """The part outside operators and runtime calls."""
    waits: Waiting
    in_operators: Int64
    """What recording lines of libraries cost within operators."""
    cost: Int64
    """What else recording cost."""

    @property
    def running(self) -> Int64:
        """`outside` less waiting."""
        return self.outside - sum(self.waits)


def _times(trace: Trace, runs: LineRuns, scopes: Scopes, *, parent: Int64, around: Int64, extent: Extent) -> _Times:
    """The times within the extent; `around` is the run that each operator in it was started in, -1 for none."""
    events = trace.events
    within = self_values(
        extent.nested_ns(runs.nodes, events.start_ns[runs.nodes], events.end_ns[runs.nodes], runs.caller), runs.caller
    )
    within = np.maximum(within, 0)
    counted = _counted(trace, scopes)
    # In an operator that is written in Python lines of a library may run, too.
    library = extent.begins(events, runs.library) & ~scopes.marks[nearest_to(runs.library, parent, counted)]
    in_operators = np.bincount(runs.library_caller[library], minlength=len(runs.nodes)) * cost_of_entry_ns(
        trace, scopes
    )
    outside = np.minimum(_outside_calls_ns(trace, runs, scopes, parent=parent, counted=counted, extent=extent), within)
    in_calls = np.maximum(within - outside, 0)
    waits = waiting(trace, runs.nodes, runs.caller, python_ns=outside, in_calls_ns=in_calls, extent=extent)
    cost = cost_by_run(trace, scopes, runs, around, extent)
    return _Times(within, outside, waits, in_operators, cost - in_operators)


def _counted(trace: Trace, scopes: Scopes) -> Mask:
    """Lines' scopes, operators and runtime calls; shape (n,)."""
    return scopes.marks | of_kind(trace, Kind.OPERATOR, Kind.RUNTIME)


def _of_runs(
    trace: Trace,
    runs: LineRuns,
    scopes: Scopes,
    times: _Times,
    whole: _Times,
    *,
    parent: Int64,
    framework: FrameworkSpans,
    steps: Steps,
    extent: Extent,
) -> tuple[Int64, Int64, Columns, FrameworkTime]:
    """The self time of each run, Python's part, the columns of the lines, and the framework's part of Python's.

    `whole` are the times over the whole trace: a step's are judged beside those of the others.
    """
    events = trace.events
    within, outside, waits, in_operators, cost = times
    entered = extent.begins(events, runs.nodes) & ~_goes_on(trace, runs, scopes)
    group = runs.location * (len(steps) + 1) + steps.of(events.start_ns[runs.nodes]) + 1
    shape = (len(scopes.locations), len(steps) + 1)
    most_ns = most_in_step(whole.running, whole.cost, group, shape).reshape(-1)
    python = sum(waits) + without_recording(times.running, cost, group, most_ns)
    own = np.maximum(within - (outside - python) - in_operators, python)
    recording = within - own
    of_framework = python_of_framework(
        events,
        framework,
        counted=_counted(trace, scopes),
        parent=parent,
        runs=runs.nodes,
        location=runs.location,
        at_most=python - waits.loader_ns,
        extent=extent,
    )
    calls, recorded, own_python, *waited_for = (
        by_line(runs.location, len(scopes.locations), of)
        for of in (entered.astype(np.int64), recording, python, *waits)
    )
    columns = _columns(calls, recorded, own_python, Waiting(*waited_for))
    return own, python, columns, of_framework


def _goes_on(trace: Trace, runs: LineRuns, scopes: Scopes) -> Mask:
    """Which runs began before the window, of lines that begin again in it: the last one may be cut off by its end.

    Shape (k,).
    """
    found = np.zeros(len(runs.nodes), np.bool_)
    header = trace.header
    index = {(one.file, one.line): number for number, one in enumerate(scopes.locations)}
    rows = [row for number in header.lines.underway if number < len(header.scopes) and (row := header.scopes[number])]
    for place, times in Counter((header.path_of(row.file), row.line) for row in rows).items():
        of_line = np.flatnonzero(runs.location == index[place]) if place in index else ()
        if len(of_line) > times:
            order = np.argsort(trace.events.start_ns[runs.nodes[of_line]], kind="stable")
            found[of_line[order[:times]]] = True
    return found


def _outside_calls_ns(
    trace: Trace, runs: LineRuns, scopes: Scopes, *, parent: Int64, counted: Mask, extent: Extent
) -> Int64:
    """Time in each run of a line when no operator, no runtime call and no other run was open in it; shape (k,).

    `counted` are all of these, shape (n,).
    """
    if scopes.source != "scopes":
        return np.zeros(len(runs.nodes), np.int64)
    events = trace.events
    nodes = np.flatnonzero(counted)
    callers = position_in(nodes, pick(nearest(parent, counted), parent[nodes]), len(events))
    outside = self_values(extent.nested_ns(nodes, events.start_ns[nodes], events.end_ns[nodes], callers), callers)
    return np.asarray(outside[position_in(nodes, runs.nodes, len(events))])


def _without_line_ns(events: Events, operators: Operators, open_scope: Int64, extent: Extent) -> int:
    """Time in outermost operators on threads where no line was open."""
    top = operators.nodes[(operators.caller < 0) & (open_scope[operators.nodes] < 0)]
    return int(extent.clipped_ns_of(top, events.start_ns[top], events.end_ns[top]).sum())

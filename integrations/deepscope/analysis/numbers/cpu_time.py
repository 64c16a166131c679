"""CPU time by line: inside the line's scopes, without (self) and with (total) the lines called from it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from deepscope.analysis.array_ops.intervals import Extent
from deepscope.analysis.array_ops.selection import Columns, Mask, by_line, distinct, named, of_kind, sums
from deepscope.analysis.numbers.added_by_recording import BesidePlain, beside_plain_steps
from deepscope.analysis.numbers.idle_causes import FrameworkTime, python_of_framework, self_times
from deepscope.analysis.numbers.recording_cost import cost_by_run, cost_of_entry_ns, most_in_step, without_recording
from deepscope.analysis.ownership.attribution import Attribution
from deepscope.analysis.ownership.locations import Scopes
from deepscope.analysis.ownership.owners import LineRuns, Operators
from deepscope.analysis.ownership.training import HAS_WORKERS, Training
from deepscope.trace.arrays import nearest_to, pick, position_in, self_values
from deepscope.trace.format.span_names import parse_off_cpu
from deepscope.trace.joins.nesting import open_around
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
    recording_by_run: Int64
    """What recording cost each of them in the whole trace, as it is taken off their time."""
    framework: FrameworkTime
    """The part of Python's time that is the framework's."""
    beside_plain: BesidePlain
    """Of the whole trace."""


def cpu_time(of: Attribution, extent: Extent) -> CpuTime:
    """CPU time of every line. A line's total is the sum over the paths that hold it, `PathTable.totals`.

    Without scopes in the trace (`Call stack` texts alone) the operators' own time stands in for the scopes'.
    """
    trace, scopes, runs, operators, owners = of.trace, of.scopes, of.runs, of.operators, of.owners
    events, steps, lines = trace.events, of.training.steps, len(scopes.locations)
    begins = extent.begins(events, operators.nodes)
    if scopes.source == "call_stack":
        # As with scopes, the time of autograd's engine is not the forward line's.
        path = np.where(of.calls.backward, 0, owners.path)[operators.nodes[begins]]
        nothing, none = np.zeros(lines + 1, np.int64), np.zeros(0, np.int64)
        return CpuTime(
            self_by_path=sums(path, len(of.paths), operators.self_ns[begins]),
            columns=_columns(nothing, nothing, nothing, Waiting(nothing, nothing, nothing)),
            python_by_run=none,
            recording_by_run=none,
            framework=FrameworkTime.none(len(of.framework.parts)),
            beside_plain=BesidePlain.nothing(np.zeros((lines, 1), np.int64), len(runs.nodes)),
        )
    counted = scopes.marks | of_kind(trace, Kind.OPERATOR, Kind.RUNTIME)
    started_in = position_in(runs.nodes, owners.open_scope[operators.nodes], len(events))
    times = _times(of, counted, started_in[begins], extent)
    # A step's times are judged beside those of the others.
    is_part = not extent.is_whole and scopes.source == "scopes"
    whole = _times(of, counted, started_in, Extent(None)) if is_part else times
    group = runs.location * (len(steps) + 1) + steps.of(events.start_ns[runs.nodes]) + 1
    beside_plain = beside_plain_steps(
        trace,
        scopes.locations,
        of.training,
        here=events.thread[runs.nodes] == of.training.thread,
        group=group,
        within_ns=whole.within,
        python_ns=whole.running,
        waited_ns=np.asarray(sum(whole.waits)),
        cost_ns=whole.cost,
        off_cpu_ns=_off_cpu_by_step(trace, of.training),
        most_ns=most_in_step(whole.running, whole.cost, group, (lines, len(steps) + 1)),
    )
    own, python = _without_recording(times, beside_plain, group)
    recording, waits = times.within - own, times.waits
    entered = extent.begins(events, runs.nodes) & ~_goes_on(trace, runs, scopes)
    calls, recorded, own_python, *waited_for = (
        by_line(runs.location, lines, values) for values in (entered.astype(np.int64), recording, python, *waits)
    )
    self_by_path = sums(runs.path, len(of.paths), own)
    self_by_path[0] = _without_line_ns(events, operators, owners.open_scope, extent)
    return CpuTime(
        self_by_path=self_by_path,
        columns=_columns(calls, recorded, own_python, Waiting(*waited_for)),
        python_by_run=python,
        recording_by_run=whole.within - _without_recording(whole, beside_plain, group)[0] if is_part else recording,
        framework=python_of_framework(of, counted=counted, at_most=python - waits.loader_ns, extent=extent),
        beside_plain=beside_plain,
    )


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


def _times(of: Attribution, counted: Mask, started_in: Int64, extent: Extent) -> _Times:
    """The times within the extent.

    Args:
        of: the joined trace.
        counted: lines' scopes, operators and runtime calls; shape (n,).
        started_in: the run that each operator in the extent was started in, -1 for none.
        extent: the part of the trace that counts.
    """
    trace, runs, scopes = of.trace, of.runs, of.scopes
    events = trace.events
    within = self_values(
        extent.nested_ns(runs.nodes, events.start_ns[runs.nodes], events.end_ns[runs.nodes], runs.caller), runs.caller
    )
    # In an operator that is written in Python lines of a library may run, too.
    library = extent.begins(events, runs.library) & ~scopes.marks[nearest_to(runs.library, of.calls.parent, counted)]
    in_operators = sums(runs.library_caller[library], len(runs.nodes)) * cost_of_entry_ns(trace, scopes)
    outside = np.minimum(_outside_calls_ns(of, counted, extent), within)
    waits = waiting(trace, runs.nodes, runs.caller, python_ns=outside, in_calls_ns=within - outside, extent=extent)
    cost = cost_by_run(trace, scopes, runs, started_in, extent)
    return _Times(within, outside, waits, in_operators, cost - in_operators)


def _without_recording(times: _Times, beside_plain: BesidePlain, group: Int64) -> tuple[Int64, Int64]:
    """Each run's self time and Python's part of it; both of shape (k,)."""
    cost = np.ceil(times.cost * beside_plain.kept).astype(np.int64)
    python = sum(times.waits) + without_recording(times.running, cost, group, beside_plain.most_ns.reshape(-1))
    return np.maximum(times.within - (times.outside - python) - times.in_operators, python), python


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


def _outside_calls_ns(of: Attribution, counted: Mask, extent: Extent) -> Int64:
    """Time in each run of a line when no operator, no runtime call and no other run was open in it; shape (k,).

    `counted` are all of these, shape (n,).
    """
    if of.scopes.source != "scopes":
        return np.zeros(len(of.runs.nodes), np.int64)
    nodes, outside = self_times(of, counted, extent)
    return np.asarray(outside[position_in(nodes, of.runs.nodes, len(counted))])


def _without_line_ns(events: Events, operators: Operators, open_scope: Int64, extent: Extent) -> int:
    """Time in outermost operators on threads where no line was open."""
    top = operators.nodes[(operators.caller < 0) & (open_scope[operators.nodes] < 0)]
    return int(extent.clipped_ns_of(top, events.start_ns[top], events.end_ns[top]).sum())


class Waiting(NamedTuple):
    """How long Python waited in each run of a line; shape (k,) each."""

    loader_ns: Int64
    """For workers of a data loader."""
    blocked_ns: Int64
    """Asleep, or for a file, a network, a lock, another thread."""
    core_ns: Int64
    """It could run and had no core."""


def waiting(
    trace: Trace, scopes: Int64, caller: Int64, *, python_ns: Int64, in_calls_ns: Int64, extent: Extent
) -> Waiting:
    """How long Python waited in each run of a line, and for what.

    The recorder marks how long a stretch of a line was off the CPU, but not where in it. Operators and runtime calls
    may have been blocked, so their time is taken off first: Python was blocked for at least the rest. 0 without marks.

    Args:
        trace: any trace.
        scopes: the runs of lines (events); shape (k,).
        caller: the run that each one was called from, -1 for none; shape (k,).
        python_ns: Python's own time in each.
        in_calls_ns: time of operators and runtime calls in each.
        extent: the part of the trace that counts.

    Returns:
        The three parts, which together are at most `python_ns`.
    """
    events = trace.events
    nothing = np.zeros(len(scopes), np.int64)
    marks, off_ns, core_ns = _off_cpu_marks(trace, extent)
    if not len(marks) or not len(scopes):
        return Waiting(nothing, nothing, nothing)
    length = events.duration_ns[scopes]
    place = open_around(events, marks, scopes)
    away_ns, without_core_ns = (_in_runs(marked_ns, place, caller, length) for marked_ns in (off_ns, core_ns))
    waited_ns = np.clip(away_ns - without_core_ns - in_calls_ns, 0, python_ns)
    for_core_ns = _of_python(without_core_ns, python_ns - waited_ns, in_calls_ns)
    loads = np.flatnonzero(named(trace, of_kind(trace, Kind.ANNOTATION, Kind.OPERATOR), HAS_WORKERS.search))
    loading_ns = _sums(
        open_around(events, loads, scopes), extent.clipped_ns(events.start_ns[loads], events.end_ns[loads]), length
    )
    for_loader_ns = np.minimum(waited_ns, loading_ns)
    return Waiting(for_loader_ns, waited_ns - for_loader_ns, for_core_ns)


def _off_cpu_marks(trace: Trace, extent: Extent) -> tuple[Int64, Int64, Int64]:
    """The marks of stretches off the CPU within the extent (events), and what each tells: off it, without a core."""
    events = trace.events
    others = of_kind(trace, Kind.OTHER) & extent.holds(events.start_ns)
    off_ns, core_ns = (np.zeros(len(trace.strings) + 1, np.int64) for _ in range(2))
    for name in distinct(events.name[others], len(trace.strings)):
        found = parse_off_cpu(trace.strings[name])
        if found is not None:
            off_ns[name], core_ns[name] = found
    marks = np.flatnonzero(others & (off_ns[events.name] > 0))
    return marks, off_ns[events.name[marks]], core_ns[events.name[marks]]


def _off_cpu_by_step(trace: Trace, training: Training) -> Int64:
    """How long the training thread was off the CPU in each step; shape (steps,)."""
    marks, off_ns, _ = _off_cpu_marks(trace, Extent(None))
    step = np.where(trace.events.thread[marks] == training.thread, training.steps.of(trace.events.start_ns[marks]), -1)
    return by_line(step, len(training.steps), off_ns)[:-1]


def _in_runs(marked_ns: Int64, place: Int64, caller: Int64, length: Int64) -> Int64:
    """What marks tell, by run; shape (k,). A stretch reaches back to the last event of the hooks, so what is longer
    than the run of a line was before it, between two lines of its function: it counts at their caller."""
    in_run = np.where(place >= 0, np.minimum(marked_ns, pick(length, place)), 0)
    before = _sums(pick(caller, place), marked_ns - in_run, length)
    return np.asarray(np.minimum(_sums(place, in_run, length) + before, length))


def _sums(place: Int64, values_ns: Int64, most_ns: Int64) -> Int64:
    """Sums by `place` (-1 for none), each at most that of `most_ns`."""
    return np.minimum(by_line(place, len(most_ns), values_ns)[:-1], most_ns)


def _of_python(without_core_ns: Int64, python_ns: Int64, in_calls_ns: Int64) -> Int64:
    """Python's part of the time without a core in each run, from the lengths of its Python and of its calls.

    A thread loses its core anywhere, so both bear it by their lengths; but for what is longer than one of the two, and
    then was in the other.
    """
    whole = np.maximum(python_ns + in_calls_ns, 1)
    by_length = (without_core_ns.astype(np.float64) * python_ns / whole).astype(np.int64)
    by_length = np.where(without_core_ns > python_ns, 0, by_length)
    by_length = np.where(without_core_ns > in_calls_ns, without_core_ns, by_length)
    return np.clip(by_length, np.maximum(without_core_ns - in_calls_ns, 0), python_ns).clip(0)

"""What recording costs the lines: entries of their scopes, what the recorder's marks tell, and operators.

The recorder states what an entry costs (docs/trace-format.md, `lines.cost_ns`). A part of it lies between the scopes of
two lines, in the line that called their function. How much is seen in the trace: the time between two lines of the
same frame is the recorder's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from deepscope.analysis.array_ops.intervals import Extent, Intervals
from deepscope.analysis.array_ops.selection import distinct, of_kind, sums
from deepscope.analysis.ownership.locations import Location, Scopes, function_numbers
from deepscope.analysis.ownership.owners import LineRuns
from deepscope.trace.arrays import LARGEST_SUM, pick
from deepscope.trace.format.header import LineAccount
from deepscope.trace.format.span_names import parse_recording
from deepscope.trace.joins.nesting import open_around
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64, Trace

_COSTLIEST_ENTRY_NS = 10**6
"""A thousand times the usual cost. A greater one is damage, and would overflow."""
_ERROR = {"monitoring": 0.1, "settrace": 0.25}
"""Of the stated cost, by the kind of hooks (benchmarks/python_code.py)."""
_CLOSE_NS = 2_000_000
_LITTLE = 0.25
"""Of what is left of a line's time in a step: recording cost it little there."""
_WITH_OPERATORS = 4
"""Times its operators' time that a line's Python takes at least where it is more than what calls them."""
_WHOLE = Extent(None)
_FEWEST = 16
"""Neighbouring runs that tell which part of an entry lies between them; with fewer all of it counts within."""
_PER_EVENT_NS = 3_000
"""At most so much Python lies behind one event of the hooks. More is code in C, which runs no slower."""
_GREATEST_SLOWDOWN = 100.0


def cost_of_entry_ns(trace: Trace, scopes: Scopes) -> int:
    """What one entry of a line scope cost; 0 for traces of others."""
    return _bounded(trace.header.lines.cost_ns) if scopes.source == "scopes" else 0


def operator_cost_ns(trace: Trace) -> int:
    """What the recording of one operator cost; 0 for traces of others."""
    return _bounded(trace.header.lines.operator_ns)


def _bounded(cost_ns: float) -> int:
    return round(min(max(cost_ns, 0), _COSTLIEST_ENTRY_NS))


def cost_by_run(trace: Trace, scopes: Scopes, runs: LineRuns, operator_lines: Int64, extent: Extent) -> Int64:
    """What recording cost within each run and outside the runs in it; shape (k,).

    `operator_lines`: the run that each operator within `extent` was started in, -1 for none.
    """
    entry_ns, count = cost_of_entry_ns(trace, scopes), len(runs.nodes)
    if scopes.source != "scopes" or not count:
        return np.zeros(count, np.int64)
    between_ns = _between_ns(trace, scopes, runs, entry_ns)
    entered = extent.begins(trace.events, runs.nodes)
    library = runs.library_caller[extent.begins(trace.events, runs.library)]
    cost = entered * (entry_ns - between_ns)
    cost += np.bincount(runs.caller[entered & (runs.caller >= 0)], minlength=count) * between_ns
    cost += np.bincount(library, minlength=count) * entry_ns
    started = operator_lines[operator_lines >= 0]
    cost += np.bincount(started, minlength=count) * operator_cost_ns(trace)
    marks, marked_ns = marked_costs(trace, extent)
    place = runs_around(trace, marks, runs)
    np.add.at(cost, place[place >= 0], marked_ns[place >= 0])
    return cost


def most_in_step(measured_ns: Int64, cost_ns: Int64, group: Int64, shape: tuple[int, int]) -> Int64:
    """What each line may have left in each step; shape `shape`, lines and steps, the first of them for outside steps.

    A line's detail is lowered in the middle of a step, and what is left of that step's time is an estimate that may be
    far off. The line takes no longer in it than in the steps in which recording cost it little.

    Args:
        measured_ns: of runs, as `cost_ns`, over the whole trace; shape (k,).
        cost_ns: what recording cost them.
        group: the place of each run's line and step in an array of that shape.
        shape: see above.
    """
    size = shape[0] * shape[1]
    measured, cost = (
        np.bincount(group, weights=one, minlength=size).reshape(shape)[:, 1:] for one in (measured_ns, cost_ns)
    )
    left = np.maximum(measured - cost, 0)
    is_known = (measured > 0) & (cost <= left * _LITTLE)
    is_estimate = ~is_known & (cost > _CLOSE_NS) & is_known.any(axis=1, keepdims=True)
    known_ns = np.sum(left, axis=1, where=is_known) // np.maximum(is_known.sum(axis=1), 1)
    most = np.full(shape, np.iinfo(np.int64).max)
    most[:, 1:][is_estimate] = known_ns[np.nonzero(is_estimate)[0]].astype(np.int64)
    return most


def without_recording(measured_ns: Int64, cost_ns: Int64, group: Int64, most_ns: Int64) -> Int64:
    """Times less what recording cost, shape (k,): of each group together, since a mark tells the cost of many runs.

    What a group cost is taken off its runs in proportion to their times; `group` is at least 0, and the place of the
    most that it may have left in `most_ns`.
    """
    size = len(most_ns)
    measured, cost = (np.bincount(group, weights=one, minlength=size) for one in (measured_ns, cost_ns))
    cost = np.maximum(cost, measured - most_ns)
    kept = np.clip(1 - np.divide(cost, measured, out=np.ones(size), where=measured > 0), 0, 1)
    left_ns = np.floor(measured_ns * kept[group]).astype(np.int64)
    # The nanoseconds that rounding has lost go to the longest run of each group, so that sums are exact.
    lost_ns = np.maximum(measured - cost, 0).astype(np.int64)
    np.subtract.at(lost_ns, group, left_ns)
    order = np.lexsort((measured_ns, group))
    longest = order[np.append(group[order][1:] != group[order][:-1], True)[: len(order)]]
    left_ns[longest] += lost_ns[group[longest]]
    return np.asarray(np.minimum(left_ns, measured_ns))


def is_slowed(
    recording_ns: int,
    python_ns: int,
    operators_ns: int,
    steps: int,
    lines: LineAccount,
    *,
    is_all_python: bool = False,
    uncertain: float = math.nan,
) -> bool:
    """Whether a line's cost, Python and operators, may be wrong by more than 2 ms a step and a quarter.

    An estimate it is where more was taken off than is left. `sys.settrace` makes Python itself slower: up to twice
    where nothing calls a hook; `lines.slowdown` times between hooks, which take about as long as what runs there.
    A lowered function or loop, or a comprehension, is known to be all Python, but for what its operators take. Where
    operators run in it, what surrounds them is torch's own code in C, which no hook slows.

    `uncertain` is the part of the line's time by which it may be wrong as far as plain steps tell, nan where they do
    not (`added_by_recording.py`).
    """
    close_ns = max(_CLOSE_NS * max(steps, 1), (python_ns + operators_ns) / 4)
    if uncertain * (recording_ns + python_ns) <= close_ns:
        return False
    if recording_ns > python_ns and _ERROR.get(lines.backend or "", 0.0) * recording_ns > close_ns:
        return True
    if lines.backend != "settrace" or python_ns < _WITH_OPERATORS * operators_ns:
        return False
    unseen_ns = python_ns / 2 if is_all_python else 0.0
    if lines.slowdown > 1:
        unseen_ns = max(unseen_ns, min(python_ns, recording_ns) * (1 - 1 / lines.slowdown))
    return unseen_ns > close_ns


def _between_ns(trace: Trace, scopes: Scopes, runs: LineRuns, entry_ns: int) -> int:
    """The usual time between two lines of one frame: recording alone takes it."""
    events = trace.events
    function = function_numbers(scopes.locations)[runs.location]
    order = np.lexsort((events.start_ns[runs.nodes], runs.caller, events.thread[runs.nodes]))
    nodes, function, caller = runs.nodes[order], function[order], runs.caller[order]
    neighbours = (function[1:] == function[:-1]) & (caller[1:] == caller[:-1])
    neighbours &= (events.thread[nodes[1:]] == events.thread[nodes[:-1]]) & (
        runs.location[order][1:] != runs.location[order][:-1]
    )
    gaps = (events.start_ns[nodes[1:]] - events.end_ns[nodes[:-1]])[neighbours]
    gaps = gaps[(gaps >= 0) & (gaps <= entry_ns)]
    return int(np.median(gaps)) if len(gaps) >= _FEWEST else 0


def marked_costs(trace: Trace, extent: Extent = _WHOLE) -> tuple[Int64, Int64]:
    """The recorder's marks within the extent (events), and the cost that each tells."""
    others = of_kind(trace, Kind.OTHER) & extent.holds(trace.events.start_ns)
    cost_by_name = np.zeros(len(trace.strings) + 1, np.int64)
    for name in distinct(trace.events.name[others], len(trace.strings)):
        cost_by_name[name] = parse_recording(trace.strings[name]) or 0
    marks = np.flatnonzero(np.where(others, cost_by_name[trace.events.name], 0))
    return marks, np.minimum(cost_by_name[trace.events.name[marks]], _COSTLIEST_ENTRY_NS * 1000)


def runs_around(trace: Trace, events: Int64, runs: LineRuns) -> Int64:
    """The run of a line that was open at the start of each event, -1 for none."""
    return open_around(trace.events, events, runs.nodes)


def whole_recording_ns(trace: Trace, locations: list[Location], python_cpu_ns: Int64, taken_off_ns: int) -> int:
    """What recording lines cost a whole window: the recorder's own time, and the slower interpreter; 0 if unknown.

    Below Python 3.12 all Python code runs slower while lines are recorded, which no hook sees. The recorder measures
    how much slower instructions are; the cost follows from that and from how long Python ran outside operators.

    `python_cpu_ns` has shape (lines + 1,); `taken_off_ns` is the part of the cost that it no longer holds.
    """
    lines = trace.header.lines
    if not lines.total_ns or not 1 < lines.slowdown <= _GREATEST_SLOWDOWN:
        return lines.total_ns
    share = lines.on_core if 0 < lines.on_core < 1 else 1.0
    # In a trace, time on the core cannot be told from time when another process had it.
    whole_ns = max((int(python_cpu_ns.sum()) + taken_off_ns) * share - lines.total_ns, 0)
    exact = np.array([one.exact for one in locations] + [True])
    lowered_ns = min(int(python_cpu_ns[~exact].sum()) * share, whole_ns)
    unrecorded = sum(entries for _, entries in lines.over_budget)
    events = min(lines.entries + lines.calls + lines.left_alone + unrecorded, LARGEST_SUM)
    slowed_ns = lowered_ns + min(whole_ns - lowered_ns, events * _PER_EVENT_NS)
    return min(lines.total_ns + round(slowed_ns * (1 - 1 / lines.slowdown)), LARGEST_SUM)


@dataclass(frozen=True, slots=True)
class RecordingCost:
    """What recording lines cost the training thread; arrays of shape (k,), one row an entry or a mark."""

    start: Int64
    """When it was, ascending."""
    cost_ns: Int64
    unseen_ns: Int64
    """What else the run that was entered lost beside plain steps (negative: got back), nobody knows where in it."""
    location: Int64
    lines: int

    def by_line(self, stretches: Intervals) -> Int64:
        """The cost within stretches of time; shape (lines + 1,)."""
        inside = stretches.locate(self.start) >= 0
        result = sums(self.location[inside], self.lines + 1, (self.cost_ns + self.unseen_ns)[inside])
        return np.maximum(result, 0)

    def within(self, start: Int64, end: Int64) -> Int64:
        """The known cost in each stretch of time; shape (q,), as `start` and `end`."""
        total = np.concatenate(([0], np.cumsum(self.cost_ns)))
        return np.asarray(total[np.searchsorted(self.start, end)] - total[np.searchsorted(self.start, start)])


def recording_cost(
    trace: Trace, scopes: Scopes, runs: LineRuns, training_thread: int, taken_by_run: Int64
) -> RecordingCost:
    """The cost of all runs of lines on the training thread; those of library lines count where they were called.

    `taken_by_run` is what plain steps tell (`BesidePlain`), shape (k,).
    """
    marks, marked_ns = marked_costs(trace)
    around = runs_around(trace, marks, runs)
    nodes = np.concatenate((runs.nodes, runs.library, marks))
    entry_ns = np.full(len(runs.nodes) + len(runs.library), cost_of_entry_ns(trace, scopes))
    cost_ns = np.concatenate((entry_ns, marked_ns))
    unseen_ns = np.concatenate((taken_by_run, np.zeros(len(nodes) - len(taken_by_run), np.int64)))
    location = np.concatenate((runs.location, runs.location[runs.library_caller], pick(runs.location, around)))
    here = np.flatnonzero(trace.events.thread[nodes] == training_thread)
    start = trace.events.start_ns[nodes[here]]
    order = np.argsort(start, kind="stable")
    rows = here[order]
    return RecordingCost(start[order], cost_ns[rows], unseen_ns[rows], location[rows], len(scopes.locations))

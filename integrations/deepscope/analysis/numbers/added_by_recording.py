"""Time that recording took, by the pace of plain steps: a step that nobody records has none of it.

Without a device it is what was taken off the runs of the training thread's lines (`cpu_time.py`), so that a step is as
long as what its lines cost and what is on no line.

Beside a device kernels take as long when they are recorded; what makes a recorded step longer than a plain one is the
CPU, which comes later with the next kernel: the device is idle for longer. Where the device has work meanwhile, the CPU
comes later to what it waits for, and waits less. Hooks of lines and operators are known to cost something; what
recorded steps take beyond the plain ones on top of that is the time in operators and calls of the runtime, drawn out by
torch's profiler and by the device's tracer.

What hooks cost is an estimate, and below Python 3.12 an active trace function makes Python slower between them, too:
1.5 to 6 times by the kind of code, which no hook sees. The steps outside the window bound both. What the lines of a
step take beyond them goes to the lines that can have been slowed: those that are Python alone, and the others for as
long as Python can have run between their hooks. The rest of their time is code in C, which runs no slower. What a step
falls short of them was no cost of hooks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from deepscope.analysis.array_ops.intervals import NO_INTERVALS, Intervals, covered_by, union
from deepscope.analysis.array_ops.selection import Floats, Mask, of_kind
from deepscope.analysis.numbers.recording_cost import cost_of_entry_ns, marked_costs, operator_cost_ns, runs_around
from deepscope.analysis.numbers.work import timeline
from deepscope.analysis.ownership.attribution import Attribution
from deepscope.analysis.ownership.locations import Location
from deepscope.analysis.ownership.training import Training
from deepscope.trace.format.header import UnrecordedStepTimes
from deepscope.trace.joins.nesting import innermost
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64, Trace

_COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>")
"""Functions of Python before 3.12, which run all of a loop in one call."""
_BETWEEN_HOOKS = 3
"""Times the cost of its hooks that Python takes at most between them."""
_NOTABLE = 0.25
"""Of a plain step: what the lines take beyond it is the recording's, not chance. Lines may be wrong by as much."""
_MOST_SLOWED = 0.85
"""Of Python's time; a trace function that does nothing takes 0.83 (benchmarks/python_code.py)."""
_COST_ERROR = 0.5
"""Of the hooks' cost, where detail was lowered in the step, or a busy machine had them measured slow."""
_KINDS_DIFFER = 0.25
"""Of Python's time: so much less or more than another kind of code is one slowed."""
_COVERED = 0.9
"""Of a line's time lies in steps on the training thread, where plain steps are to tell of it."""
_CLOSE_NS = 2_000_000


@dataclass(frozen=True, slots=True)
class BesidePlain:
    """What plain steps tell of the lines."""

    most_ns: Int64
    """What each line may have left in each step, as `most_in_step` has it; shape (lines, steps + 1)."""
    kept: Floats
    """The part of the cost of each run's hooks that stands; shape (k,)."""
    taken_by_run: Int64
    """The part of each run's time that goes, less what it gets back; shape (k,)."""
    uncertain: Floats
    """By how much each line may still be wrong, as a part of its time; nan where plain steps do not tell. (lines,)"""

    @classmethod
    def nothing(cls, most_ns: Int64, runs: int) -> BesidePlain:
        """Where plain steps tell nothing."""
        return cls(most_ns, np.ones(runs), np.zeros(runs, np.int64), np.full(len(most_ns), np.nan))


def python_alone(trace: Trace, locations: list[Location]) -> Mask:
    """Lines all of whose time outside operators is Python's that no hook saw: lowered ones and comprehensions.

    Shape (lines,).
    """
    comprehensions = {(one.file, one.line) for one in trace.scopes if one.name.endswith(_COMPREHENSIONS)}
    return np.array(
        [not (one.exact or one.fused) or (one.file, one.line) in comprehensions for one in locations], np.bool_
    )


def beside_plain_steps(
    trace: Trace,
    locations: list[Location],
    training: Training,
    *,
    here: Mask,
    group: Int64,
    within_ns: Int64,
    python_ns: Int64,
    waited_ns: Int64,
    cost_ns: Int64,
    off_cpu_ns: Int64,
    most_ns: Int64,
) -> BesidePlain:
    """Compare with the plain steps that the header tells of.

    Args:
        trace: any trace.
        locations: the lines.
        training: where it trains.
        here: whether each run of a line was on the training thread; shape (k,), as the next five.
        group: the place of its line and step in an array like `most_ns`.
        within_ns: its time, over the whole trace.
        python_ns: the part in which Python ran.
        waited_ns: the part in which Python waited.
        cost_ns: what its hooks are known to have cost.
        off_cpu_ns: how long the training thread was off the CPU in each step; shape (steps,).
        most_ns: what each line may have left in each step; shape (lines, steps + 1), the first for outside steps.
    """
    shape, lines = most_ns.shape, len(locations)
    plain, spans = trace.header.plain_steps, training.steps.spans
    if plain is None or not plain.cpu.quartiles_ns[1] or not len(spans.start) or not _are_comparable(trace):
        return BesidePlain.nothing(most_ns, len(group))

    def table(values: Int64) -> Floats:
        weights = np.where(here, values, 0)
        sums: Floats = np.bincount(group, weights=weights, minlength=most_ns.size).astype(np.float64)
        return sums.reshape(shape)[:, 1:]

    python, cost = table(python_ns), table(cost_ns)
    left = np.minimum(np.maximum(python - cost, 0), most_ns[:, 1:])
    gone = python - left
    alone = python_alone(trace, locations) & (trace.header.lines.backend == "settrace")
    suspect = np.where(alone[:, None], left, np.minimum(left, _BETWEEN_HOOKS * cost))
    # What is on no line of the step, a framework's time say, may have been slowed, too. In a step in which detail was
    # lowered it is the hooks' own.
    beside = np.maximum(spans.end - spans.start - off_cpu_ns - python.sum(axis=0), 0)
    calls = table(within_ns - python_ns - waited_ns).sum(axis=0)
    elsewhere = max(float(np.median(beside - calls)), 0.0)
    unmarked = _unmarked_ns(trace.header.recorded_steps, spans.end - spans.start - off_cpu_ns)
    elsewhere, unmarked = max(elsewhere - unmarked, 0.0), max(unmarked - elsewhere, 0.0)
    whole, suspects = left.sum(axis=0) + np.minimum(beside, calls + elsewhere), suspect.sum(axis=0) + elsewhere
    whole = np.maximum(whole - unmarked, 0)
    # Where a thread waits for a device with its core busy, hooks make no step longer.
    tells_all = trace.header.device.type in ("", "cpu")
    back = _given_back(whole, gone.sum(axis=0), plain) if tells_all else np.zeros_like(whole)
    back_of = back * np.divide(gone, gone.sum(axis=0), out=np.zeros_like(gone), where=gone > 0)
    taken = _taken(whole, suspects, cost.sum(axis=0), plain)
    share = np.divide(suspect, suspects, out=np.zeros_like(suspect), where=suspect > 0)
    taken_of = np.minimum(taken * share, suspect)
    most = most_ns.copy()
    changed = taken_of > 0
    most[:, 1:][changed] = np.floor(left - taken_of)[changed].astype(np.int64)
    uncertain = _uncertain(suspect, suspects, whole - taken + back, plain) if tells_all else np.full(lines, np.nan)
    kept = np.divide(gone - back_of, cost, out=np.ones_like(cost), where=(back_of > 0) & (cost > 0))
    return BesidePlain(
        most,
        np.where(here, _at(np.minimum(kept, 1), group, 1.0), 1.0),
        _by_run(taken_of - back_of, python, group, np.where(here, python_ns, 0)),
        uncertain / _covered(python, group // shape[1], python_ns, lines),
    )


def _are_comparable(trace: Trace) -> bool:
    """Whether time on the CPU is known, and operators take as long in plain steps, but for what the lines know."""
    options, machine = trace.header.configuration, trace.header.machine
    is_inflated = options is not None and (options.record_shapes or options.profile_memory or options.with_stack)
    is_known = machine is not None and machine.core_wait_ratio is not None
    return trace.header.lines.backend is not None and is_known and not is_inflated


def _unmarked_ns(recorded: UnrecordedStepTimes | None, on_cpu_ns: Int64) -> float:
    """What of a step no mark tells to be off the CPU, and yet the timer of steps does not count."""
    return max(float(np.median(on_cpu_ns)) - recorded.cpu.quartiles_ns[1], 0.0) if recorded is not None else 0.0


def _taken(whole: Floats, suspects: Floats, cost: Floats, plain: UnrecordedStepTimes) -> Floats:
    """What each step loses of what it takes beyond a plain one, if three of four take less; shape (steps,).

    A step may be longer because it does more: Python was slowed in it as in the others, and its hooks may have cost
    more than was known.
    """
    low, pace, high = plain.cpu.quartiles_ns
    surplus = np.where(whole - high > _NOTABLE * pace, whole - pace, 0.0)
    known = suspects > 0
    slowed = 0.0
    if known.any() and np.median(surplus) > high - low:
        slowed = min((1 + _NOTABLE) * float(np.median(surplus[known] / suspects[known])), _MOST_SLOWED)
    return np.minimum(np.minimum(surplus, slowed * suspects + _COST_ERROR * cost), suspects)


def _given_back(whole: Floats, gone: Floats, plain: UnrecordedStepTimes) -> Floats:
    """What each step gets back of the cost of hooks, if three of four plain ones take more; shape (steps,).

    A step may be shorter because it does less: hooks cost as large a part too much in it as in the others.
    """
    low, pace, high = plain.cpu.quartiles_ns
    short = np.where(low - whole > _NOTABLE * pace, pace - whole, 0.0)
    known = gone > 0
    if not known.any() or np.median(short) <= high - low:
        return np.zeros_like(whole)
    part = min((1 + _NOTABLE) * float(np.median(short[known] / gone[known])), _COST_ERROR)
    return np.minimum(short, part * gone)


def _by_run(taken: Floats, python: Floats, group: Int64, python_ns: Int64) -> Int64:
    """What each run loses, by its part of its line's time in the step; shape (k,)."""
    part = np.divide(taken, python, out=np.zeros_like(taken), where=python > 0)
    return np.trunc(_at(part, group, 0.0) * python_ns).astype(np.int64)


def _at(of_steps: Floats, group: Int64, outside: float) -> Floats:
    """The value of each run's line in its step, `outside` where it was in none; shape (k,)."""
    values = np.full((len(of_steps), of_steps.shape[1] + 1), outside)
    values[:, 1:] = of_steps
    return np.asarray(values.reshape(-1)[group])


def _uncertain(suspect: Floats, suspects: Floats, whole: Floats, plain: UnrecordedStepTimes) -> Floats:
    """By how much each line may be wrong; shape (lines,). `whole` is what was left of each step.

    Another may have been slowed more and this line less, or the other way round; and what a step takes beyond a plain
    one may be the line's.
    """
    pace = plain.cpu.quartiles_ns[1]
    if np.median(pace - whole) > max(_NOTABLE * pace, _CLOSE_NS):
        return np.full(len(suspect), np.nan)  # too much was taken off, and nobody knows where
    share = np.divide(suspect, suspects, out=np.zeros_like(suspect), where=suspect > 0)
    wrong = np.minimum(suspect, suspects - suspect) * _KINDS_DIFFER + share * np.maximum(whole - pace, 0)
    return np.asarray(np.minimum(wrong, suspect).sum(axis=1))


def _covered(python: Floats, line: Int64, python_ns: Int64, lines: int) -> Floats:
    """Each line's time in steps on the training thread; nan where it has more elsewhere. Shape (lines,)."""
    here = python.sum(axis=1)
    everywhere = np.bincount(line, weights=python_ns, minlength=lines)
    return np.where((here > 0) & (here >= _COVERED * everywhere), here, np.nan)


class Added(NamedTuple):
    """Stretches of time that were not without the recording."""

    idle: Intervals
    """While no device worked; on a CPU alone all of them."""
    busy: Intervals
    """While one did: nothing took longer for them."""


def added_to_lines(of: Attribution, recording_by_run: Int64) -> Added:
    """What recording added to a trace of the CPU alone.

    `recording_by_run` is what it cost in each of `LineRuns.nodes`; shape (k,), or empty where nothing is known.
    """
    events, runs, steps = of.trace.events, of.runs, of.training.steps
    here = np.flatnonzero(events.thread[runs.nodes] == of.training.thread)
    start, end = events.start_ns[runs.nodes[here]], events.end_ns[runs.nodes[here]]
    marks, marked_ns = marked_costs(of.trace)
    apart = (events.thread[marks] == of.training.thread) & (runs_around(of.trace, marks, runs) < 0)
    # What has no line has one place for each step, and one for what is in none.
    beside_ns = np.bincount(steps.of(events.start_ns[marks[apart]]) + 1, marked_ns[apart], len(steps) + 1)
    in_runs = recording_by_run[here] if len(recording_by_run) else np.zeros(len(here), np.int64)
    cost_ns = np.concatenate((in_runs, beside_ns))
    if not cost_ns.any():
        return Added(NO_INTERVALS, NO_INTERVALS)
    in_calls = _spans(of, np.flatnonzero(of_kind(of.trace, Kind.OPERATOR, Kind.RUNTIME)))
    cuts = np.concatenate((start, end, steps.spans.start, steps.spans.end))
    pieces = in_calls.complement(of.training.window).cut(cuts)
    run = innermost(pieces.start, np.zeros_like(pieces.start), start, end, np.zeros_like(start))
    place = np.where(run >= 0, run, len(here) + 1 + steps.of(pieces.start))
    length = pieces.end - pieces.start
    free_ns = np.bincount(place, length, len(cost_ns))
    part = np.minimum(cost_ns / np.maximum(free_ns, 1), 1)
    return Added(union(pieces.start, pieces.start + np.floor(length * part[place]).astype(np.int64)), NO_INTERVALS)


def added_by_recording(of: Attribution, waits: Int64) -> Added:
    """What recording added beside a device; `waits` are the events in which a thread waits for it.

    If the header tells of plain steps, the median step is no longer than the median plain one without what was added
    while no device worked. Else that is the known cost of what was recorded meanwhile.
    """
    known_at, known_ns = _known_costs(of)
    steps, plain = of.training.steps.spans, of.trace.header.plain_steps
    has_plain = plain is not None and len(steps.start) > 0 and plain.wall.quartiles_ns[1] > 0
    if not (len(known_at) or has_plain):
        return Added(NO_INTERVALS, NO_INTERVALS)
    idle, stretches = _stretches(of)
    is_idle = idle.locate(stretches.start) >= 0
    length = (stretches.end - stretches.start).astype(np.float64)
    taken = _carried_on(stretches, _sums(stretches, known_at, known_ns))
    if plain is not None and has_plain:
        drawn_out = np.minimum(_recorded(of, waits).overlap_ns(stretches.start, stretches.end), length - taken)
        beyond = _beyond(steps.end - steps.start, plain.wall.quartiles_ns)
        step = np.where(is_idle, of.training.steps.of(stretches.start), -1)
        known, more = (_by_step(step, one, len(beyond)) for one in (taken, drawn_out))
        # Of what was added while a device worked the steps' length tells nothing.
        taken = np.where(is_idle, taken * min(_median_ratio(beyond, known), 1.0), taken)
        taken += drawn_out * min(_median_ratio(np.maximum(beyond - known, 0), more), 1.0)
    added = _evenly(stretches, taken / np.maximum(length, 1), of)
    return Added(added.intersection(idle), idle.complement(added))


def _beyond(wall_ns: Int64, quartiles_ns: tuple[int, int, int]) -> Floats:
    """What each step takes beyond the median plain one, if most take longer than three of four plain ones."""
    _, pace, high = quartiles_ns
    return np.maximum(wall_ns - pace, 0).astype(np.float64) * (np.median(wall_ns) > high)


def _by_step(step: Int64, values: Floats, steps: int) -> Floats:
    return np.bincount(step[step >= 0], values[step >= 0], steps).astype(np.float64)


def _median_ratio(over: Floats, under: Floats) -> float:
    known = under > 0
    return float(np.median(over[known] / under[known])) if known.any() else 0.0


def _known_costs(of: Attribution) -> tuple[Int64, Int64]:
    """Where recording cost a known time, and how long."""
    trace, runs = of.trace, of.runs
    entries = np.concatenate((runs.nodes, runs.library))
    marks, marked_ns = marked_costs(trace)
    rows = np.concatenate((entries, marks, of.operators.nodes))
    cost_ns = np.concatenate(
        (
            np.full(len(entries), cost_of_entry_ns(trace, of.scopes)),
            marked_ns,
            np.full(len(of.operators.nodes), operator_cost_ns(trace)),
        )
    )
    chosen = (cost_ns > 0) & _trains(of, rows)
    return trace.events.start_ns[rows[chosen]], cost_ns[chosen]


def _recorded(of: Attribution, waits: Int64) -> Intervals:
    """When operators and calls of the runtime were under way that waited for nothing."""
    rows = np.flatnonzero(of_kind(of.trace, Kind.OPERATOR, Kind.RUNTIME))
    return _spans(of, waits).complement(_spans(of, rows))


def _spans(of: Attribution, rows: Int64) -> Intervals:
    rows = rows[_trains(of, rows)]
    return covered_by(of.trace.events, rows)


def _trains(of: Attribution, rows: Int64) -> Mask:
    """Which events ran on the training thread, or below autograd's engine."""
    return np.asarray((of.trace.events.thread[rows] == of.training.thread) | of.calls.backward[rows])


def _stretches(of: Attribution) -> tuple[Intervals, Intervals]:
    """The window's time without any device's work, and all of it, cut there, at steps, and where the training thread's
    line changes."""
    idle, steps = of.work.working.complement(of.training.window), of.training.steps.spans
    lines = timeline(of.trace.events, of.runs, of.training.thread, of.training.window)
    cuts = np.concatenate((idle.start, idle.end, steps.start, steps.end, lines.start, lines.end))
    return idle, of.training.window.cut(cuts)


def _sums(stretches: Intervals, at: Int64, weight: Int64) -> Int64:
    """The weights of what lies in each stretch; shape (k,)."""
    place = stretches.locate(at)
    return np.bincount(place[place >= 0], weight[place >= 0], len(stretches.start)).astype(np.int64)


def _carried_on(stretches: Intervals, cost_ns: Int64) -> Floats:
    """Of costs that are longer than their stretch, the rest lies in those that touch it behind; shape (k,).

    A part of what the entry of a line costs is outside of the line.
    """
    length = stretches.end - stretches.start
    surplus = np.cumsum(cost_ns - length)
    begins = np.append(True, stretches.start[1:] != stretches.end[:-1])[: len(length)]
    before = np.append(0, surplus[:-1])[: len(length)][begins][np.cumsum(begins) - 1]
    # The lowest sum since the stretches began to touch: each run of them lies far below the one before.
    depth = np.cumsum(begins) * (2 * int(np.abs(surplus).max(initial=0)) + 1)
    lowest = np.minimum(np.minimum.accumulate(surplus - before - depth), -depth) + depth
    left = surplus - before - lowest
    waiting = np.where(begins, 0, np.append(0, left[:-1])[: len(length)])
    return np.asarray(cost_ns + waiting - left, np.float64)


def _evenly(stretches: Intervals, part: Floats, of: Attribution) -> Intervals:
    """The same part of all that lies between two events in a stretch: its causes keep their proportions."""
    pieces = stretches.cut(of.trace.events.start_ns)
    of_piece = part[stretches.locate(pieces.start)]
    return union(pieces.start, pieces.start + np.floor((pieces.end - pieces.start) * of_piece).astype(np.int64))

"""What plain steps tell of Python's time in the recorded ones: the lines of a step take no longer than a plain step.

What hooks cost is an estimate, and below Python 3.12 an active trace function makes Python slower between them, too:
1.5 to 6 times by the kind of code, which no hook sees. The steps outside the window bound both. What the lines of a
step take beyond them goes to the lines that can have been slowed: those that are Python alone, and the others for as
long as Python can have run between their hooks. The rest of their time is code in C, which runs no slower. What a step
falls short of them was no cost of hooks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deepscope.analysis.array_ops.selection import Floats, Mask
from deepscope.analysis.ownership.locations import Location
from deepscope.analysis.ownership.training import Training
from deepscope.trace.format.header import UnrecordedStepTimes
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

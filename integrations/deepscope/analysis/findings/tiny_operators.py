"""DS007: on the CPU, a Python loop over operators that have next to nothing to do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from deepscope.analysis.array_ops.selection import Mask, by_line, of_kind
from deepscope.analysis.findings import monitoring
from deepscope.analysis.findings.cheaper_operators import counted_classes_ns
from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.loading_lines import asking_lines
from deepscope.analysis.findings.rule import Rule
from deepscope.analysis.findings.same_work import computed_again_ns
from deepscope.analysis.findings.sliced_calls import is_below, sliced_lines
from deepscope.analysis.findings.source_loops import goes_in_turn, loops_around, loops_over, repeats_within
from deepscope.analysis.findings.value_checks import checked_ns
from deepscope.analysis.ownership.locations import Location
from deepscope.records import PHASES, Evidence, Finding
from deepscope.trace.arrays import nearest_to, pick
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64

MANY = 200
"""A line loops if it starts something at least so often in a step (without steps: in all)."""
MANY_OVER_PARAMETERS = 50
"""The same of a loop over a model's parameters, for which torch has functions that take all of them."""
AT_ONCE = 20
"""One run of a line starts at most so much. If it starts more and holds no loop, the loop is a library's."""
TINY_NS = 10_000
"""A tiny operator takes at most this (the median): most of it is the call, not arithmetic. As much Python belongs to
one."""

_PARAMETERS = re.compile(r"(?:^|\.)(?:parameters|named_parameters|state_dict)$")
_OVER_PARAMETERS = (
    "What is for a log does every N steps. `clip_grad_norm_` returns the norm of all gradients; for averages of "
    "weights there is `torch.optim.swa_utils.AveragedModel`."
)
_PENALTY = (
    "A penalty on the squares of all weights is the optimizer's `weight_decay` (SGD: `2 * factor`; `AdamW` decays "
    "beside the gradient); another one takes all of them at once, as `torch.nn.utils.parameters_to_vector` gives them."
)


MANY_PASSES = 4
"""So many backward passes before a step of an optimizer are what repeats the lines that run as often."""
_IN_TURN = (
    "Each turn needs the one before it. Move what does not depend on it before the loop, for all turns at once: a "
    "linear layer of all inputs; `x.unbind(1)` gives their slices, with one gradient for all. `nn.GRU`, `nn.LSTM` and "
    "`nn.RNN` go through a sequence in one call. Of a simulation run many side by side, in one batch."
)
_LARGER_BATCHES = (
    "Take larger batches, and accumulate gradients over fewer of them: their sum is the same, but for `BatchNorm`'s "
    "statistics."
)


@dataclass(frozen=True, slots=True)
class _Loop:
    """A loop over tiny operators, and the lines in it that start them."""

    line: int
    """Where it is named: the line that calls again and again, else the line of the loop that costs most."""
    members: list[int]
    """The costliest first."""
    saving_ns: int
    passes: int = 0
    """Of the backward passes of a step, if these repeat the lines."""


def looping_lines(facts: Facts) -> set[int]:
    """The lines of which findings promise the time, as far as there are any."""
    found = {(one.file, one.line) for one in RULE.found(facts)}
    loops = facts.once(_loops)
    places = facts.locations
    return {
        line for loop in loops if (places[loop.line].file, places[loop.line].line) in found for line in loop.members
    }


def _find(facts: Facts) -> Iterator[Finding]:
    if facts.has_device or not facts.lines:
        return
    started = facts.once(_started)
    for loop in facts.once(_loops):
        if loop.saving_ns < max(RULE.worth * facts.wall_with_cores_ns, 1):
            continue
        duration = started.duration_ns[np.isin(started.location, loop.members)]
        called = _called(facts, loop)
        said: Evidence = {"calls": called} if called else {}
        if loop.passes:
            said = {"backward_passes_per_step": loop.passes}
        cpu_ns = int(facts.analysis.columns["self_cpu_ns"][loop.members].sum())
        yield RULE.finding(
            facts,
            location=loop.line,
            message=f"the {loop.passes:,} backward passes of a step start operators on very little data each"
            if loop.passes
            else f"a loop in Python calls {called or 'operators on very little data each'}"
            + (", which starts operators on very little data" if called else ""),
            evidence=said
            | {
                "line_cpu_ns": max(cpu_ns, int(duration.sum())),
                **facts.counted("operators", len(duration)),
                "operator_median_us": round(float(np.median(duration)) / 1000, 2),
            },
            saving_ns=loop.saving_ns,
            remedy=(remedy := _remedy(facts, loop, called)),
            is_bound=remedy is _IN_TURN,
        )


def _remedy(facts: Facts, loop: _Loop, called: str) -> str:
    if loop.passes:
        return _LARGER_BATCHES
    if "__getitem__ " in called:
        return "Take whole batches: index the arrays or tensors with all numbers at once, `data[rows]`."
    if not loops_over(facts.source(loop.line), _PARAMETERS.search):
        if goes_in_turn(facts.source(_looped(facts, loop.line))):
            return _IN_TURN
        return "Do it on the whole tensor at once; where Python numbers are needed, take all with one `.tolist()`."
    return _PENALTY if any(_backward_ns(facts, line) for line in loop.members) else _OVER_PARAMETERS


def _called(facts: Facts, loop: _Loop) -> str:
    """What is called from the loop's line, and how often: `box_iou 3,456 times a step`; "" for none."""
    direct = [line for line in loop.members if line != loop.line and loop.line in _callers(facts, line)]
    if not direct:
        return ""
    times = facts.per_step(int(facts.analysis.columns["calls"][direct[0]]))
    return f"{facts.locations[direct[0]].function} {times:,.0f} times{' a step' if facts.steps else ''}"


def _callers(facts: Facts, line: int) -> set[int]:
    """The lines that the runs of a line were called from."""
    runs = facts.attribution.runs
    return set(pick(runs.location, runs.caller[runs.location == line]).tolist())


def _loops(facts: Facts) -> list[_Loop]:
    """Lines that start tiny operators again and again, by the loop that they are in."""
    savings = _savings(facts)
    accumulated = _accumulated(facts)
    savings = {line: saving for line, saving in savings.items() if not accumulated or line not in accumulated.members}
    groups: dict[tuple[str, str, int], dict[int, list[int]]] = {}
    for line in savings:
        home = _home(facts, line)
        place = facts.locations[home]
        homes = groups.setdefault((place.file, place.function, _loop_of(facts, place)), {})
        homes.setdefault(home, []).append(line)
    result = [accumulated] if accumulated else []
    for homes in groups.values():
        whole = {home: sum(savings[line] for line in lines) for home, lines in homes.items()}
        members = sorted((line for lines in homes.values() for line in lines), key=lambda line: -savings[line])
        result.append(_Loop(max(whole, key=whole.__getitem__), members, sum(whole.values())))
    return result


def _looped(facts: Facts, line: int) -> int:
    """The innermost of a line and those that it was called from that lies in a loop; the line itself if none does."""
    runs, row = facts.attribution.runs, _usual_run(facts, line)
    while row >= 0:
        place = int(runs.location[row])
        if loops_around(facts.source(place)):
            return place
        row = int(runs.caller[row])
    return line


def _loop_of(facts: Facts, place: Location) -> int:
    """The first line of the outermost loop around a place that goes round often, else of the innermost one."""
    around = loops_around(facts.texts.at(place))
    runs = facts.analysis.columns["calls"]
    numbers = facts.once(_numbers)
    often = [line for line in around if runs[numbers.get((place.file, line), -1)] >= AT_ONCE * max(facts.steps, 1)]
    return (often or around[-1:] or [0])[0]


def _numbers(facts: Facts) -> dict[tuple[str, int], int]:
    """Of the lines, by file and line."""
    return {(one.file, one.line): number for number, one in enumerate(facts.locations)}


def _savings(facts: Facts) -> dict[int, int]:
    """What each line that starts tiny operators again and again could save, in ns."""
    started, runs = facts.once(_started), facts.analysis.columns["calls"]
    steps = max(facts.steps, 1)
    logs = {(one.file, one.line) for one in monitoring.LOGGING_LINES.found(facts)}
    sliced = sliced_lines(facts)
    claimed_ns = computed_again_ns(facts) + counted_classes_ns(facts) + checked_ns(facts)
    found = {}
    for line in np.flatnonzero(started.times[:-1] >= MANY_OVER_PARAMETERS * steps).tolist():
        place, source = facts.locations[line], facts.source(line)
        over_parameters = loops_over(source, _PARAMETERS.search)
        if started.times[line] < MANY * steps and not over_parameters:
            continue
        if (place.file, place.line) in logs or is_below(facts, line, sliced):
            continue
        if started.times[line] > AT_ONCE * runs[line] and not repeats_within(source):
            continue
        duration = started.duration_ns[started.location == line]
        # A few that the machine interrupted would decide the mean.
        if len(duration) and float(np.median(duration)) <= TINY_NS:
            # One run a step would do what all of them do.
            whole = _overhead_ns(facts, line, duration)
            whole = max(whole + _backward_ns(facts, line) - claimed_ns[line], 0)
            found[line] = whole - whole * steps // int(started.times[line])
    return found


def _accumulated(facts: Facts) -> _Loop | None:
    """The lines that start tiny operators once or a few times for each backward pass of a step, if it has many."""
    runs, started, steps = facts.analysis.columns["calls"], facts.once(_started), max(facts.steps, 1)
    passes = _backward_passes(facts) // steps
    if passes < MANY_PASSES:
        return None
    found = {}
    for line in np.flatnonzero((runs[:-1] >= passes * steps) & (runs[:-1] < AT_ONCE * passes * steps)).tolist():
        duration = started.duration_ns[started.location == line]
        if len(duration) and float(np.median(duration)) <= TINY_NS:
            whole = _overhead_ns(facts, line, duration) + _backward_ns(facts, line)
            found[line] = whole - whole // passes
    if sum(int(started.times[line]) for line in found) < MANY * steps:
        return None
    members = sorted(found, key=lambda line: -found[line])
    return _Loop(members[0], members, sum(found.values()), passes)


def _backward_passes(facts: Facts) -> int:
    """How often lines called `backward` in all, of the one that did so most."""
    runs = facts.analysis.columns["calls"]
    calling = facts.texts.calling("backward", lambda name: name.rpartition(".")[2] == "backward")
    numbers = [number for number, one in enumerate(facts.locations) if (one.file, one.line) in calling]
    return max((int(runs[number]) for number in numbers), default=0)


def _home(facts: Facts, line: int) -> int:
    """The line that repeats what a line does: the outermost of its callers that runs again and again itself.

    That is as often as the line, if not more often than a loop must: a line may start several operators in one run.
    """
    runs, often = facts.attribution.runs, facts.analysis.columns["calls"]
    steps = max(facts.steps, 1)
    enough = max(min(MANY * steps, int(often[line])), AT_ONCE * steps)
    row = _usual_run(facts, line)
    if row < 0:
        return line
    while runs.caller[row] >= 0:
        above = int(runs.caller[row])
        place = int(runs.location[above])
        if place < 0 or not (often[place] >= enough or repeats_within(facts.source(place))):
            break
        row = above
    return int(runs.location[row])


def _usual_run(facts: Facts, line: int) -> int:
    """A run of a line, called from where most of its runs are; -1 for none."""
    runs = facts.attribution.runs
    rows = np.flatnonzero(runs.location == line)
    if not len(rows):
        return -1
    callers = pick(runs.location, runs.caller[rows])
    rows = rows[callers == np.bincount(callers + 1).argmax() - 1]
    return int(rows[len(rows) // 2])


@dataclass(frozen=True, slots=True)
class _Started:
    """What lines start on the training thread: forward, and outside of the optimizer and of loaders, whose loops are
    not the user's."""

    times: Int64
    """By line: operators and calls of modules, without those within a module; shape (lines + 1,)."""
    location: Int64
    """The line of each operator that no other called, within modules too; shape (o,)."""
    duration_ns: Int64
    """Shape (o,)."""


def _started(facts: Facts) -> _Started:
    attribution, events = facts.attribution, facts.trace.events
    operators, location = attribution.operators, attribution.owners.location
    outer = operators.nodes[operators.caller < 0]
    outer = outer[_counts(facts, outer)]
    is_module = of_kind(facts.trace, Kind.MODULE_SCOPE)
    modules = np.flatnonzero(is_module)
    direct = np.concatenate((outer, modules[_counts(facts, modules)]))
    above = pick(attribution.calls.parent, direct)
    around = nearest_to(above, attribution.calls.parent, is_module | attribution.scopes.marks)
    direct = direct[(around < 0) | ~is_module[around]]
    return _Started(
        times=by_line(location[direct], facts.lines),
        location=location[outer],
        duration_ns=events.duration_ns[outer],
    )


def _counts(facts: Facts, rows: Int64) -> Mask:
    """Which of some events are the training thread's own, in the extent; shape of `rows`."""
    attribution, analysis, events = facts.attribution, facts.analysis, facts.trace.events
    start = events.start_ns[rows]
    found = ~attribution.calls.backward[rows] & analysis.extent.holds(start)
    found &= events.thread[rows] == attribution.training.thread
    is_loaders = np.isin(attribution.owners.location[rows], list(facts.once(asking_lines)))
    is_loaders &= facts.loading.locate(start) >= 0
    return np.asarray(found & (analysis.phases.at(start) != PHASES.index("optimizer")) & ~is_loaders)


def _overhead_ns(facts: Facts, line: int, duration_ns: Int64) -> int:
    """What a line's operators cost by being many: their calls, and the Python around them."""
    python_ns = int(facts.analysis.columns["self_cpu_ns"][line]) - int(duration_ns.sum())
    return int(np.minimum(duration_ns, TINY_NS).sum()) + min(max(python_ns, 0), TINY_NS * len(duration_ns))


def _backward_ns(facts: Facts, line: int) -> int:
    """What a line's backward operators cost by being many."""
    backward = facts.analysis.counted & facts.work.backward & (facts.work.location == line)
    return int(np.minimum(facts.work.duration_ns[backward], TINY_NS).sum())


RULE = Rule("DS007", "Many tiny operators", _find, measured_on=("cpu",))

"""Lines and functions whose time is Python's and not torch's (DS013), without what other rules claim."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from deepscope.analysis.array_ops.intervals import NO_INTERVALS, Intervals, union, union_of
from deepscope.analysis.array_ops.selection import Mask, by_line, named, of_kind
from deepscope.analysis.findings import (
    data_loader,
    monitoring,
    same_work,
    sliced_calls,
    tiny_operators,
    value_checks,
)
from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.line_remedies import line_remedy
from deepscope.analysis.findings.rule import Rule
from deepscope.analysis.findings.source_loops import loops_in_function, repeats_within
from deepscope.analysis.ownership.locations import function_numbers
from deepscope.records import Finding
from deepscope.trace.arrays import nearest, pick, self_values
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64
from deepscope.trace.names import stepped_optimizer


def claimed_by_others(facts: Facts) -> Intervals:
    """When the training thread loaded data (DS003), was on a line that loops over operators (DS007), is called with
    slices (DS034), makes the same anew (DS035) or logs (DS019), or started workers anew (DS021), as far as that is
    found.

    For traces of the CPU alone.
    """
    return facts.once(_claimed_by_others)


def _claimed_by_others(facts: Facts) -> Intervals:
    others = (
        _loading_and_loops(facts),
        monitoring.logging(facts),
        data_loader.restarts(facts),
        same_work.built_anew(facts),
    )
    return union_of(*others)


def _loading_and_loops(facts: Facts) -> Intervals:
    loading = facts.loading if data_loader.DATA_LOADER.found(facts) else NO_INTERVALS
    loops = tiny_operators.looping_lines(facts) | sliced_calls.sliced_lines(facts)
    if not loops:
        return loading
    line = facts.timeline
    looping = np.array([number in loops for number in range(facts.lines)] + [False])[line.location]
    return union(np.append(loading.start, line.start[looping]), np.append(loading.end, line.end[looping]))


AMONG_CALLS_NS = 500_000
"""A line is Python's own if it calls no module and has so much Python time for each operator that it starts, or calls
what is known to cost much. What many calls cost is DS007's, and what a module does in Python is the module's."""
LINE_NS = 30
"""A line of a loop takes at least this. What recording a short one cost is several times as much, so that taking it off
may leave nothing."""

_TORCHS = re.compile(
    r"^(?:torch\.(?!(?:as_)?tensor$|[A-Z]\w*Tensor$)|F\.|nn\.)|\.(?:backward|step|zero_grad|(?:named_)?parameters)$|^list$"
)
"""Functions of torch's, and lists of what they return. What they do outside operators (an old result is given back) is
not the line's Python, but for those that go through lists."""
_FEW = 0.5
"""Operators in a function take at most this part of its Python time; those with more are other rules'."""
_DEEPCOPY = re.compile(r"(?:copy\.)?deepcopy")
_COPIES = "this line copies an object with all that it holds, each time that it runs"
_IN_PYTHON = "this line's time is spent in Python, or in a library that torch knows nothing of"
_OF_LOOPS = "Let torch or NumPy do it on whole arrays, or do it once before the loop."
_OF_CALLS = "Do it every N steps, once before the loop, or not at all."
_OF_FUNCTIONS = (
    "Let torch or NumPy do its loops on whole arrays, or call it every N steps, once before the loop, or not at all."
)


def _find(facts: Facts) -> Iterator[Finding]:
    if facts.has_device or not facts.lines or facts.attribution.scopes.source != "scopes":
        return
    columns = facts.analysis.columns
    copying = _calling(facts, _DEEPCOPY)
    copying[[line for one in facts.audit.copies if (line := facts.audited_line(one.place)) >= 0]] = False  # DS044
    python = np.where(copying, columns["self_cpu_ns"][:-1], columns["python_cpu_ns"][:-1])
    least_ns = RULE.worth_ns(facts)
    if int(python.sum()) + LINE_NS * int(columns["calls"].sum()) < least_ns:
        return
    operators, modules = _started(facts)
    mixed, recurs = (modules > 0) | facts.once(runs_other_code), _recurs(facts)
    saving = (python * _lasting(facts)).astype(np.int64)
    worth = saving >= least_ns
    worth[list(value_checks.checked_ns(facts))] = False  # DS048
    is_known = _known(facts, worth)
    worth &= ((saving >= AMONG_CALLS_NS * operators) | is_known) & ~mixed & recurs
    found = np.zeros(facts.lines, np.bool_)
    for line in np.flatnonzero(worth).tolist():
        source = facts.source(line)
        calls, loops = source.calls, repeats_within(source)
        is_function = not source.location.exact and loops_in_function(source)
        if calls and not (loops or is_function or is_known[line]) and all(_TORCHS.search(name) for name in calls):
            continue
        if source.only_lets_go:
            continue
        found[line] = True
        yield RULE.finding(
            facts,
            location=line,
            message=_COPIES if copying[line] else _IN_PYTHON,
            evidence={
                "copying_ns" if copying[line] else "python_cpu_ns": int(python[line]),
                "runs": int(columns["calls"][line]),
            },
            saving_ns=int(saving[line]),
            remedy=line_remedy(source) or (_OF_FUNCTIONS if is_function else _OF_LOOPS if loops else _OF_CALLS),
        )
    for one in _functions(facts, _free_ns(facts, found), mixed, least_ns):
        if not recurs[one.line]:
            continue
        name = facts.locations[one.line].function
        yield RULE.finding(
            facts,
            location=one.line,
            message=f"the time of {name} is spent in Python, over its lines and what they call",
            evidence={"python_cpu_ns": one.python_ns, "runs": int(columns["calls"][one.line])},
            saving_ns=one.python_ns,
            remedy=_OF_FUNCTIONS,
            is_bound=True,
        )


@dataclass(frozen=True, slots=True)
class _Function:
    """A function with a loop that calls no module, no optimizer and no backward pass, nor does what it calls."""

    line: int
    """That of its lines on which, with what that calls, most of the time is spent."""
    python_ns: int


def _functions(facts: Facts, free_ns: Int64, mixed: Mask, least_ns: float) -> list[_Function]:
    """The outermost such functions with at least so much time of Python's, the largest first.

    `free_ns`: of each run of a line, shape (runs,); `mixed`: lines that call modules, or run other code than Python's.
    """
    paths, runs = facts.attribution.paths, facts.attribution.runs
    python = np.bincount(runs.path, free_ns, len(paths)).astype(np.int64)
    is_mixed = np.append(mixed, False)[paths.location].astype(np.int64)
    in_operators = facts.analysis.by_path[:, 2] - np.bincount(runs.path, facts.analysis.python_by_run, len(paths))
    values = np.stack((python, in_operators.astype(np.int64), is_mixed), axis=1)
    function = function_numbers(facts.locations)
    python_ns, operators_ns, others = paths.totals(values, function, int(function.max(initial=-1)) + 1).T
    by_line = paths.totals(python, np.arange(facts.lines), facts.lines)
    is_one = (python_ns >= max(least_ns, 1)) & (operators_ns <= _FEW * python_ns) & (others == 0)
    found: list[_Function] = []
    above: set[int] = set()
    for number in sorted(np.flatnonzero(is_one).tolist(), key=lambda one: -int(python_ns[one])):
        lines = np.flatnonzero(function == number)
        line = int(lines[by_line[lines].argmax()])
        if loops_in_function(facts.source(line)) and not sliced_calls.is_below(facts, line, above):
            found.append(_Function(line, int(python_ns[number])))
            above.update(lines.tolist())
    return found


def _free_ns(facts: Facts, found: Mask) -> Int64:
    """Python's time of each run of a line on the training thread that neither another rule promises, nor one of the
    lines found, with all that these call; without waiting, of which a line's runs have equal parts; shape (runs,).
    """
    runs, events, columns = facts.attribution.runs, facts.trace.events, facts.analysis.columns
    start = events.start_ns[runs.nodes]
    free = (events.thread[runs.nodes] == facts.attribution.training.thread) & (facts.analysis.window.locate(start) >= 0)
    free &= claimed_by_others(facts).locate(start) < 0
    free &= nearest(runs.caller, np.append(found, False)[runs.location]) < 0
    running = columns["python_cpu_ns"] / np.maximum(columns["python_ns"], 1)
    spent = np.maximum(facts.analysis.python_by_run * running[runs.location], LINE_NS)
    return np.asarray(free * spent).astype(np.int64)


def _calling(facts: Facts, names: re.Pattern[str]) -> Mask:
    """Which lines of much time call functions of these names, whose operators count, too; shape (lines,)."""
    spent = facts.analysis.columns["self_cpu_ns"][:-1] >= RULE.worth_ns(facts)
    result = np.zeros(facts.lines, np.bool_)
    for line in np.flatnonzero(spent).tolist():
        result[line] = any(map(names.fullmatch, facts.source(line).calls))
    return result


def _known(facts: Facts, chosen: Mask) -> Mask:
    """Which of some lines call something that costs much wherever it is called; shape (lines,)."""
    result = np.zeros(len(chosen), np.bool_)
    for line in np.flatnonzero(chosen).tolist():
        result[line] = bool(line_remedy(facts.source(line)))
    return result


def _recurs(facts: Facts) -> Mask:
    """Which lines run in at least half of the steps, and in two of them: what happens once tells nothing of a step."""
    attribution, events = facts.attribution, facts.trace.events
    nodes = attribution.runs.nodes
    here = events.thread[nodes] == attribution.training.thread
    return facts.recurs(attribution.runs.location[here], events.start_ns[nodes[here]])[:-1]


def _lasting(facts: Facts) -> npt.NDArray[np.float64]:
    """The part of each line's time that most of its runs take, and that no other rule promises; shape (lines,)."""
    attribution, events = facts.attribution, facts.trace.events
    runs, lines = attribution.runs, facts.lines
    start = events.start_ns[runs.nodes]
    # A comprehension is a run of its line within one.
    same = (runs.caller >= 0) & (runs.location[runs.caller] == runs.location)
    value = np.zeros(len(same), np.int64)
    np.add.at(value, nearest(runs.caller, ~same), self_values(events.duration_ns[runs.nodes], runs.caller))
    here = (events.thread[runs.nodes] == attribution.training.thread) & (facts.analysis.window.locate(start) >= 0)
    rows = np.flatnonzero(here & ~same)
    value, location, start = value[rows], runs.location[rows], start[rows]
    # What holds one run up is the machine.
    claimed = claimed_by_others(facts).locate(start) >= 0
    location, value, claimed = _by_statement(facts, location, value, start, claimed)
    free = np.minimum(value, 2 * _medians(value, location, lines)[location])
    free[claimed] = 0
    return np.asarray(by_line(location, lines, free)[:-1] / np.maximum(by_line(location, lines, value)[:-1], 1))


def _by_statement(
    facts: Facts, location: Int64, value: Int64, start: Int64, claimed: Mask
) -> tuple[Int64, Int64, Mask]:
    """Runs of lines, those of a line of a longer statement joined by step: it comes back to its first line, briefly."""
    several = np.array([facts.texts.at(one).is_of_several for one in facts.locations] + [False])
    step = facts.attribution.training.steps.of(start)
    turn = np.where(several[location] & (step >= 0), step, len(location) + np.arange(len(location)))
    _, first, run = np.unique(np.stack((location, turn)), axis=1, return_index=True, return_inverse=True)
    joined = np.zeros(len(first), np.int64)
    np.add.at(joined, run.reshape(-1), value)
    return location[first], joined, claimed[first]


def _medians(value: Int64, group: Int64, groups: int) -> Int64:
    """The (lower) median of the values of each group, 0 where there are none; shape (groups,)."""
    order = np.lexsort((value, group))
    count = np.bincount(group, minlength=groups)
    middle = np.cumsum(count) - count + np.maximum(count - 1, 0) // 2
    known = count > 0
    result = np.zeros(groups, np.int64)
    result[known] = value[order][middle[known]]
    return result


def _started(facts: Facts) -> tuple[Int64, Int64]:
    """How many operators that no other called, and how many modules, each line starts; both of shape (lines,)."""
    attribution, events = facts.attribution, facts.trace.events
    operators = attribution.operators
    modules = np.flatnonzero(of_kind(facts.trace, Kind.MODULE_SCOPE))
    outer, modules = (
        by_line(pick(attribution.scopes.location, attribution.owners.open_scope[found]), facts.lines)[:-1]
        for rows in (operators.nodes[operators.caller < 0], modules)
        for found in [rows[facts.analysis.extent.holds(events.start_ns[rows])]]
    )
    return outer, modules


def runs_other_code(facts: Facts) -> Mask:
    """Lines whose Python is another's: they run autograd's engine, an optimizer or compiled code; shape (lines,)."""
    attribution, calls = facts.attribution, facts.attribution.calls
    optimizers = named(facts.trace, of_kind(facts.trace, Kind.ANNOTATION), _is_an_optimizers)
    engine = pick(calls.caller, np.flatnonzero(calls.root == np.arange(len(calls.root))))
    other = np.concatenate((engine, np.flatnonzero(optimizers)))
    result = np.zeros(facts.lines + 1, np.bool_)
    result[pick(attribution.scopes.location, pick(attribution.owners.open_scope, other))] = True
    result[facts.analysis.compiled] = True
    return result[:-1]


def _is_an_optimizers(name: str) -> bool:
    return stepped_optimizer(name) is not None or name.startswith("Optimizer.zero_grad#")


RULE = Rule("DS013", "A line of Python", _find, measured_on=("cpu",), worth=0.05)

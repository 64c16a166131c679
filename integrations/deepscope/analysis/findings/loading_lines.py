"""Which lines and functions make the batches, and what to do about them (DS003)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import numpy as np

from deepscope.analysis.array_ops.selection import named, of_kind
from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.line_remedies import line_remedy
from deepscope.analysis.findings.source_loops import loops_around, loops_in_function
from deepscope.analysis.numbers.phases import phase_of_name
from deepscope.analysis.ownership.locations import Location, function_numbers
from deepscope.records import PHASES
from deepscope.trace.arrays import pick, self_values, sums_with_callees
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64

COSTLY = 0.2
"""What calls something that is known to cost much is named if it has this part of the loading."""
_LEAST = 0.02
"""Lines with less of it are not looked at."""
SENT_NS = 100_000
"""A sample that takes less to make costs more to send between processes."""
SMALL_NS = 60_000
"""Loading with an operator in each so short time, or more of them, makes nothing that is worth a process."""
KEEP = "What it makes the same of a sample in each epoch can be made once, and kept."
FEW_LINES = 3
BY_NUMBER_NS = 5_000
"""A run of a line within a loop that takes less is about single numbers."""
_GETTERS = frozenset({"__getitem__", "__getitems__"})
"""Methods of data sets, by the last part of their names."""
ENOUGH = 0.5
"""What makes this part of the loading, or of its batches, is named as the cause."""
BY_NUMBER = "Its loop goes number by number: let NumPy or torch do it on whole arrays."


def asking_lines(facts: Facts) -> set[int]:
    """The lines on which batches are asked for: what a loader does itself stands there, too."""
    spans = spans_of_training(facts, lambda name: phase_of_name(name) == PHASES.index("data"))
    start, line = facts.trace.events.start_ns[spans], facts.timeline
    return set(pick(line.location, np.searchsorted(line.start, start, side="right") - 1).tolist())


def spans_of_training(facts: Facts, is_meant: Callable[[str], object]) -> Int64:
    """Spans with a name that is meant (events, by time), within the extent."""
    trace, events = facts.trace, facts.trace.events
    spans = of_kind(trace, Kind.ANNOTATION, Kind.OPERATOR) & facts.analysis.extent.holds(events.start_ns)
    spans &= events.thread == facts.attribution.training.thread
    found = np.flatnonzero(named(trace, spans, lambda name: bool(is_meant(name))))
    return np.asarray(found[np.argsort(events.start_ns[found], kind="stable")])


def is_of_small_calls(facts: Facts) -> bool:
    """Whether loading is many small operators, as it is where samples are taken one by one from tensors in memory."""
    count = small_calls(facts)
    return count > 0 and facts.loading_ns < SMALL_NS * count


def small_calls(facts: Facts) -> int:
    """How many operators were called to load, without those within others."""
    operators, events = facts.attribution.operators, facts.trace.events
    outer = operators.nodes[operators.caller < 0]
    outer = outer[events.thread[outer] == facts.attribution.training.thread]
    return int((facts.loading.locate(events.start_ns[outer]) >= 0).sum())


def line_to_name(facts: Facts, spent_ns: Int64) -> int:
    """The line that most of the batches' time is spent on, or one that costs much and has a remedy; -1 for none."""
    line = _slowest_line(facts, spent_ns)
    if line >= 0 and line_cure(facts, line):
        return line
    spent = _with_slowed(facts, spent_ns)
    return max(_costly_lines(facts, spent_ns), key=lambda one: int(spent[one]), default=line)


def _costly_lines(facts: Facts, spent_ns: Int64) -> list[int]:
    """Lines of the user's that call what is known to cost much, with a good part of the loading, and want the same.

    Lines with the same remedy count together: a row of a table that one makes is slow to read on the next ones.
    """
    spent = _with_slowed(facts, spent_ns)
    whole_ns = int(spent.sum())
    groups: dict[str, list[int]] = defaultdict(list)
    asking = asking_lines(facts)
    for line in np.flatnonzero(spent[:-1] > _LEAST * whole_ns).tolist():
        if line not in asking and (words := line_remedy(facts.source(line), always=True)):
            groups[words].append(line)
    most = max(groups.values(), key=lambda lines: int(spent[lines].sum()), default=[])
    return most if spent[most].sum() >= COSTLY * whole_ns else []


def _slowest_line(facts: Facts, spent_ns: Int64) -> int:
    """The line of the user's that makes most of the batches; -1 where none does."""
    line = int(spent_ns[:-1].argmax()) if facts.lines else -1
    is_most = line >= 0 and spent_ns[line] >= ENOUGH * spent_ns.sum()
    return line if is_most and line not in asking_lines(facts) else -1


def _with_slowed(facts: Facts, spent_ns: Int64) -> Int64:
    """Time by line, with half of what recording took of lines that have less left; shape (lines + 1,).

    `sys.settrace` is called for each function of a library, and takes about twice what these do in between.
    """
    if facts.trace.header.lines.backend != "settrace":
        return spent_ns
    recording_ns = facts.analysis.columns["recording_ns"]
    return np.asarray(spent_ns + np.where((spent_ns > 0) & (recording_ns > spent_ns), recording_ns // 2, 0))


def slowest_line_advice(facts: Facts, spent_ns: Int64, known: str) -> str:
    """Advice for the line of the user's that makes most of the batches; "" where none does.

    `known` is what helps by how its function is called, "" for nothing; what it calls itself says more.
    """
    line = _slowest_line(facts, spent_ns)
    if line < 0:
        return ""
    place = facts.locations[line]
    is_quick = facts.loading_ns < SENT_NS * _samples(facts, place)
    if gets_one_sample(place) and is_quick and not (known or line_cure(facts, line)) and is_of_small_calls(facts):
        return ""  # whole batches are what helps
    what = f"line {place.line} ({place.function})"
    words = f"Make {what} cheaper: most of the loading is spent there."
    return f"{words} {known}" if known and not line_remedy(facts.source(line)) else advice_for(words, facts, line)


def costly_line_advice(facts: Facts, spent_ns: Int64) -> str:
    """Advice for a line that costs much and has a remedy, where the slowest one has none; "" else."""
    line = line_to_name(facts, spent_ns)
    if line < 0 or line == _slowest_line(facts, spent_ns):
        return ""
    place, spent, lines = facts.locations[line], _with_slowed(facts, spent_ns), _costly_lines(facts, spent_ns)
    share = spent[lines].sum() / max(int(spent.sum()), 1)
    others = [str(facts.locations[one].line) for one in sorted(lines) if one != line]
    there = f"there and on what needs the same ({', '.join(others)})" if others else "there"
    words = f"Make line {place.line} ({place.function}) cheaper: about {share:.0%} of the loading is spent {there}."
    return advice_for(words, facts, line)


def few_lines_advice(facts: Facts, spent_ns: Int64) -> str:
    """Advice for the few lines of the user's that make most of the batches together; "" where these are many."""
    asking = asking_lines(facts)
    order = np.argsort(-spent_ns[:-1], kind="stable")[:FEW_LINES]
    lines = [line for line in order.tolist() if line not in asking and 5 * spent_ns[line] >= spent_ns.sum()]
    if spent_ns[lines].sum() < ENOUGH * spent_ns.sum() or len(lines) < 2:
        return ""
    *others, last = (f"{facts.locations[line].line} ({facts.locations[line].function})" for line in lines)
    cure = next((words for line in lines if (words := line_cure(facts, line))), KEEP)
    return f"Make lines {', '.join(others)} and {last} cheaper: most of the loading is spent there. {cure}"


def slowest_function(facts: Facts) -> tuple[Location | None, list[Location], bool]:
    """The innermost function of the user's that, with all that it calls, makes most of the batches; a line of it.

    Also the lines through which it is called, the innermost first, and whether its own lines take most of its time.
    """
    attribution, locations, events = facts.attribution, facts.locations, facts.trace.events
    paths, runs, by_path = attribution.paths, attribution.runs, facts.analysis.by_path[:, 2]
    own = self_values(events.duration_ns[runs.nodes], runs.caller)
    loads = facts.loading.locate(events.start_ns[runs.nodes]) >= 0
    loading, whole = (np.bincount(runs.path, own * chosen, len(paths)) for chosen in (loads, np.ones_like(loads)))
    here = (by_path * (loading / np.maximum(whole, 1))).astype(np.int64)
    spent = sums_with_callees(here, paths.parent)
    asks = np.zeros(len(locations) + 1, np.bool_)
    asks[list(asking_lines(facts) - {-1})] = True
    at = np.flatnonzero(asks[paths.location])
    enough = ENOUGH * min(int(sums_with_callees(by_path, paths.parent)[at].sum()), facts.loading_ns)
    function, called_at, found, is_own = function_numbers(locations), list[Location](), None, False
    while len(at):
        called = np.flatnonzero(np.isin(paths.parent, at))
        if not len(called):
            break
        of = function[paths.location[called]]
        sums = np.bincount(of, spent[called])
        if sums.max() < enough:
            break
        at = called[of == sums.argmax()]
        costliest = int(at[spent[at].argmax()])
        is_own = 2 * int(here[at].sum()) >= int(spent[at].sum())
        found = locations[paths.location[costliest]]
        called_at.insert(0, locations[paths.location[paths.parent[costliest]]])
    return found, called_at, is_own


def gets_one_sample(place: Location) -> bool:
    """Whether a function is a data set's method that gets a sample."""
    return place.function.rsplit(".", 1)[-1] in _GETTERS


def _samples(facts: Facts, getter: Location) -> int:
    """How often a data set's function ran: as the line of it that ran least."""
    calls = facts.analysis.columns["calls"]
    numbers = function_numbers(facts.locations)
    own = calls[:-1][numbers == numbers[facts.locations.index(getter)]]
    return int(own[own > 0].min(initial=int(calls.max(initial=0))))


def advice_for(words: str, facts: Facts, line: int) -> str:
    """`words`, and how, as far as that is known of a line."""
    return f"{words} {line_cure(facts, line) or KEEP}"


def line_cure(facts: Facts, line: int) -> str:
    """What to do about a line by what it calls, or as part of a loop over numbers; "" where nothing is known."""
    source, columns = facts.source(line), facts.analysis.columns
    if words := line_remedy(source):
        return words
    runs = int(columns["calls"][line])
    if source.location.exact:
        is_loop = 0 < columns["self_cpu_ns"][line] < BY_NUMBER_NS * runs and bool(loops_around(source))
    else:  # its lines run so often that they were not recorded
        is_loop = loops_in_function(source)
    return BY_NUMBER if is_loop else ""

"""Steps that wait for their batches (DS003)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from deepscope.analysis.array_ops.intervals import Intervals
from deepscope.analysis.array_ops.selection import named, of_kind
from deepscope.analysis.findings.audited_work import audit_of, place_words
from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.library_options import framework_option, loader_batch_sizes, loader_workers, loads_from
from deepscope.analysis.findings.line_remedies import line_remedy
from deepscope.analysis.findings.rule import Rule
from deepscope.analysis.findings.source_loops import loops_around, loops_in_function
from deepscope.analysis.findings.worker_restarts import begun_anew, waited_longer_ns
from deepscope.analysis.numbers.phases import phase_of_name
from deepscope.analysis.ownership.locations import Location, function_numbers
from deepscope.analysis.ownership.training import HAS_NO_WORKERS, HAS_WORKERS, worker_count
from deepscope.quantities import count_text
from deepscope.records import PHASES, Evidence, Finding
from deepscope.trace.arrays import pick, self_values, sums_with_callees
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64

DATA_LOADER_WORTH = 0.05
"""Loading is named from this share of the wall time on."""
ENOUGH = 0.5
"""What makes this part of the loading, or of its batches, is named as the cause."""
COSTLY = 0.2
"""What calls something that is known to cost much is named if it has this part of the loading."""
_LEAST = 0.02
"""Lines with less of it are not looked at."""
SENT_NS = 100_000
"""A sample that takes less to make costs more to send between processes."""
SMALL_NS = 60_000
"""Loading with an operator in each so short time, or more of them, makes nothing that is worth a process."""

_BY_NUMBER = "Its loop goes number by number: let NumPy or torch do it on whole arrays."
_KEEP = "What it makes the same of a sample in each epoch can be made once, and kept."

OF_A_BATCH = 32
"""Samples taken one by one are more operators for a batch."""
FEW_LINES = 3
BY_NUMBER_NS = 5_000
"""A run of a line within a loop that takes less is about single numbers."""

_GETTERS = frozenset({"__getitem__", "__getitems__"})
"""Methods of data sets, by the last part of their names."""
_REQUEST = re.compile(r"^enumerate\(DataLoader\)#")


def _find_data_loader(facts: Facts) -> Iterator[Finding]:
    loading = facts.loading
    if not len(loading.start) or facts.loading_ns < DATA_LOADER_WORTH * facts.wall_ns:
        return
    most = _avoidable(facts)
    by_line = sum(
        (np.minimum(facts.by_line_of_cpu(one), most) for one in _alone(facts)), np.zeros(facts.lines + 1, np.int64)
    )
    saving = int(by_line.sum()) // facts.devices
    saving = max(saving - waited_longer_ns(facts), 0)
    # Without a device as much of it could run beside the rest as the rest takes. Of what is left, twice as many
    # processes would take half.
    saving = min(saving, max(facts.wall_ns - facts.loading_ns, saving // 2)) if not facts.has_device else saving
    # A line that makes the batches and has a remedy of its own may be saved as a whole.
    slowest = _named_line(facts, by_line)
    if slowest < 0 and _takes_whole_batches(facts):
        return
    is_curable = slowest >= 0 and _cure(facts, slowest) != ""
    cured = int(by_line[slowest]) // facts.devices if is_curable else 0
    if max(saving, cured) < DATA_LOADER_WORTH * facts.wall_ns:
        return
    evidence: Evidence = {
        "loading_ns": facts.loading_ns,
        "batches": int(facts.analysis.phases.calls(facts.analysis.extent)[0]),
    }
    if facts.has_device:
        evidence["device_idle_ns"] = saving
    evidence |= {
        name: ns
        for name in ("loader_wait_ns", "worker_ns", "worker_cpu_ns")
        if (ns := int(facts.analysis.columns[name].sum()))
    }
    remedy = _remedy(facts, by_line)
    yield DATA_LOADER.finding(
        facts,
        location=slowest if is_curable else int(by_line[:-1].argmax()) if by_line[:-1].any() else -1,
        message="the next batch is not there when it is needed: "
        + ("the device is idle meanwhile" if facts.has_device else "nothing else runs meanwhile"),
        evidence=evidence,
        saving_ns=max(saving, cured),
        remedy=remedy + (framework_option(facts, DATA_LOADER.code) if "num_workers" in remedy else ""),
        is_bound=cured > saving,
    )


def _alone(facts: Facts) -> list[Intervals]:
    """When data is loaded and the device has nothing to do, by device; on the CPU, when data is loaded."""
    return facts.gaps.loader if facts.has_device else [facts.loading]


def _avoidable(facts: Facts) -> Int64:
    """How much of the loading other processes could take over, by line, as far as the trace tells.

    With workers that is the time in which they were waited for: the rest is the training thread's own part of a batch.
    Without them it is what the thread did itself, not its waiting for a core that other programs had.
    """
    columns, loading = facts.analysis.columns, facts.by_line_of_cpu(facts.loading)
    is_told = any(columns[name].any() for name in ("loader_wait_ns", "blocked_ns", "core_wait_ns"))
    if is_told and _has_workers(facts):
        return np.asarray(columns["loader_wait_ns"])
    return np.asarray(np.maximum(loading - columns["core_wait_ns"], 0))


def _remedy(facts: Facts, spent_ns: Int64) -> str:
    """What helps, as far as the trace tells; `spent_ns` is the loading time by line, shape (lines + 1,)."""
    if _iterators_per_batch(facts) >= ENOUGH:
        return "Make the iterator once (`for batch in loader:`): here each batch begins a new one, with all its set-up."
    has_workers = _has_workers(facts)
    if has_workers:
        return _with_workers(facts)
    function, called_at, is_own = _slowest_function(facts)
    known = next((words for one in called_at if (words := line_remedy(facts.texts.at(one)))), "")
    slowest = _known_to_cost(facts, spent_ns) or _slowest(facts, spent_ns, known)
    function = None if slowest else function
    is_by_sample = function is None or _gets_one(function)
    if not slowest and is_by_sample and _is_of_small_calls(facts):
        if loads_from(facts.trace, "datasets"):
            return (
                "A data set of the library `datasets` makes tensors of nested lists number by number: give it arrays "
                "with their types (`Features({…: Array3D(shape, dtype)})`), or keep tensors in a data set of yours."
            )
        return (
            "Take whole batches (`dataset[indices]`, or a `BatchSampler` as the `sampler` with `batch_size=None`), "
            "transformed beforehand or together: most of it is calls for single samples, which cost more to send "
            "between processes than to make."
        )
    if function is not None:
        place = Path(function.file).name + (f":{function.first_line}" if function.first_line else "")
        by_number = _BY_NUMBER if is_own and loops_in_function(facts.texts.at(function)) else ""
        cure = known or f"{by_number} {_KEEP}".lstrip()
        words = f"Make {function.function} ({place}) cheaper: most of the loading is spent in it and in what it calls."
        slowest = f"{words} {cure}"
    slowest = f"{slowest or _few_lines(facts, spent_ns)} {_partly_used(facts)}".strip()
    unknown = "" if has_workers is not None else ": the trace does not say how many it has"
    cores = facts.usable_cores
    if cores == 1:
        return (slowest or "Prepare the data beforehand.") + " There is one core: processes would not run beside it."
    there = f"; {cores} cores are there" if cores else ""
    processes = (
        f"Load in other processes (`num_workers` of the `DataLoader`, `persistent_workers=True`{unknown}{there})."
    )
    return f"{slowest} {processes}" if slowest else processes


def _partly_used(facts: Facts) -> str:
    """Advice on what loading computes of data that is cut afterwards, as far as an audit saw it; "" for none."""
    loaded = [one for one in audit_of(facts).partly_read if one.is_loaded]
    if not loaded:
        return ""
    most = loaded[0]
    return (
        f"Of what {place_words(facts, most.place)} computes, {count_text(most.read_rows)} of {count_text(most.rows)} "
        "parts are used: cut the data first."
    )


def _few_lines(facts: Facts, spent_ns: Int64) -> str:
    """Advice for the few lines of the user's that make most of the batches together; "" where these are many."""
    asking = asking_lines(facts)
    order = np.argsort(-spent_ns[:-1], kind="stable")[:FEW_LINES]
    lines = [line for line in order.tolist() if line not in asking and 5 * spent_ns[line] >= spent_ns.sum()]
    if spent_ns[lines].sum() < ENOUGH * spent_ns.sum() or len(lines) < 2:
        return ""
    *others, last = (f"{facts.locations[line].line} ({facts.locations[line].function})" for line in lines)
    cure = next((words for line in lines if (words := _cure(facts, line))), _KEEP)
    return f"Make lines {', '.join(others)} and {last} cheaper: most of the loading is spent there. {cure}"


def _gets_one(place: Location) -> bool:
    return place.function.rsplit(".", 1)[-1] in _GETTERS


def _slowest(facts: Facts, spent_ns: Int64, known: str) -> str:
    """Advice for the line of the user's that makes most of the batches; "" where none does.

    `known` is what helps by how its function is called, "" for nothing; what it calls itself says more.
    """
    line = _slowest_line(facts, spent_ns)
    if line < 0:
        return ""
    place = facts.locations[line]
    is_quick = facts.loading_ns < SENT_NS * _samples(facts, place)
    if _gets_one(place) and is_quick and not (known or _cure(facts, line)) and _is_of_small_calls(facts):
        return ""  # whole batches are what helps
    what = f"line {place.line} ({place.function})"
    words = f"Make {what} cheaper: most of the loading is spent there."
    return f"{words} {known}" if known and not line_remedy(facts.texts.at(place)) else _cheaper(words, facts, line)


def _known_to_cost(facts: Facts, spent_ns: Int64) -> str:
    """Advice for a line that costs much and has a remedy, where the slowest one has none; "" else."""
    line = _named_line(facts, spent_ns)
    if line < 0 or line == _slowest_line(facts, spent_ns):
        return ""
    place, spent, lines = facts.locations[line], _with_slowed(facts, spent_ns), _costly_lines(facts, spent_ns)
    share = spent[lines].sum() / max(int(spent.sum()), 1)
    others = [str(facts.locations[one].line) for one in sorted(lines) if one != line]
    there = f"there and on what needs the same ({', '.join(others)})" if others else "there"
    words = f"Make line {place.line} ({place.function}) cheaper: about {share:.0%} of the loading is spent {there}."
    return _cheaper(words, facts, line)


def _named_line(facts: Facts, spent_ns: Int64) -> int:
    """The line that most of the batches' time is spent on, or one that costs much and has a remedy; -1 for none."""
    line = _slowest_line(facts, spent_ns)
    if line >= 0 and _cure(facts, line):
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


def _with_slowed(facts: Facts, spent_ns: Int64) -> Int64:
    """Time by line, with half of what recording took of lines that have less left; shape (lines + 1,).

    `sys.settrace` is called for each function of a library, and takes about twice what these do in between.
    """
    if facts.trace.header.lines.backend != "settrace":
        return spent_ns
    recording_ns = facts.analysis.columns["recording_ns"]
    return np.asarray(spent_ns + np.where((spent_ns > 0) & (recording_ns > spent_ns), recording_ns // 2, 0))


def _samples(facts: Facts, getter: Location) -> int:
    """How often a data set's function ran: as the line of it that ran least."""
    calls = facts.analysis.columns["calls"]
    numbers = function_numbers(facts.locations)
    own = calls[:-1][numbers == numbers[facts.locations.index(getter)]]
    return int(own[own > 0].min(initial=int(calls.max(initial=0))))


def _slowest_line(facts: Facts, spent_ns: Int64) -> int:
    """The line of the user's that makes most of the batches; -1 where none does."""
    line = int(spent_ns[:-1].argmax()) if facts.lines else -1
    is_most = line >= 0 and spent_ns[line] >= ENOUGH * spent_ns.sum()
    return line if is_most and line not in asking_lines(facts) else -1


def _slowest_function(facts: Facts) -> tuple[Location | None, list[Location], bool]:
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


def _cheaper(words: str, facts: Facts, line: int) -> str:
    """`words`, and how, as far as that is known of a line."""
    return f"{words} {_cure(facts, line) or _KEEP}"


def _cure(facts: Facts, line: int) -> str:
    """What to do about a line by what it calls, or as part of a loop over numbers; "" where nothing is known."""
    place, columns = facts.locations[line], facts.analysis.columns
    if words := line_remedy(facts.texts.at(place)):
        return words
    runs = int(columns["calls"][line])
    if place.exact:
        is_loop = 0 < columns["self_cpu_ns"][line] < BY_NUMBER_NS * runs and bool(loops_around(facts.texts.at(place)))
    else:  # its lines run so often that they were not recorded
        is_loop = loops_in_function(facts.texts.at(place))
    return _BY_NUMBER if is_loop else ""


def asking_lines(facts: Facts) -> set[int]:
    """The lines on which batches are asked for: what a loader does itself stands there, too."""
    spans = _on_training_thread(facts, lambda name: phase_of_name(name) == PHASES.index("data"))
    start, line = facts.trace.events.start_ns[spans], facts.timeline
    return set(pick(line.location, np.searchsorted(line.start, start, side="right") - 1).tolist())


def _on_training_thread(facts: Facts, is_meant: Callable[[str], object]) -> Int64:
    """Spans with a name that is meant (events, by time), within the extent."""
    trace, events = facts.trace, facts.trace.events
    spans = of_kind(trace, Kind.ANNOTATION, Kind.OPERATOR) & facts.analysis.extent.holds(events.start_ns)
    spans &= events.thread == facts.attribution.training.thread
    found = np.flatnonzero(named(trace, spans, lambda name: bool(is_meant(name))))
    return np.asarray(found[np.argsort(events.start_ns[found], kind="stable")])


def _iterators_per_batch(facts: Facts) -> float:
    """For how many of the batches an iterator was made: as it begins, it draws a seed."""
    requests = _on_training_thread(facts, _REQUEST.search)
    if len(requests) < 2:
        return 0.0
    return float((begun_anew(facts, requests)[1:] >= 0).mean())


def _is_of_small_calls(facts: Facts) -> bool:
    """Whether loading is many small operators, as it is where samples are taken one by one from tensors in memory."""
    count = _small_calls(facts)
    return count > 0 and facts.loading_ns < SMALL_NS * count


def _small_calls(facts: Facts) -> int:
    """How many operators were called to load, without those within others."""
    operators, events = facts.attribution.operators, facts.trace.events
    outer = operators.nodes[operators.caller < 0]
    outer = outer[events.thread[outer] == facts.attribution.training.thread]
    return int((facts.loading.locate(events.start_ns[outer]) >= 0).sum())


def _takes_whole_batches(facts: Facts) -> bool:
    """Whether a few operators cut each batch from tensors in memory, without worker processes."""
    batches = int(facts.analysis.phases.calls(facts.analysis.extent)[0])
    return (
        bool(loader_batch_sizes(facts.trace))
        and not any(loader_batch_sizes(facts.trace))
        and _has_workers(facts) is False
        and _is_of_small_calls(facts)
        and _small_calls(facts) < OF_A_BATCH * batches
    )


def _with_workers(facts: Facts) -> str:
    count = worker_count(facts.trace) or loader_workers(facts.trace) or 0
    cores, columns = facts.usable_cores, facts.analysis.columns
    workers = columns["worker_ns"][:-1]
    computes = not workers.any() or 2 * int(columns["worker_cpu_ns"].sum()) >= int(columns["worker_ns"].sum())
    if not workers.any():
        cheaper = "make what they do cheaper: how long their lines take was not recorded."
    else:
        line = _named_line(facts, columns["worker_ns"])
        line = line if line >= 0 else int(workers.argmax())
        place = facts.locations[line]
        cheaper = _cheaper(f"make the slowest line in them ({place.function}, line {place.line}) cheaper.", facts, line)
    if count and cores and computes and count >= cores:
        return f"Its {count} workers have {cores} cores: {cheaper}"
    more = f"more than its {count} workers" if count else "more workers"
    there = f"; {cores} cores are there" if cores else ""
    return f"Give it {more} (`num_workers`{there}), or {cheaper}"


def _has_workers(facts: Facts) -> bool | None:
    """Whether the batches came from worker processes, by the iterator that took longest; None where it is not known."""
    trace = facts.trace
    if facts.analysis.columns["worker_ns"].any():
        return True
    spans = of_kind(trace, Kind.ANNOTATION, Kind.OPERATOR) & facts.analysis.extent.holds(trace.events.start_ns)
    with_workers, without = (
        int((trace.events.end_ns[found] - trace.events.start_ns[found]).sum())
        for found in (named(trace, spans, iterator.search) for iterator in (HAS_WORKERS, HAS_NO_WORKERS))
    )
    if with_workers or without:
        return with_workers >= without
    known = loader_workers(trace)
    return None if known is None else known > 0


DATA_LOADER = Rule("DS003", "Data loading on the critical path", _find_data_loader, measured_on=("cpu",))

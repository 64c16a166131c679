"""Steps that wait for their batches, and workers that are started anew (DS003, DS021)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from deepscope.analysis.array_ops.intervals import NO_INTERVALS, Intervals
from deepscope.analysis.array_ops.selection import named, of_kind
from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.library_options import (
    framework_option,
    keeps_workers,
    loader_batch_sizes,
    loader_workers,
    loads_from,
)
from deepscope.analysis.findings.line_remedies import line_remedy
from deepscope.analysis.findings.loading_lines import (
    BY_NUMBER,
    ENOUGH,
    KEEP,
    advice_for,
    costly_line_advice,
    few_lines_advice,
    gets_one_sample,
    is_of_small_calls,
    line_cure,
    line_to_name,
    slowest_function,
    slowest_line_advice,
    small_calls,
    spans_of_training,
)
from deepscope.analysis.findings.rule import Rule
from deepscope.analysis.findings.source_loops import loops_in_function
from deepscope.analysis.ownership.training import HAS_NO_WORKERS, HAS_WORKERS, worker_count
from deepscope.quantities import count_text
from deepscope.records import Evidence, Finding
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64

OF_A_BATCH = 32
"""Samples taken one by one are more operators for a batch."""

_REQUEST = re.compile(r"^enumerate\(DataLoader\)#")


def _find_data_loader(facts: Facts) -> Iterator[Finding]:
    loading = facts.loading
    if not len(loading.start) or facts.loading_ns < DATA_LOADER.worth_ns(facts):
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
    slowest = line_to_name(facts, by_line)
    if slowest < 0 and _takes_whole_batches(facts):
        return
    is_curable = slowest >= 0 and line_cure(facts, slowest) != ""
    cured = int(by_line[slowest]) // facts.devices if is_curable else 0
    if max(saving, cured) < DATA_LOADER.worth_ns(facts):
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
    function, called_at, is_own = slowest_function(facts)
    known = next((words for one in called_at if (words := line_remedy(facts.texts.at(one)))), "")
    slowest = costly_line_advice(facts, spent_ns) or slowest_line_advice(facts, spent_ns, known)
    function = None if slowest else function
    is_by_sample = function is None or gets_one_sample(function)
    if not slowest and is_by_sample and is_of_small_calls(facts):
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
        by_number = BY_NUMBER if is_own and loops_in_function(facts.texts.at(function)) else ""
        cure = known or f"{by_number} {KEEP}".lstrip()
        words = f"Make {function.function} ({place}) cheaper: most of the loading is spent in it and in what it calls."
        slowest = f"{words} {cure}"
    slowest = f"{slowest or few_lines_advice(facts, spent_ns)} {_partly_used(facts)}".strip()
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
    loaded = [one for one in facts.audit.partly_read if one.is_loaded]
    if not loaded:
        return ""
    most, place = loaded[0], facts.audited_place_text(loaded[0].place)
    return (
        f"Of what {place} computes, {count_text(most.read_rows)} of {count_text(most.rows)} parts are used: cut the "
        "data first."
    )


def _iterators_per_batch(facts: Facts) -> float:
    """For how many of the batches an iterator was made: as it begins, it draws a seed."""
    requests = spans_of_training(facts, _REQUEST.search)
    if len(requests) < 2:
        return 0.0
    return float((begun_anew(facts, requests)[1:] >= 0).mean())


def _takes_whole_batches(facts: Facts) -> bool:
    """Whether a few operators cut each batch from tensors in memory, without worker processes."""
    batches = int(facts.analysis.phases.calls(facts.analysis.extent)[0])
    return (
        bool(loader_batch_sizes(facts.trace))
        and not any(loader_batch_sizes(facts.trace))
        and _has_workers(facts) is False
        and is_of_small_calls(facts)
        and small_calls(facts) < OF_A_BATCH * batches
    )


def _with_workers(facts: Facts) -> str:
    count = worker_count(facts.trace) or loader_workers(facts.trace) or 0
    cores, columns = facts.usable_cores, facts.analysis.columns
    workers = columns["worker_ns"][:-1]
    computes = not workers.any() or 2 * int(columns["worker_cpu_ns"].sum()) >= int(columns["worker_ns"].sum())
    if not workers.any():
        cheaper = "make what they do cheaper: how long their lines take was not recorded."
    else:
        line = line_to_name(facts, columns["worker_ns"])
        line = line if line >= 0 else int(workers.argmax())
        place = facts.locations[line]
        cheaper = advice_for(
            f"make the slowest line in them ({place.function}, line {place.line}) cheaper.", facts, line
        )
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


DATA_LOADER = Rule("DS003", "Data loading on the critical path", _find_data_loader, measured_on=("cpu",), worth=0.05)


SHORTEST_NS = 1_000_000
"""Starting a process takes at least this."""
_SEEDS = "aten::random_".__eq__
SEEDS = 8
"""Between the first seed and the first batch an iterator starts at most so many operators: for its seed and its
sampler's."""


@dataclass(frozen=True, slots=True)
class _Restarts:
    """Starts of workers that some had run before, each array of shape (k,)."""

    starting: Intervals
    """From the loader's seed to the request for the first batch."""
    longer_ns: Int64
    """How much longer than usual the request before (which ends the old workers) and the first one take."""


def restarts(facts: Facts) -> Intervals:
    """When the training thread was starting workers anew, if that is found."""
    return facts.once(_restarts).starting if WORKER_RESTARTS.found(facts) else NO_INTERVALS


def waited_longer_ns(facts: Facts) -> int:
    """How much longer batches took for it, in a trace of the CPU alone, if that is found."""
    return int(facts.once(_restarts).longer_ns.sum()) if WORKER_RESTARTS.found(facts) and not facts.has_device else 0


def _restarts(facts: Facts) -> _Restarts:
    """A loader draws a seed as an iterator begins (torch/utils/data/dataloader.py), then makes its workers."""
    trace, events = facts.trace, facts.trace.events
    thread = events.thread == facts.attribution.training.thread
    spans = np.flatnonzero(named(trace, of_kind(trace, Kind.ANNOTATION, Kind.OPERATOR) & thread, HAS_WORKERS.search))
    spans = spans[np.argsort(events.start_ns[spans], kind="stable")]
    drawn = begun_anew(facts, spans, had_before=True)
    start, length = events.start_ns[spans], events.duration_ns[spans]
    anew = (drawn >= 0) & (start - drawn >= SHORTEST_NS)
    anew &= (facts.analysis.window.locate(drawn) >= 0) & facts.analysis.extent.holds(drawn)
    more = np.maximum(length - int(np.median(length)), 0) if len(length) else length
    before = np.append(np.zeros(1, np.int64), more)[:-1]
    return _Restarts(Intervals(drawn[anew], start[anew]), (before + more)[anew])


def begun_anew(facts: Facts, spans: Int64, *, had_before: bool = False) -> Int64:
    """When the iterator of each request was begun (ns), -1 where it is that of the one before; shape (k,).

    Args:
        facts: of the analysis.
        spans: requests for batches (events) of the training thread, by time.
        had_before: the first one counts, too, in a window with steps before it; else it is -1.
    """
    trace, events, attribution = facts.trace, facts.trace.events, facts.attribution
    thread = events.thread == attribution.training.thread
    seed = np.sort(events.start_ns[np.flatnonzero(named(trace, of_kind(trace, Kind.OPERATOR) & thread, _SEEDS))])
    if not len(seed) or not len(spans):
        return np.full(len(spans), -1, np.int64)
    steps = attribution.training.steps
    counts = had_before and len(steps) > 0 and steps.number[0] > 0
    since = steps.spans.start[:1] if counts else events.end_ns[spans[:1]]
    start, end = events.start_ns[spans], np.concatenate((since, events.end_ns[spans[:-1]]))
    first = np.searchsorted(seed, end)
    drawn = seed[np.minimum(first, len(seed) - 1)]
    outer = attribution.operators.nodes[attribution.operators.caller < 0]
    outer = np.sort(events.start_ns[outer[thread[outer]]])
    few = np.searchsorted(outer, start) - np.searchsorted(outer, drawn) <= SEEDS
    return np.where((first < len(seed)) & (drawn < start) & few, drawn, -1)


def _find_worker_restarts(facts: Facts) -> Iterator[Finding]:
    if keeps_workers(facts.trace):
        return
    found = facts.once(_restarts)
    starting = found.starting
    if not len(starting.start):
        return
    if facts.has_device:
        by_line = sum((facts.by_line_of_cpu(one.intersection(starting)) for one in facts.gaps.rest), _nothing(facts))
        saving = int(by_line.sum()) // facts.devices
    else:
        by_line = facts.by_line_of_cpu(starting)
        saving = int(by_line.sum()) + int(found.longer_ns.sum())
    if saving < WORKER_RESTARTS.worth_ns(facts):
        return
    yield WORKER_RESTARTS.finding(
        facts,
        location=int(by_line[:-1].argmax()) if by_line[:-1].any() else -1,
        message="the data loader starts its worker processes anew for each epoch",
        evidence={
            "restarts": len(starting.start),
            "starting_ns": starting.total_ns,
            "batches_longer_ns": int(found.longer_ns.sum()),
        },
        saving_ns=saving,
        remedy="Keep them: `DataLoader(…, persistent_workers=True)`." + framework_option(facts, WORKER_RESTARTS.code),
    )


def _nothing(facts: Facts) -> Int64:
    return np.zeros(facts.lines + 1, np.int64)


WORKER_RESTARTS = Rule("DS021", "Loader workers started anew", _find_worker_restarts, measured_on=("cpu",))

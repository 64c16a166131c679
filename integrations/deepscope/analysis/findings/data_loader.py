"""DS003: the training thread waits for data while nothing else can go on."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from deepscope.analysis.algebra.intervals import Intervals
from deepscope.analysis.algebra.selection import named, of_kind
from deepscope.analysis.findings.already_set import loader_workers
from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.library_options import framework_option
from deepscope.analysis.findings.rule import Rule
from deepscope.analysis.findings.worker_restarts import waited_longer_ns
from deepscope.analysis.ownership.workers import HAS_NO_WORKERS, HAS_WORKERS, worker_count
from deepscope.records import Evidence, Finding
from deepscope.trace.kinds import Kind

__all__ = ["RULE"]

WORTH = 0.05
"""Loading is named from this share of the wall time on."""


def _find(facts: Facts) -> Iterator[Finding]:
    loading = facts.loading
    if not len(loading.start) or loading.total_ns < WORTH * facts.wall_ns:
        return
    alone = _alone(facts)
    by_line = sum((facts.by_line_of_cpu(one) for one in alone), np.zeros(facts.lines + 1, np.int64))
    saving = int(by_line.sum()) // facts.devices
    saving = max(saving - waited_longer_ns(facts), 0)
    # Without a device as much of it could run beside the rest as the rest takes. Of what is left, twice as many
    # processes would take half.
    saving = min(saving, max(facts.wall_ns - loading.total_ns, saving // 2)) if not facts.has_device else saving
    if saving < WORTH * facts.wall_ns:
        return
    evidence: Evidence = {
        "loading_ns": loading.total_ns,
        "batches": int(facts.analysis.phases.calls(facts.analysis.extent)[0]),
    }
    if facts.has_device:
        evidence["device_idle_ns"] = saving
    evidence |= {
        name: ns
        for name in ("loader_wait_ns", "worker_ns", "worker_cpu_ns")
        if (ns := int(facts.analysis.columns[name].sum()))
    }
    yield RULE.finding(
        facts,
        location=int(by_line[:-1].argmax()) if by_line[:-1].any() else -1,
        message="the next batch is not there when it is needed: "
        + ("the device is idle meanwhile" if facts.has_device else "nothing else runs meanwhile"),
        evidence=evidence,
        saving_ns=int(saving),
        remedy=_remedy(facts) + framework_option(facts, RULE.code),
    )


def _alone(facts: Facts) -> list[Intervals]:
    """When data is loaded and the device has nothing to do, by device; on the CPU, when data is loaded."""
    return facts.gaps.loader if facts.has_device else [facts.loading]


def _remedy(facts: Facts) -> str:
    has_workers = _has_workers(facts)
    if has_workers is None:
        return (
            "Load in other processes (`num_workers` of torch's `DataLoader`: the trace does not say how many it has), "
            "and make the slowest line of the loading cheaper."
        )
    if not has_workers:
        return (
            "Load in other processes, `DataLoader(…, num_workers=4, persistent_workers=True)`, "
            "and make the slowest line of the loading cheaper."
        )
    count = worker_count(facts.trace) or loader_workers(facts.trace)
    more = f"more than its {count} workers" if count else "more workers"
    workers = facts.analysis.columns["worker_ns"][:-1]
    if not workers.any():
        return (
            f"Give it {more} (`num_workers`), or make what they do cheaper: how long their lines take was not recorded."
        )
    place = facts.locations[int(workers.argmax())]
    slowest = f"{place.function}, line {place.line}"
    return f"Give it {more} (`num_workers`), or make the slowest line in them ({slowest}) cheaper."


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


RULE = Rule("DS003", "Data loading on the critical path", _find)

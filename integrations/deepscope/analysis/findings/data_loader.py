"""DS003: the training thread waits for data while nothing else can go on."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.found import Evidence, Found, Rule
from deepscope.analysis.intervals import Intervals

__all__ = ["RULE"]

WORTH = 0.05
"""Share of the wall time that loading takes by itself, from which on it is named."""


def _find(facts: Facts) -> Iterator[Found]:
    loading = facts.loading
    if not len(loading.start) or loading.total_ns < WORTH * facts.wall_ns:
        return
    alone = _alone(facts)
    saving = sum(one.total_ns for one in alone) // facts.devices
    # Without a device all loading could run beside the rest, but never more than the rest takes.
    saving = min(saving, facts.wall_ns - loading.total_ns) if not facts.has_device else saving
    if saving < WORTH * facts.wall_ns:
        return
    by_line = sum((facts.by_line_of_cpu(one) for one in alone), np.zeros(facts.lines + 1, np.int64))
    worker_ns = int(facts.analysis.columns["worker_cpu_ns"].sum())
    evidence: Evidence = {
        "loading_ns": loading.total_ns,
        "batches": int(facts.analysis.phases.calls(facts.analysis.extent)[0]),
    }
    if facts.has_device:
        evidence["device_idle_ns"] = saving
    if worker_ns:
        evidence["worker_cpu_ns"] = worker_ns
    yield Found(
        location=int(by_line[:-1].argmax()) if by_line[:-1].any() else -1,
        message="the next batch is not there when it is needed: "
        + ("the device is idle meanwhile" if facts.has_device else "nothing else runs meanwhile"),
        evidence=evidence,
        saving_ns=int(saving),
        remedy=_remedy(facts, has_workers=bool(worker_ns)),
    )


def _alone(facts: Facts) -> list[Intervals]:
    """When data is loaded and the device has nothing to do, by device; on the CPU, when data is loaded."""
    return facts.gaps.loader if facts.has_device else [facts.loading]


def _remedy(facts: Facts, *, has_workers: bool) -> str:
    if not has_workers:
        return (
            "Load in other processes, `DataLoader(…, num_workers=4, persistent_workers=True)`, "
            "and make the slowest line of the loading cheaper."
        )
    workers = facts.analysis.columns["worker_cpu_ns"][:-1]
    place = facts.attribution.scopes.locations[int(workers.argmax())] if workers.any() else None
    slowest = f" ({place.function}, line {place.line})" if place else ""
    return f"Give it more workers (`num_workers`), or make the slowest line in them{slowest} cheaper."


RULE = Rule("DS003", "Data loading on the critical path", _find)

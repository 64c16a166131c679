"""DS039: an operator runs on more threads than there are free cores."""

from __future__ import annotations

from collections.abc import Iterator

from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.rule import Rule
from deepscope.records import Evidence, Finding

LEAST_WAIT = 0.15
"""Of the time in which the process's threads could run they must have waited for a core."""


def _find(facts: Facts) -> Iterator[Finding]:
    machine, settings = facts.trace.header.machine, facts.trace.header.settings
    if machine is None or settings is None or not machine.cores:
        return
    waited = machine.core_wait_ratio or 0.0
    free = facts.free_cores
    if waited < LEAST_WAIT or settings.threads <= free:
        return
    saving_ns = waited * facts.wall_ns
    if facts.has_device:
        saving_ns = min(saving_ns, facts.idle_ns)
    others = machine.others_cores or 0.0
    evidence: Evidence = {
        "threads": settings.threads,
        "cores": machine.cores,
        "others_cores": others,
        "core_wait_ratio": waited,
    }
    yield RULE.finding(
        facts,
        location=-1,
        message=f"each operator of the CPU runs on {settings.threads} threads, and {_cores(free)} free: "
        f"the process waits for a core {waited:.0%} of the time that it could run",
        evidence=evidence,
        saving_ns=int(saving_ns),
        remedy=f"`torch.set_num_threads({free})`, or `OMP_NUM_THREADS={free}` for the whole process. Threads that wait "
        f"for each other keep cores busy; loader workers and other ranks need cores of their own{_used(others)}.",
        is_bound=True,
    )


def _cores(count: int) -> str:
    return "1 core is" if count == 1 else f"{count} cores are"


def _used(others: float) -> str:
    return f" (other processes used {others:.1f})" if others >= 0.1 else ""


RULE = Rule("DS039", "More threads than free cores", _find)

"""DS029: the container's CPU quota stops the process again and again."""

from __future__ import annotations

from collections.abc import Iterator

from deepscope.analysis.array_ops.intervals import Intervals
from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.rule import Rule
from deepscope.analysis.numbers.counter_levels import Level
from deepscope.records import Evidence, Finding

LEAST_PERIODS = 10
"""That must have passed in the window: a second, as containers have it."""
LEAST_SHARE = 0.1
"""Of the periods the process must have been stopped in."""


def _find(facts: Facts) -> Iterator[Finding]:
    account = facts.trace.header.counters
    periods = facts.levels.get(("container periods", "all"))
    stopped = facts.levels.get(("container periods", "throttled"))
    if account is None or periods is None or stopped is None or not account.container.cpus:
        return
    window = facts.analysis.window
    passed, stops = _count(periods, window), _count(stopped, window)
    if passed < LEAST_PERIODS or stops < LEAST_SHARE * passed:
        return
    share = min(stops / passed, 1.0)
    quota = account.container.cpus
    evidence: Evidence = {
        "quota_cpus": quota,
        "machine_cpus": float(account.cores),
        "stopped_ratio": round(share, 3),
        "periods": round(passed, 1),
    }
    used = facts.levels.get(("container CPU", "used"))
    if used is not None:
        evidence["used_cpus"] = round(_count(used, window) / max(_seconds(used, window), 1e-9) / 100, 2)
    settings = facts.trace.header.settings
    threads = settings.threads if settings is not None else 0
    if threads:
        evidence["torch_threads"] = float(threads)
    # In a period in which it was stopped it was so for a part of it, which is not known: at most all of it.
    saving = share * facts.wall_ns
    if facts.has_device:
        saving = min(saving, facts.idle_ns)
    fewer = (
        f"torch.set_num_threads({max(int(quota), 1)}) and fewer loader workers" if threads > quota else "Fewer threads"
    )
    yield RULE.finding(
        facts,
        location=-1,
        message=f"the container's CPU quota, {quota:g} cores, stops the process in {share:.0%} of the periods",
        evidence=evidence,
        saving_ns=int(saving),
        remedy=f"Ask for more CPU (Kubernetes: resources.limits.cpu; Docker: --cpus). {fewer} share the quota without "
        "being stopped: many threads use it up at the beginning of each period.",
    )


def _count(level: Level, window: Intervals) -> float:
    """What a rate sums to in the window."""
    parts = level.within(window.start, window.end)
    return float((parts.mean * parts.covered_ns).sum() / 1e9)


def _seconds(level: Level, window: Intervals) -> float:
    return float(level.within(window.start, window.end).covered_ns.sum() / 1e9)


RULE = Rule("DS029", "CPU quota of the container", _find)

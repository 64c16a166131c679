"""DS027: the run waits for data while a disk has more requests than it can serve."""

from __future__ import annotations

from collections.abc import Iterator

from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.rule import Rule
from deepscope.analysis.numbers.counter_levels import Level
from deepscope.records import Evidence, Finding
from deepscope.records.findings import severity_of

WORTH = 0.05
"""Loading must be at least this share of the wall time, as for DS003."""
LEAST_NS = 300_000_000
"""Of loading must have been sampled."""
LEAST_SAMPLES = 5
BUSY = 90.0
"""Percent of the time in which the disk has a request."""
QUEUE = 4.0
"""Requests at the disk at a time: with fewer, more readers would still get more out of it."""
SLOW_NS = 2_000_000
"""Time of a request, waiting in the queue included: a flash disk serves many at a time, and one that is far from its
limit answers each in a tenth of that."""


def _find(facts: Facts) -> Iterator[Finding]:
    loading = facts.loading
    if not len(loading.start) or facts.loading_ns < WORTH * facts.wall_ns:
        return
    found = []
    for (counter, disk), level in facts.levels.items():
        queue = facts.levels.get(("disk queue", disk))
        if counter != "disk busy" or queue is None or facts.samples(level) < LEAST_SAMPLES:
            continue
        busy, covered_ns = _mean(facts, level)
        depth, _ = _mean(facts, queue)
        request_ns = _request_ns(facts, disk, depth)
        is_slow = request_ns is None or request_ns >= SLOW_NS
        if covered_ns >= LEAST_NS and busy >= BUSY and depth >= QUEUE and is_slow:
            found.append((depth, disk, busy, request_ns))
    if not found:
        return
    depth, disk, busy, request_ns = max(found, key=lambda one: one[:2])
    evidence: Evidence = {
        "disk": disk,
        "busy_ratio": round(busy / 100, 3),
        "queue": round(depth, 1),
        "loading_ns": facts.loading_ns,
    }
    if request_ns is not None:
        evidence["request_us"] = round(request_ns / 1000, 1)
    for counter, name in (("disk read", "read_bytes_per_s"), ("disk written", "written_bytes_per_s")):
        if (rate := facts.levels.get((counter, disk))) is not None:
            evidence[name] = round(_mean(facts, rate)[0], 1)
    by_line = facts.by_line_of_cpu(loading)
    yield RULE.finding(
        facts,
        location=int(by_line[:-1].argmax()) if by_line[:-1].any() else -1,
        message=f"while data is awaited, disk {disk} is busy {busy:.0f}% of the time, with {depth:.0f} requests at it",
        evidence=evidence,
        saving_ns=0,  # what could be saved DS003 says
        remedy="More loader workers make the queue longer and nothing faster. Read less, or in larger pieces (shards "
        "in place of single files, smaller formats, a cache in memory), or put the data on a faster disk.",
        severity=severity_of(facts.loading_ns, facts.wall_ns),
    )


def _request_ns(facts: Facts, disk: str, depth: float) -> float | None:
    """How long a request took, by Little's law; None where requests were not counted or none was done."""
    requests = facts.levels.get(("disk requests", disk))
    rate = _mean(facts, requests)[0] if requests is not None else 0.0
    return depth / rate * 1e9 if rate > 0 else None


def _mean(facts: Facts, level: Level) -> tuple[float, int]:
    """The level while data is loaded, and how much of that time it is known."""
    parts = level.within(facts.loading.start, facts.loading.end)
    covered_ns = int(parts.covered_ns.sum())
    return float((parts.mean * parts.covered_ns).sum() / max(covered_ns, 1)), covered_ns


RULE = Rule("DS027", "Disk queue is full", _find)

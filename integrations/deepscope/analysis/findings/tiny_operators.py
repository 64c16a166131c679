"""DS007: on the CPU, a Python loop over operators that have next to nothing to do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from deepscope.analysis.algebra.ancestry import nearest_to
from deepscope.analysis.algebra.selection import Mask, by_line, of_kind
from deepscope.analysis.findings import logging_lines
from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.rule import Rule
from deepscope.analysis.findings.source_text import repeats_within
from deepscope.analysis.numbers.phases import PHASES
from deepscope.records import Finding
from deepscope.trace.arrays import pick
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64

__all__ = ["RULE"]

WORTH = 0.02
"""A line is named if it would save at least this share of the wall time."""
MANY = 200
"""A line loops if it starts something at least so often in a step (without steps: in all)."""
AT_ONCE = 20
"""One run of a line starts at most so much. If it starts more and holds no loop, the loop is a library's."""
TINY_NS = 10_000
"""A tiny operator takes at most this (the median): most of it is the call, not arithmetic. As much Python belongs to
one."""


def _find(facts: Facts) -> Iterator[Finding]:
    if facts.has_device or not facts.lines:
        return
    started = _started(facts)
    runs = facts.analysis.columns["calls"]
    steps = max(facts.steps, 1)
    logs = {(one.file, one.line) for one in logging_lines.RULE.found(facts)}
    for line in np.flatnonzero(started.times[:-1] >= MANY * steps).tolist():
        if (facts.locations[line].file, facts.locations[line].line) in logs:
            continue
        if started.times[line] > AT_ONCE * runs[line] and not repeats_within(facts.trace, facts.locations[line]):
            continue
        duration = started.duration_ns[started.location == line]
        # A few that the machine interrupted would decide the mean.
        median_ns = float(np.median(duration)) if len(duration) else 0.0
        # One run a step would do what all of them do.
        whole = _overhead_ns(facts, line, duration)
        saving = whole - whole * steps // int(started.times[line])
        if not len(duration) or median_ns > TINY_NS or saving < max(WORTH * facts.wall_ns, 1):
            continue
        yield RULE.finding(
            facts,
            location=line,
            message="a loop in Python calls operators on very little data each",
            evidence={
                "line_cpu_ns": max(int(facts.analysis.columns["self_cpu_ns"][line]), int(duration.sum())),
                "operators": len(duration),
                "operators_per_step": facts.per_step(len(duration)),
                "operator_median_us": round(median_ns / 1000, 2),
            },
            saving_ns=saving,
            remedy="Do it on the whole tensor at once; where Python numbers are needed, take all with one `.tolist()`.",
        )


@dataclass(frozen=True, slots=True)
class _Started:
    """What lines start on the training thread: forward, and outside the optimizer, whose loop is not the user's."""

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
    return np.asarray(found & (analysis.phases.at(start) != PHASES.index("optimizer")))


def _overhead_ns(facts: Facts, line: int, duration_ns: Int64) -> int:
    """What a line's operators cost by being many: their calls, and the Python around them."""
    python_ns = int(facts.analysis.columns["self_cpu_ns"][line]) - int(duration_ns.sum())
    return int(np.minimum(duration_ns, TINY_NS).sum()) + min(max(python_ns, 0), TINY_NS * len(duration_ns))


RULE = Rule("DS007", "Many tiny operators", _find)

"""DS012: on the CPU, one step or a few take much longer than the others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from deepscope.analysis.algebra.ancestry import nearest_to
from deepscope.analysis.algebra.intervals import Intervals, union
from deepscope.analysis.algebra.selection import Mask
from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.promised import promised_elsewhere
from deepscope.analysis.findings.rule import Rule
from deepscope.records import Finding
from deepscope.trace.model import Int64

__all__ = ["RULE", "SlowSteps", "find_slow_steps"]

WORTH = 0.05
"""Slow steps are named if they would save at least this share of the wall time."""
SLOW = 1.5
"""A step is slow if it takes more than this many times the median."""
FEWEST = 5
"""Fewer steps have no usual length."""
FEW = 0.25
"""If a greater share of the steps is slow, slow steps are usual."""
CAUSED = 0.5
"""A line is named if it makes at least this part of the difference."""


@dataclass(frozen=True, slots=True)
class SlowSteps:
    """Steps that are much longer than the median, and the line that they are longer for."""

    count: int
    excess_ns: int
    """How much longer they are than the median, together."""
    slowest: int
    """The number of the longest of them."""
    ratio: float
    """Its length in medians."""
    line: int
    """What they do oftener than the others: of lines that call each other the outermost."""
    saving_ns: int
    """The part of their excess that is that line's."""
    spent: Intervals
    """When they were on it."""


def find_slow_steps(facts: Facts) -> SlowSteps | None:
    """The slow steps of a trace of the CPU alone; None where no line tells them from the others."""
    steps = facts.attribution.training.steps
    if facts.has_device or not facts.lines or len(steps) < FEWEST or facts.steps < len(steps):
        return None
    start, end = steps.spans.start, steps.spans.end
    length = np.maximum(end - start - facts.recording.within(start, end), 0)
    usual = int(np.median(length))
    slow = length > SLOW * usual
    # The first step pays for what is set up once.
    slow[0] = False
    excess = int((length[slow] - usual).sum())
    if not slow.any() or slow.sum() > FEW * len(steps) or excess < max(WORTH * facts.wall_ns, 1):
        return None
    line, more_ns, spent = _cause(facts, slow)
    # What no line does oftener is the machine's doing, or the data's.
    saving = min(excess, more_ns)
    if saving < CAUSED * excess or saving < WORTH * facts.wall_ns:
        return None
    slowest = int(np.where(slow, length, -1).argmax())
    ratio = float(length[slowest]) / max(usual, 1)
    return SlowSteps(int(slow.sum()), excess, int(steps.number[slowest]), ratio, line, saving, spent)


def _cause(facts: Facts, slow: Mask) -> tuple[int, int, Intervals]:
    """The line that makes steps slow, how much longer they are for it, and when they were on it."""
    attribution, events = facts.attribution, facts.trace.events
    runs, steps = attribution.runs, attribution.training.steps
    here = events.thread[runs.nodes] == attribution.training.thread
    step = np.where(here, steps.of(events.start_ns[runs.nodes]), -1)

    def by_step(which: Mask, values: Int64) -> Int64:
        """Sums of runs by step and line; shape (steps, lines)."""
        result = np.zeros((len(steps), facts.lines), np.int64)
        np.add.at(result, (step[which], runs.location[which]), values[which])
        return result

    entered = by_step(step >= 0, np.ones(len(step), np.int64))
    oftener = entered[slow].mean(axis=0) > np.median(entered[~slow], axis=0)
    chosen = (step >= 0) & oftener[runs.location]
    outermost = chosen & (nearest_to(runs.caller, runs.caller, chosen) < 0)
    start, end = events.start_ns[runs.nodes], events.end_ns[runs.nodes]
    promised = promised_elsewhere(facts).overlap_ns(start, end)
    spent = by_step(outermost, np.maximum(end - start - promised - facts.recording.within(start, end), 0))
    more = np.maximum(spent[slow] - np.median(spent[~slow], axis=0), 0).sum(axis=0)
    line = int(more.argmax())
    ours = outermost & (runs.location == line) & slow[step]
    return line, int(more[line]), union(start[ours], end[ours])


def _find(facts: Facts) -> Iterator[Finding]:
    found = facts.once(find_slow_steps)
    if found is not None:
        yield RULE.finding(
            facts,
            location=found.line,
            message="a few steps take much longer than the others, for what this line does in them",
            evidence={
                "excess_ns": found.excess_ns,
                "slow_steps": found.count,
                "slowest_step": str(found.slowest),
                "slowest_step_ratio": round(found.ratio, 1),
            },
            saving_ns=found.saving_ns,
            remedy="Do it less often, once before the first step, or in another thread or process; or make it cheaper.",
        )


RULE = Rule("DS012", "A few slow steps", _find)

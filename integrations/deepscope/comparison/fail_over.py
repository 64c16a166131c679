"""Whether runs became slower by more than a limit: the decision that a build server is told as an exit code."""

from __future__ import annotations

from dataclasses import dataclass

from deepscope.comparison.compare import Comparison
from deepscope.comparison.differences import Difference

MATTERS = 0.01
"""Of a step: a row that grew by less fails nothing."""


@dataclass(frozen=True, slots=True)
class FailOverVerdict:
    """What is slower than allowed."""

    percent: float
    reasons: list[str]
    """One for each; none where all is well."""


def judge(comparison: Comparison, percent: float) -> FailOverVerdict:
    """Fails what is beyond noise and slower by more than `percent`: the step, or a row by its own time before.

    A row's growth must be a hundredth of the step, too. Rows that are new count together, less those that are gone, and
    by the step's time: code that was only written anew is no slower code.
    """
    step = comparison.step
    limit = percent / 100
    reasons = []
    if not step.within_noise and step.change_ns > limit * step.before_ns:
        reasons.append(f"a step is {_grown(step)}")
    for row in comparison.rows:
        if row.status in {"new", "gone"} or row.within_noise or (row.name == "duration" and comparison.by == "step"):
            continue
        if row.change_ns > limit * row.before_ns and row.change_ns >= MATTERS * step.before_ns:
            place = row.place
            name = f"{place.path}:{place.record.line}" if place is not None else row.name
            reasons.append(f"{name} is {_grown(row)}")
    replaced = comparison.replaced
    if not replaced.within_noise and replaced.change_ns > limit * step.before_ns:
        share = f"{replaced.change_ns / step.before_ns:.1%}" if step.before_ns else "all"
        reasons.append(f"what is new costs more than what is gone, by {share} of a step")
    return FailOverVerdict(percent, reasons)


def _grown(row: Difference) -> str:
    if not row.before_ns:
        return "slower: it took no time before"
    return f"slower by {row.change_ns / row.before_ns:.1%}, beyond noise"

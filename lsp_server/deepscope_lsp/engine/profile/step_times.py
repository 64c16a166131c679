"""How long each step of a run took, as the mean over the ranks."""

from __future__ import annotations

from deepscope.records import Profile

__all__ = ["mean_step_ns", "step_durations_ns", "steps_differ"]


def step_durations_ns(profile: Profile) -> list[float]:
    """The duration of each step; a profile has the sums over its ranks."""
    return [step.duration_ns / max(1, profile.totals.ranks) for step in profile.steps]


def mean_step_ns(profile: Profile) -> int | None:
    """The mean duration of a step; None where the trace has none."""
    durations = step_durations_ns(profile)
    return round(sum(durations) / len(durations)) if durations else None


def steps_differ(old: Profile, new: Profile) -> bool | None:
    """Whether no step of one run lasted as long as one of the other; None where a run has fewer than two steps."""
    before, now = step_durations_ns(old), step_durations_ns(new)
    if min(len(before), len(now)) < 2:
        return None
    return max(now) < min(before) or max(before) < min(now)

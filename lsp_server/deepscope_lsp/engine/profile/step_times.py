"""How long each step of a run took, as the mean over the ranks."""

from __future__ import annotations

from deepscope.records import Profile, step_length_ns


def step_durations_ns(profile: Profile) -> list[float]:
    """The duration of each step; a profile has the sums over its ranks."""
    return [step.duration_ns / max(1, profile.totals.ranks) for step in profile.steps]


def mean_step_ns(profile: Profile) -> int | None:
    """The mean duration of a step; None where the trace has none."""
    length_ns = step_length_ns(profile)
    return None if length_ns is None else round(length_ns)

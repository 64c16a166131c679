"""How long the steps are: percentiles, the slowest one, and the line that makes it so."""

from __future__ import annotations

import msgspec
import numpy as np

from deepscope.records import Profile
from deepscope.report.places import short_path
from deepscope.report.wording import printable, time_text

__all__ = ["StepTimes", "step_times", "step_times_words"]

PERCENTILES = (50, 90, 95, 99)


class StepTimes(msgspec.Struct, kw_only=True):
    """The durations of the steps, each the mean of the ranks, in nanoseconds."""

    count: int
    mean_ns: int
    min_ns: int
    p50_ns: int
    """Percentiles lie between the two steps around them, in proportion."""
    p90_ns: int
    p95_ns: int
    p99_ns: int
    max_ns: int
    slowest: int
    """The number of the longest step."""
    file: str
    """The line on which its training thread was longer than in other steps, by the most; "" for none."""
    line: int
    function: str
    excess_ns: int
    """Its time in the slowest step less the median over the steps; of several ranks, of the rank with most."""


def step_times(profile: Profile) -> StepTimes | None:
    """The durations of a profile's steps; None where there are none."""
    if not profile.steps:
        return None
    ranks = max(1, profile.totals.ranks)
    times = np.array([step.duration_ns for step in profile.steps], np.int64) // ranks
    slowest = profile.steps[int(times.argmax())]
    percentiles = {f"p{one}_ns": round(float(np.percentile(times, one))) for one in PERCENTILES}
    return StepTimes(
        count=len(times),
        mean_ns=int(times.sum()) // len(times),
        min_ns=int(times.min()),
        max_ns=int(times.max()),
        slowest=slowest.number,
        file=slowest.slow_file,
        line=slowest.slow_line,
        function=slowest.slow_function,
        excess_ns=slowest.slow_ns,
        **percentiles,
    )


def step_times_words(profile: Profile) -> list[tuple[str, str]]:
    """Entries of the foot, where there are steps to compare."""
    times = step_times(profile)
    if times is None or times.count < 2:
        return []
    shown = [f"p{one} {time_text(getattr(times, f'p{one}_ns')) or '0'}" for one in PERCENTILES]
    text = f"mean {time_text(times.mean_ns) or '0'}, min {time_text(times.min_ns) or '0'}, {', '.join(shown)}"
    over = time_text(times.max_ns - times.p50_ns) or "nothing"
    slow = f"step {times.slowest}, {time_text(times.max_ns) or '0'}: {over} over the median"
    if times.excess_ns:
        place = f"{short_path(times.file, profile.trace.project_root)}:{times.line}"
        slow += f"; {place} {times.function} took {time_text(times.excess_ns)} more than it usually does"
    elif profile.lines:
        slow += "; no line took longer than it usually does"
    return [("times", f"{text}, max {time_text(times.max_ns) or '0'}"), ("slowest", printable(slow))]

"""How long the steps are: percentiles, the slowest one, and the line that makes it so."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from deepscope.printable import printable
from deepscope.quantities import time_text
from deepscope.records import Profile, step_length_ns
from deepscope.records.places import short_place

PERCENTILES = (50, 90, 95, 99)


class StepTimeSummary(msgspec.Struct, kw_only=True):
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


def step_times(profile: Profile) -> StepTimeSummary | None:
    """The durations of a profile's steps; None where there are none."""
    if not profile.steps:
        return None
    ranks = max(1, profile.totals.ranks)
    times = sorted(step.duration_ns // ranks for step in profile.steps)
    slowest = max(profile.steps, key=lambda step: step.duration_ns)
    percentiles = {f"p{one}_ns": percentile(times, one) for one in PERCENTILES}
    return StepTimeSummary(
        count=len(times),
        mean_ns=round(step_length_ns(profile) or 0),
        min_ns=times[0],
        max_ns=times[-1],
        slowest=slowest.number,
        file=slowest.slow_file,
        line=slowest.slow_line,
        function=slowest.slow_function,
        excess_ns=slowest.slow_ns,
        **percentiles,
    )


def percentile(ordered: Sequence[int], percent: int) -> int:
    """Between the two values around it, in proportion, rounded down; `ordered` ascends and has one value at least."""
    place, part = divmod((len(ordered) - 1) * percent, 100)
    after = ordered[min(place + 1, len(ordered) - 1)]
    return ordered[place] + (after - ordered[place]) * part // 100


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
        place = short_place(times.file, times.line, profile.trace.project_root)
        slow += f"; {place} {times.function} took {time_text(times.excess_ns)} more than it usually does"
    elif profile.lines:
        slow += "; no line took longer than it usually does"
    return [("times", f"{text}, max {time_text(times.max_ns) or '0'}"), ("slowest", printable(slow))]

"""The steps."""

from __future__ import annotations

from typing import Any

from deepscope.analysis.algebra.extent import Extent
from deepscope.analysis.algebra.intervals import Intervals
from deepscope.analysis.algebra.selection import by_line
from deepscope.analysis.analysis import Analysis
from deepscope.analysis.numbers.idle import idle
from deepscope.analysis.numbers.phases import PHASES
from deepscope.analysis.numbers.step_excess import step_excess
from deepscope.analysis.numbers.waits import wait_by_line
from deepscope.analysis.ownership.attribution import Attribution
from deepscope.records import Step

__all__ = ["step_table"]


def step_table(analysis: Analysis) -> list[Step]:
    """The steps within the extent."""
    attribution = analysis.attribution
    work, steps = attribution.work, attribution.training.steps
    events, location, lines = attribution.trace.events, attribution.owners.location, len(attribution.scopes.locations)
    device = by_line(work.step, len(steps), work.duration_ns)
    excess = step_excess(attribution)
    result = []
    for i in range(len(steps)):
        span = Intervals(steps.spans.start[i : i + 1], steps.spans.end[i : i + 1])
        if not analysis.extent.holds(span.start).all():
            continue
        wall = analysis.phases.wall_ns(span).tolist()
        result.append(
            Step(
                number=int(steps.number[i]),
                start_ns=int(span.start[0]),
                duration_ns=span.total_ns,
                device_ns=int(device[i]),
                busy_ns=sum(int(one.overlap_ns(span.start, span.end)[0]) for one in work.busy.values()),
                idle_ns=sum(one.total_ns for one in idle(work, span)),
                wait_ns=int(wait_by_line(events, analysis.waits, location, lines, Extent(span)).sum()),
                phases={name: ns for name, ns in zip(PHASES, wall, strict=True) if ns},
                **_slow(attribution, int(excess.location[i]), int(excess.excess_ns[i])),
            )
        )
    return result


def _slow(attribution: Attribution, line: int, excess_ns: int) -> dict[str, Any]:
    """What a step says of the line that makes it long."""
    if line < 0:
        return {}
    place = attribution.scopes.locations[line]
    return {
        "slow_file": place.file,
        "slow_line": place.line,
        "slow_function": place.function,
        "slow_ns": excess_ns,
    }

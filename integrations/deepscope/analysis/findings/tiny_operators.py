"""DS007: on the CPU, a Python loop over operators that have next to nothing to do."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.found import Found, Rule
from deepscope.analysis.phases import PHASES
from deepscope.analysis.selection import by_line

__all__ = ["RULE"]

WORTH = 0.03
"""Share of the wall time of a line, from which on it is named."""
MANY = 200
"""Operators a step (without steps: in all) from which on a line counts as looping over them."""
TINY_NS = 10_000
"""Median time of such an operator: most of it goes for the call, not for arithmetic."""


def _find(facts: Facts) -> Iterator[Found]:
    if facts.has_device or not facts.lines:
        return
    attribution, analysis = facts.attribution, facts.analysis
    events, operators = attribution.trace.events, attribution.operators
    outer = operators.nodes[(operators.caller < 0) & ~attribution.backward[operators.nodes]]
    outer = outer[analysis.extent.holds(events.start_ns[outer]) & (events.thread[outer] == attribution.training_thread)]
    # One parameter after the other is the optimizer's own loop; no line of the user's can turn it round.
    outer = outer[analysis.phases.at(events.start_ns[outer]) != PHASES.index("optimizer")]
    location = attribution.location[outer]
    count = by_line(location, facts.lines)
    duration = events.duration_ns[outer]
    whole = np.maximum(analysis.columns["self_cpu_ns"], by_line(location, facts.lines, duration))
    # One operator a step would do what all of them do.
    saving = whole - whole * max(facts.steps, 1) // np.maximum(count, 1)
    many = (count >= MANY * max(facts.steps, 1)) & (saving >= max(WORTH * facts.wall_ns, 1))
    for line in np.flatnonzero(many[:-1]).tolist():
        # The mean would go by the few that the machine interrupted.
        median_ns = float(np.median(duration[location == line]))
        if median_ns > TINY_NS:
            continue
        yield Found(
            location=line,
            message="a loop in Python calls operators on very little data each",
            evidence={
                "line_cpu_ns": int(whole[line]),
                "operators": int(count[line]),
                "operators_per_step": facts.per_step(int(count[line])),
                "operator_median_us": round(median_ns / 1000, 2),
            },
            saving_ns=int(saving[line]),
            remedy="Do it on the whole tensor at once; where Python numbers are needed, take all with one `.tolist()`.",
        )


RULE = Rule("DS007", "Many tiny operators", _find)

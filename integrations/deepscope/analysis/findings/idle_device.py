"""DS005: the device is idle for long while the CPU does something else than launch on one line."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from deepscope.analysis.findings import worker_restarts
from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.line_remedies import line_remedy
from deepscope.analysis.findings.rule import Rule
from deepscope.analysis.numbers.idle_causes import occupied
from deepscope.records import Finding

WORTH = 0.03
"""A line is named if the device is idle because of it for at least this share of the wall time."""

_REMEDY = "Take this work out of the loop, or off the thread that launches."


def _find(facts: Facts) -> Iterator[Finding]:
    if not facts.has_device or not facts.lines:
        return
    window = facts.analysis.window
    rest = [gap.intersection(worker_restarts.restarts(facts).complement(window)) for gap in facts.gaps.rest]
    if sum(gap.total_ns for gap in rest) < WORTH * facts.wall_ns * facts.devices:
        return
    otherwise = occupied(facts.attribution, facts.analysis.phases, facts.analysis.waits)
    rest = [gap.intersection(otherwise.complement(window)) for gap in rest]
    if sum(gap.total_ns for gap in rest) < WORTH * facts.wall_ns * facts.devices:
        return
    idle = sum((facts.by_line_of_cpu(gap) for gap in rest), np.zeros(facts.lines + 1, np.int64))
    # What the framework does between the lines cannot be taken out of them.
    idle = np.maximum(idle - facts.analysis.columns["framework_ns"], 0)
    saving = idle // facts.devices
    for line in np.flatnonzero(saving[:-1] >= max(WORTH * facts.wall_ns, 1)).tolist():
        yield RULE.finding(
            facts,
            location=line,
            message="the device has nothing to do while the CPU does something else than launch on this line",
            evidence={"device_idle_ns": int(idle[line])},
            saving_ns=int(saving[line]),
            remedy=line_remedy(facts.trace, facts.locations[line]) or _REMEDY,
        )


RULE = Rule("DS005", "Idle device", _find, measured_on=("device",))

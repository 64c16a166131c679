"""DS024: as gradients are clipped, the CPU waits for their norm, or launches kernels for one after the other."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from deepscope.analysis.array_ops.selection import Mask, by_line, mask_of, named, of_kind
from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.recognised_calls import is_clip
from deepscope.analysis.findings.rule import Rule
from deepscope.analysis.findings.waits_by_cause import WaitCause
from deepscope.records import Evidence, Finding
from deepscope.trace.arrays import nearest_to
from deepscope.trace.kinds import Kind

WORTH = 0.005
"""A line is named if it would save at least this share of the wall time."""

_WAITS = "the CPU waits until the device has the norm of the gradients, and the device then for the CPU"
_LOOPS = "gradients are clipped one after the other, and the device is idle before each small kernel"
_CHECKED = "Do without the check for a norm that is not finite: `error_if_nonfinite=False`, torch's default."
_FABRIC = "Do without the check for a norm that is not finite: `fabric.clip_gradients(…, error_if_nonfinite=False)`."
_READ = "Keep the norm on the device (`norm.detach()`), and read it every hundred steps."
_ACCELERATED = "Call it with `foreach=True` (torch 2.0 or later, and its default for ordinary tensors of a GPU)."


def _find(facts: Facts) -> Iterator[Finding]:
    if not facts.has_device or not len(facts.clipping.calls):
        return
    waits = facts.waits.choose(facts.waits.cause == WaitCause.CLIPPING)
    every = facts.all_waits.choose(facts.all_waits.cause == WaitCause.CLIPPING)
    waited = by_line(waits.location, facts.lines, waits.end - waits.start)
    count = by_line(waits.location, facts.lines)
    after = np.where(facts.recurs(every.location, every.start), facts.gaps.clipped // facts.devices, 0)
    before = facts.gaps.clip_launch // facts.devices
    saving, checked = after + before, _checked(facts)
    for line in np.flatnonzero(saving >= max(WORTH * facts.wall_ns, 1)).tolist():
        evidence: Evidence = {}
        messages, remedies = [], []
        if after[line]:
            evidence |= {"wait_ns": int(waited[line]), "waits": int(count[line])}
            evidence |= {"waits_per_step": facts.per_step(int(count[line])), "device_idle_after_ns": int(after[line])}
            messages.append(_WAITS)
            remedies.append((_FABRIC if _is_fabrics(facts, line) else _CHECKED) if checked[line] else _READ)
        if before[line]:
            evidence["idle_before_ns"] = int(before[line])
            messages.append(_LOOPS)
            remedies.append(_ACCELERATED)
        yield RULE.finding(
            facts,
            location=line,
            message="; ".join(messages),
            evidence=evidence,
            saving_ns=int(saving[line]),
            remedy=" ".join(remedies),
        )


def _checked(facts: Facts) -> Mask:
    """At which lines a call asks whether the norm is finite, as `if logical_or(norm.isnan(), norm.isinf())` does.

    Shape (lines + 1,).
    """
    trace, parent = facts.trace, facts.attribution.calls.parent
    calls = mask_of(facts.clipping.calls, len(trace.events))
    asked = np.flatnonzero(named(trace, of_kind(trace, Kind.OPERATOR), "aten::is_nonzero".__eq__))
    asked = asked[nearest_to(asked, parent, calls) >= 0]
    return by_line(facts.attribution.owners.location[asked], facts.lines) > 0


def _is_fabrics(facts: Facts, line: int) -> bool:
    """Whether a line calls Fabric's method, which checks unless it is told not to."""
    if line >= facts.lines:
        return False
    place = facts.locations[line]

    def is_fabrics(function: str) -> bool:
        return is_clip(function) and function.endswith("clip_gradients")

    return place.line in facts.texts.file(place.file).lines_calling(is_fabrics)


RULE = Rule("DS024", "Gradient clipping holds up the device", _find)

"""What fills memory while it is short: activations, and gradients of the step before (DS030, DS031)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from deepscope.analysis.array_ops.selection import by_line
from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.library_options import in_modules
from deepscope.analysis.findings.rule import Rule
from deepscope.analysis.findings.source_text import line_text
from deepscope.analysis.numbers.memory import DeviceCurve, capacity_bytes
from deepscope.analysis.numbers.memory_blocks import KINDS
from deepscope.records import Edit, Finding, Severity
from deepscope.trace.arrays import pick
from deepscope.trace.model import Int64

SHORT = 0.7
"""Memory is short if the peak takes this part of what the device has, or if an allocation failed."""
LARGE = 0.1
"""A saving of this part of the peak is large."""


def is_short(facts: Facts, curve: DeviceCurve) -> bool:
    """Whether it would help to need less memory; False where the trace does not say what the device has."""
    account = facts.trace.header.memory
    if account is not None and account.failure is not None:
        return account.failure.on_cpu == (curve.device_type == 0)
    capacity = capacity_bytes(facts.trace, curve.device_type, curve.device_id)
    return bool(capacity) and max(curve.peak_bytes, int(curve.reserved_bytes.max())) >= SHORT * capacity


def memory_severity(facts: Facts, curve: DeviceCurve, saving_bytes: int) -> Severity:
    """Where memory is short a large saving is a warning, a smaller one worth a word; else it is a hint."""
    if not is_short(facts, curve):
        return "hint"
    return "warning" if saving_bytes >= LARGE * curve.peak_bytes else "info"


STALE_GRADIENTS_WORTH = 0.05
"""The place is named if the peak would be lower by this part of it."""
_GRADIENTS = KINDS.index("gradients")
_KEEPS, _RELEASES = "set_to_none=False", "set_to_none=True"
_ZEROES = "Optimizer.zero_grad#"


def _find_stale_gradients(facts: Facts) -> Iterator[Finding]:
    use = facts.analysis.memory
    for curve in use.devices:
        stale = _stale_bytes(facts, curve)
        saving = use.saving_without(curve, stale)
        if saving < max(STALE_GRADIENTS_WORTH * curve.peak_bytes, 1):
            continue
        line = _zeroing_line(facts)
        yield STALE_GRADIENTS.finding(
            facts,
            location=line,
            message="the gradients of the step before are held during the forward pass",
            evidence={
                "gradients_of_peak_bytes": int(stale[curve.place].max()),
                "peak_bytes": curve.peak_bytes,
                "saving_of_peak_bytes": saving,
            },
            saving_ns=0,
            remedy="Call `optimizer.zero_grad()` right behind `optimizer.step()`, and leave `set_to_none` at True.",
            edits=_edits(facts, line),
            severity=memory_severity(facts, curve, saving),
        )


def _stale_bytes(facts: Facts, curve: DeviceCurve) -> Int64:
    """Bytes of gradients that no longer and not yet are of use, after each event; shape of all events.

    A gradient is of no use from the optimizer's step to the next backward pass. In that pass the gradients would come
    one after the other: the part of them that would not be there yet falls in a line from all to nothing.
    """
    use, account = facts.analysis.memory, facts.trace.header.memory
    stale = np.zeros(len(use.rows), np.int64)
    blocks = use.blocks
    of_device = (blocks.kind == _GRADIENTS) & (blocks.device == curve.code)
    surveys = sorted(account.surveys, key=lambda one: one.at_ns) if account is not None and of_device.any() else []
    moments = np.array([one.at_ns for one in surveys], np.int64)
    places = np.searchsorted(use.trace.memory.ts_ns[use.rows], moments, "left")
    stepped, begun = -1, -1
    for survey, place in zip(surveys, places.tolist(), strict=True):
        if survey.occasion == "optimizer":
            stepped, begun = place, -1
        elif survey.occasion == "backward" and stepped >= 0 and begun < 0:
            begun = place
            held = of_device & (blocks.begin < stepped) & (blocks.end > stepped)
            stale[stepped:begun] += use.live_bytes(held)[stepped:begun]
        elif survey.occasion == "gradients" and begun >= 0:
            kept = of_device & (blocks.begin < stepped) & (blocks.end > place)
            whole = int(blocks.size_bytes[kept].sum())
            length = max(place - begun, 1)
            stale[begun:place] += whole * np.arange(length, 0, -1)[: place - begun] // length
            stepped = begun = -1
    return stale


def _zeroing_line(facts: Facts) -> int:
    """The line that most often sets gradients to zero; -1 where the trace does not say."""
    trace, location = facts.trace, facts.attribution.owners.location
    names = np.array([name.startswith(_ZEROES) for name in trace.strings] + [False], np.bool_)
    found = location[np.flatnonzero(names[trace.events.name])]
    counts = by_line(found, facts.lines)[:-1]
    return int(np.argmax(counts)) if counts.any() else -1


def _edits(facts: Facts, line: int) -> list[Edit]:
    place = facts.locations[line] if line >= 0 else None
    text = line_text(facts.trace, place) if place is not None else ""
    return [Edit(place.line, _KEEPS, _RELEASES)] if place is not None and text.count(_KEEPS) == 1 else []


STALE_GRADIENTS = Rule("DS031", "Gradients held during the forward pass", _find_stale_gradients)


MOST = 0.4
"""Activations dominate if they are this part of the peak."""
KEPT_ACTIVATIONS_WORTH = 0.1
"""A line is named if the peak could be lower by this part of it."""
_ACTIVATIONS = KINDS.index("activations")


def _find_kept_activations(facts: Facts) -> Iterator[Finding]:
    use = facts.analysis.memory
    for curve in use.devices:
        kept = curve.held_bytes[:, _ACTIVATIONS]
        if int(kept.sum()) < MOST * curve.peak_bytes or not is_short(facts, curve):
            continue
        is_kept = (use.blocks.kind == _ACTIVATIONS) & (use.blocks.device == curve.code)
        line_of_block = pick(use.line, use.blocks.begin)
        for line in np.flatnonzero(kept[:-1] >= max(KEPT_ACTIVATIONS_WORTH * curve.peak_bytes, 1)).tolist():
            saving = use.saving_without(curve, use.live_bytes(is_kept & (line_of_block == line)))
            if saving < KEPT_ACTIVATIONS_WORTH * curve.peak_bytes:
                continue
            module, option = in_modules(facts, KEPT_ACTIVATIONS.code, _operators_of(facts, line))
            yield KEPT_ACTIVATIONS.finding(
                facts,
                location=line,
                message="memory is short, and most of it is kept for the backward pass" + module,
                evidence={
                    "activations_of_peak_bytes": int(kept[line]),
                    "peak_bytes": curve.peak_bytes,
                    "saving_of_peak_bytes": saving,
                },
                saving_ns=0,
                remedy="Compute it anew in the backward pass: `torch.utils.checkpoint.checkpoint(block, x, "
                "use_reentrant=False)` around each block that this line runs. It costs its forward pass once more."
                + option,
                severity=memory_severity(facts, curve, saving),
            )


def _operators_of(facts: Facts, line: int) -> Int64:
    """The forward operators (events) of a line, in the whole trace."""
    attribution = facts.attribution
    nodes = attribution.operators.nodes
    own = (attribution.owners.location[nodes] == line) & ~attribution.calls.backward[nodes]
    return np.asarray(nodes[own])


KEPT_ACTIVATIONS = Rule("DS030", "Activations fill the memory", _find_kept_activations)

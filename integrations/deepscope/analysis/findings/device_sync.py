"""DS001: the CPU waits for the device in every step, so that the device waits for the CPU afterwards."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from deepscope.analysis.array_ops.selection import Mask, by_line
from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.rule import Rule
from deepscope.analysis.findings.source_text import line_text
from deepscope.analysis.findings.waits_by_cause import WaitCause
from deepscope.records import Edit, Finding

WORTH_SAVING = 0.005
WORTH_WAITING = 0.05
"""Shares of the wall time. A line is named from the first on by what it would save, from the second on by what it
waits, if that costs anything."""
COSTS_ANYTHING = 0.0005
_OTHERS = (WaitCause.COPY_IN, WaitCause.CHECK, WaitCause.SEARCH, WaitCause.CLIPPING)
"""DS002's, DS022's, DS023's, and DS024's."""

_MESSAGES = {
    WaitCause.VALUE: "reading a value (`.item()`, `float()`, `bool()`, `print`) waits for all work of the device",
    WaitCause.SHAPE: "a result whose shape depends on values (boolean indexing, `nonzero`) waits for the device",
    WaitCause.COPY_OUT: "bringing a tensor to the host (`.cpu()`, `.tolist()`) waits for all work of the device",
    WaitCause.EXPLICIT: "the program itself waits for the device (`torch.cuda.synchronize()` or another blocking call)",
    WaitCause.OTHER: "an operator on this line waits for the device",
}
_REMEDIES = {
    WaitCause.VALUE: "Keep the value on the device (`.detach()`), add up there, and read it every hundred steps.",
    WaitCause.SHAPE: "Use a form of fixed shape: `torch.where`, multiplication by the mask, `masked_fill`, or `topk`.",
    WaitCause.COPY_OUT: "Collect on the device and copy once; or copy with `non_blocking=True` into pinned memory.",
    WaitCause.EXPLICIT: "Take it out of the loop; to time the device use `torch.cuda.Event(enable_timing=True)`.",
    WaitCause.OTHER: "Look up which operator it is (`deepscope report --by operator`), and do without it in the loop.",
}


def _find(facts: Facts) -> Iterator[Finding]:
    waits = facts.waits
    waits = waits.choose(~np.isin(waits.cause, _OTHERS))
    if not facts.has_device or not len(waits):
        return
    duration = waits.end - waits.start
    waited = by_line(waits.location, facts.lines, duration)
    count = by_line(waits.location, facts.lines)
    saving = facts.gaps.synced // facts.devices
    waits_long = (waited >= WORTH_WAITING * facts.wall_ns) & (saving >= COSTS_ANYTHING * facts.wall_ns)
    worth = (saving >= WORTH_SAVING * facts.wall_ns) | waits_long
    for line in np.flatnonzero(worth & (count > 0) & _recurs(facts)).tolist():
        location = line if line < facts.lines else -1
        here = waits.location == location
        cause = WaitCause(int(np.bincount(waits.cause[here], weights=duration[here]).argmax()))
        yield RULE.finding(
            facts,
            location=location,
            message=_MESSAGES[cause],
            evidence={
                "wait_ns": int(waited[line]),
                "waits": int(count[line]),
                "waits_per_step": facts.per_step(int(count[line])),
                "device_idle_after_ns": int(saving[line]),
            },
            saving_ns=int(saving[line]),
            remedy=_REMEDIES[cause],
            edits=_edits(facts, location) if cause is WaitCause.VALUE else (),
        )


def _recurs(facts: Facts) -> Mask:
    waits = facts.all_waits.choose(~np.isin(facts.all_waits.cause, _OTHERS))
    return facts.recurs(waits.location, waits.start)


# `total += loss.item()` does the same on the device; anywhere else a number may be needed.
_SUM_OF_VALUES = re.compile(r"^\s*[\w.\[\]\"']+\s*\+=\s*[\w.\[\]]+(\.item\(\))\s*(?:#.*)?$")


def _edits(facts: Facts, location: int) -> tuple[Edit, ...]:
    if location < 0:
        return ()
    place = facts.locations[location]
    if _SUM_OF_VALUES.match(line_text(facts.trace, place)):
        return (Edit(place.line, ".item()", ".detach()"),)
    return ()


RULE = Rule("DS001", "Device synchronisation in the hot loop", _find)

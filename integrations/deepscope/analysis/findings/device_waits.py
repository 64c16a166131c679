"""The CPU waits for the device, for copies to it, or for the norm of gradients that it clips (DS001, DS002, DS024)."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from deepscope.analysis.array_ops.intervals import covered_by
from deepscope.analysis.array_ops.selection import Mask, by_line, distinct, mask_of, named, of_kind
from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.library_options import framework_option, pins_memory
from deepscope.analysis.findings.recognised_calls import is_clip
from deepscope.analysis.findings.rule import Rule
from deepscope.analysis.findings.value_checks import NO_CHECKS, makes_distribution
from deepscope.analysis.findings.waits_by_cause import WaitCause
from deepscope.analysis.numbers.work import copy_direction
from deepscope.records import Edit, Evidence, Finding
from deepscope.trace.arrays import distinct_values, nearest_to
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64

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


def _find_device_sync(facts: Facts) -> Iterator[Finding]:
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
        yield DEVICE_SYNC.finding(
            facts,
            location=location,
            message=_MESSAGES[cause],
            evidence={
                "wait_ns": int(waited[line]),
                **facts.counted("waits", int(count[line])),
                "device_idle_after_ns": int(saving[line]),
            },
            saving_ns=int(saving[line]),
            remedy=_device_sync_remedy(facts, location, cause),
            edits=_device_sync_edits(facts, location) if cause is WaitCause.VALUE else (),
        )


def _recurs(facts: Facts) -> Mask:
    waits = facts.all_waits.choose(~np.isin(facts.all_waits.cause, _OTHERS))
    return facts.recurs(waits.location, waits.start)


def _device_sync_remedy(facts: Facts, location: int, cause: WaitCause) -> str:
    if cause is WaitCause.VALUE and location >= 0 and makes_distribution(facts, location):
        return NO_CHECKS
    return _REMEDIES[cause]


# `total += loss.item()` does the same on the device; anywhere else a number may be needed.
_SUM_OF_VALUES = re.compile(r"^\s*[\w.\[\]\"']+\s*\+=\s*[\w.\[\]]+(\.item\(\))\s*(?:#.*)?$")


def _device_sync_edits(facts: Facts, location: int) -> tuple[Edit, ...]:
    if location < 0:
        return ()
    place = facts.locations[location]
    if _SUM_OF_VALUES.match(facts.texts.at(place).text):
        return (Edit(place.line, ".item()", ".detach()"),)
    return ()


DEVICE_SYNC = Rule("DS001", "Device synchronisation in the hot loop", _find_device_sync)


def _find_host_copies(facts: Facts) -> Iterator[Finding]:
    if not facts.has_device:
        return
    every, pageable = _copies(facts)
    work, waits = facts.work, facts.waits
    launched = work.launch_ns[every]
    inside = facts.analysis.window.locate(launched) >= 0
    if not inside.any():
        return
    recurs = facts.recurs(work.location[every], launched)
    rows, pageable = every[inside], pageable[inside]
    location = work.location[rows]
    blocked = by_line(
        waits.location, facts.lines, np.where(waits.cause == WaitCause.COPY_IN, waits.end - waits.start, 0)
    )
    blocking = pageable | (blocked[location] > 0)
    rows, pageable, location = rows[blocking], pageable[blocking], location[blocking]
    copying = by_line(location, facts.lines, _without_kernels(facts, rows))
    saving = (copying + facts.gaps.copied) // facts.devices
    worth = saving >= HOST_COPIES.worth_ns(facts)
    size = np.maximum(facts.trace.events.size_bytes[work.event[rows]], 0)
    columns = {
        "copies": by_line(location, facts.lines),
        "pageable_copies": by_line(location[pageable], facts.lines),
        "copied_bytes": by_line(location, facts.lines, size),
        "copying_ns": by_line(location, facts.lines, work.duration_ns[rows]),
        "blocked_ns": blocked,
    }
    for line in np.flatnonzero(worth & recurs).tolist():
        place = line if line < facts.lines else -1
        from_pageable = bool(columns["pageable_copies"][line])
        yield HOST_COPIES.finding(
            facts,
            location=place,
            message=_message(from_pageable=from_pageable),
            evidence={name: int(values[line]) for name, values in columns.items()},
            saving_ns=int(saving[line]),
            remedy=_PINNED if pins_memory(facts.trace) else _REMEDY + framework_option(facts, HOST_COPIES.code),
            edits=_host_copies_edits(facts, place),
        )


_REMEDY = "Load into pinned memory (`DataLoader(…, pin_memory=True)`), and copy with `non_blocking=True`."
_PINNED = (
    "Copy with `non_blocking=True`. The data loaders pin their memory already: what is copied here was made "
    "elsewhere, or its copy is waited for."
)


def _message(*, from_pageable: bool) -> str:
    if from_pageable:
        return (
            "copies from pageable memory pass through a buffer of the driver, hold the CPU, and overlap with no kernel"
        )
    return "copies to the device are waited for before anything else is launched"


def _copies(facts: Facts) -> tuple[Int64, Mask]:
    """All copies from the host (positions among the work), and which come from pageable memory."""
    work, trace = facts.work, facts.trace
    rows = np.flatnonzero(work.kind == Kind.MEMCPY)
    names = trace.events.name[work.event[rows]]
    table = np.zeros((2, len(trace.strings)), np.bool_)
    for name in distinct(names, len(trace.strings)):
        text = trace.strings[name]
        table[:, name] = copy_direction(text) == "h2d", "ageable" in text
    from_host, pageable = table[0, names], table[1, names]
    return rows[from_host], pageable[from_host]


def _without_kernels(facts: Facts, rows: Int64) -> Int64:
    """How long no kernel ran on the device during each copy, within the window; shape (k,)."""
    work = facts.work
    result = np.zeros(len(rows), np.int64)
    is_kernel = work.kind == Kind.KERNEL
    for device in distinct_values(work.device[rows]).tolist():
        here = is_kernel & (work.device == device)
        free = covered_by(work, here).complement(facts.analysis.window)
        mine = work.device[rows] == device
        result[mine] = free.overlap_ns(work.start_ns[rows[mine]], work.end_ns[rows[mine]])
    return result


_TO_DEVICE = re.compile(r"\.cuda\(\)|\.to\((?:self\.)?device\)")


def _host_copies_edits(facts: Facts, location: int) -> tuple[Edit, ...]:
    """`non_blocking=True` in a copy that is easy to read, and `pin_memory=True` in the file's data loaders."""
    if location < 0:
        return ()
    place, trace = facts.locations[location], facts.trace
    calls = _TO_DEVICE.findall(facts.texts.at(place).text)
    if len(calls) != 1:
        return ()
    old = calls[0]
    new = old.replace("()", "(non_blocking=True)") if old.endswith("()") else f"{old[:-1]}, non_blocking=True)"
    pinned = () if pins_memory(trace) else facts.texts.file(place.file).with_keyword("DataLoader", "pin_memory", "True")
    return (Edit(place.line, old, new), *pinned)


HOST_COPIES = Rule("DS002", "Blocking copies to the device", _find_host_copies, measured_on=("device",), worth=0.005)


_WAITS = "the CPU waits until the device has the norm of the gradients, and the device then for the CPU"
_LOOPS = "gradients are clipped one after the other, and the device is idle before each small kernel"
_CHECKED = "Do without the check for a norm that is not finite: `error_if_nonfinite=False`, torch's default."
_FABRIC = "Do without the check for a norm that is not finite: `fabric.clip_gradients(…, error_if_nonfinite=False)`."
_READ = "Keep the norm on the device (`norm.detach()`), and read it every hundred steps."
_ACCELERATED = "Call it with `foreach=True` (torch 2.0 or later, and its default for ordinary tensors of a GPU)."


def _find_clipping(facts: Facts) -> Iterator[Finding]:
    if not facts.has_device or not len(facts.clipping.calls):
        return
    waits = facts.waits.choose(facts.waits.cause == WaitCause.CLIPPING)
    every = facts.all_waits.choose(facts.all_waits.cause == WaitCause.CLIPPING)
    waited = by_line(waits.location, facts.lines, waits.end - waits.start)
    count = by_line(waits.location, facts.lines)
    after = np.where(facts.recurs(every.location, every.start), facts.gaps.clipped // facts.devices, 0)
    before = facts.gaps.clip_launch // facts.devices
    saving, checked = after + before, _checked(facts)
    for line in np.flatnonzero(saving >= CLIPPING.worth_ns(facts)).tolist():
        evidence: Evidence = {}
        messages, remedies = [], []
        if after[line]:
            evidence |= {"wait_ns": int(waited[line]), **facts.counted("waits", int(count[line]))}
            evidence["device_idle_after_ns"] = int(after[line])
            messages.append(_WAITS)
            remedies.append((_FABRIC if _is_fabrics(facts, line) else _CHECKED) if checked[line] else _READ)
        if before[line]:
            evidence["idle_before_ns"] = int(before[line])
            messages.append(_LOOPS)
            remedies.append(_ACCELERATED)
        yield CLIPPING.finding(
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


CLIPPING = Rule("DS024", "Gradient clipping holds up the device", _find_clipping, worth=0.005)

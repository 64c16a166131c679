"""DS002: copies to the device that block the CPU: from pageable memory, or waited for."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from deepscope.analysis.array_ops.intervals import Intervals, union
from deepscope.analysis.array_ops.selection import Mask, by_line, distinct
from deepscope.analysis.findings.already_set import pins_memory
from deepscope.analysis.findings.facts import Facts
from deepscope.analysis.findings.library_options import framework_option
from deepscope.analysis.findings.rule import Rule
from deepscope.analysis.findings.source_text import line_text, with_keyword
from deepscope.analysis.findings.waits_by_cause import WaitCause
from deepscope.analysis.numbers.work import copy_direction
from deepscope.records import Edit, Finding
from deepscope.trace.arrays import distinct_values
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64

WORTH = 0.005
"""A line is named if it would save at least this share of the wall time."""


def _find(facts: Facts) -> Iterator[Finding]:
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
    worth = saving >= max(WORTH * facts.wall_ns, 1)
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
        yield RULE.finding(
            facts,
            location=place,
            message=_message(from_pageable=from_pageable),
            evidence={name: int(values[line]) for name, values in columns.items()},
            saving_ns=int(saving[line]),
            remedy=_PINNED if pins_memory(facts.trace) else _REMEDY + framework_option(facts, RULE.code),
            edits=_edits(facts, place),
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
        kernels: Intervals = union(work.start_ns[here], work.end_ns[here])
        free = kernels.complement(facts.analysis.window)
        mine = work.device[rows] == device
        result[mine] = free.overlap_ns(work.start_ns[rows[mine]], work.end_ns[rows[mine]])
    return result


_TO_DEVICE = re.compile(r"\.cuda\(\)|\.to\((?:self\.)?device\)")


def _edits(facts: Facts, location: int) -> tuple[Edit, ...]:
    """`non_blocking=True` in a copy that is easy to read, and `pin_memory=True` in the file's data loaders."""
    if location < 0:
        return ()
    place, trace = facts.locations[location], facts.trace
    calls = _TO_DEVICE.findall(line_text(trace, place))
    if len(calls) != 1:
        return ()
    old = calls[0]
    new = old.replace("()", "(non_blocking=True)") if old.endswith("()") else f"{old[:-1]}, non_blocking=True)"
    pinned = () if pins_memory(trace) else with_keyword(trace, place.file, "DataLoader", "pin_memory", "True")
    return (Edit(place.line, old, new), *pinned)


RULE = Rule("DS002", "Blocking copies to the device", _find, measured_on=("device",))

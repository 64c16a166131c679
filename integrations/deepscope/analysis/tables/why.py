"""What holds lines and operators back: their cost by cause, and the figures beside it."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

import numpy as np

from deepscope.analysis.analysis import Analysis
from deepscope.analysis.array_ops.selection import Columns, Mask, by_line
from deepscope.analysis.numbers.roofline import DTYPES, Roofline, roofline
from deepscope.analysis.numbers.work import exposed_ns, is_copy_in, queueing
from deepscope.records import Rate, Why
from deepscope.trace.arrays import distinct_places, pick
from deepscope.trace.model import Int64

SHORT_KERNEL_NS = 5_000
"""A shorter kernel is mostly its own beginning and end: a device takes 2 to 3 µs for these."""
DISPATCH_NS = 5_000
"""An operator on the CPU whose own time is shorter is mostly dispatch."""


class WorkCauses(NamedTuple):
    """What each piece of work is held back by; arrays of shape (w,)."""

    columns: Columns
    """Nanoseconds and counts by field of `Why`."""
    rated: Mask
    """Whether a roof tells of it: the rest of its time is in `columns`."""
    roofline: Roofline


def work_causes(analysis: Analysis) -> WorkCauses:
    """The time of each piece of work within the extent by cause."""
    of = analysis.attribution
    trace, work, counted = of.trace, of.work, analysis.counted
    found = roofline(trace, of.operators, work, analysis.flops.counted)
    whole = np.where(counted, work.duration_ns, 0)
    on_device = work.metric == "device"
    transfers = is_copy_in(trace, work, "h2d", "d2h")
    apart = work.collective | transfers
    exposed = _exposed(analysis, transfers)
    # A kernel that is divided among several lines is as short as it is in whole.
    own = trace.events.duration_ns[work.event] if on_device else work.duration_ns
    short = ~apart & (own < (SHORT_KERNEL_NS if on_device else DISPATCH_NS))
    rated = ~apart & ~short & (found.moved_bytes >= 0)
    queue = queueing(work)
    launched = queue.launched & counted & work.counts
    occupancy = np.clip(trace.events.occupancy[work.event].astype(np.int64), -1, 100)
    columns = {
        "short_ns": np.where(short, whole, 0),
        "communication_ns": np.where(work.collective, exposed, 0),
        "copies_ns": np.where(transfers, exposed, 0),
        "hidden_ns": np.where(apart, whole - exposed, 0),
        "unknown_ns": np.where(apart | short | rated, 0, whole),
        "kernels": launched.astype(np.int64),
        "delay_ns": np.where(launched, queue.delay_ns, 0),
        "queued": np.where(launched, queue.queued, 0),
        "occupied_ns": np.where(occupancy >= 0, whole * occupancy // 100, 0),
        "occupancy_known_ns": np.where(occupancy >= 0, whole, 0),
    }
    return WorkCauses(columns, rated & counted, found)


def _exposed(analysis: Analysis, transfers: Mask) -> Int64:
    """The part of collectives and copies that no kernel hides, within the extent; without a device all of it."""
    work = analysis.attribution.work
    whole = np.where(analysis.counted, work.duration_ns, 0)
    if work.metric != "device":
        return whole
    return np.where(analysis.counted, exposed_ns(work, work.collective | transfers), 0)


def why_of_lines(analysis: Analysis, causes: WorkCauses) -> list[Why]:
    """Of each line, by its place among the locations."""
    of, lines = analysis.attribution, len(analysis.attribution.scopes.locations)
    beside = analysis.idle_causes
    if of.work.metric != "device":
        columns = analysis.columns
        named = {"host_ns": "python_cpu_ns", "data_ns": "loader_wait_ns", "waiting_ns": "blocked_ns"}
        named["core_wait_ns"] = "core_wait_ns"
        beside = beside | {name: columns[other] for name, other in named.items()}
    return _records(
        causes, of.work.location, lines, of.work.duration_ns, _without(beside, analysis.columns["framework_ns"])
    )


def _without(beside: Columns, framework_ns: Int64) -> Columns:
    """Idle or Python's time by cause without the framework's part of it; columns of shape (lines + 1,).

    A thread loses its core anywhere in what it runs, so both bear it by their lengths.
    """
    host, core = beside["host_ns"], beside.get("core_wait_ns", np.zeros_like(framework_ns))
    running = np.minimum(framework_ns, host + core)
    of_core = (core * (running / np.maximum(host + core, 1))).astype(np.int64)
    of_host = running - of_core
    blocked = framework_ns - running
    less = {"host_ns": host - of_host, "core_wait_ns": core - of_core, "waiting_ns": beside["waiting_ns"] - blocked}
    return {name: less.get(name, values) for name, values in beside.items()}


def why_of_calls(analysis: Analysis, causes: WorkCauses, group: Int64, groups: int) -> list[Why]:
    """Of groups of calls of operators, over the work that shares their operations and bytes (`Roofline.unit`).

    `group` is that of each call, shape (k,).
    """
    of = analysis.attribution
    unit = np.where(causes.roofline.unit >= 0, causes.roofline.unit, pick(of.operators.around, of.work.node))
    return _records(causes, pick(group, unit), groups, of.work.duration_ns, {})


def _records(causes: WorkCauses, group: Int64, groups: int, duration_ns: Int64, beside: Columns) -> list[Why]:
    """One record a group; `group` has shape (w,), -1 for none, `beside` has shape (groups + 1,) each."""
    columns = {name: by_line(group, groups, values).tolist() for name, values in causes.columns.items()}
    columns |= {name: values.tolist() for name, values in beside.items()}
    rates = _rates(causes, group, duration_ns)
    names = tuple(columns)
    rows = zip(*(columns[name] for name in names), strict=True)
    return [
        Why(rates=rates.get(place, []), **dict(zip(names, row, strict=True)))
        for place, row in zip(range(groups), rows, strict=False)
    ]


def _rates(causes: WorkCauses, group: Int64, duration_ns: Int64) -> dict[int, list[Rate]]:
    """The rows of each group, by type and then by intensity."""
    rows = np.flatnonzero(causes.rated & (group >= 0))
    line = causes.roofline
    intensity = line.intensity[rows] + 64
    found, place = distinct_places((group[rows] * len(DTYPES) + line.dtype[rows]) * 128 + intensity)
    sums = np.zeros((3, len(found)), np.int64)
    for column, values in zip(sums, (duration_ns, line.flops, line.moved_bytes), strict=True):
        np.add.at(column, place, values[rows])
    result: dict[int, list[Rate]] = defaultdict(list)
    for key, *amounts in zip(found.tolist(), *sums.tolist(), strict=True):
        head, exponent = divmod(key, 128)
        owner, dtype = divmod(head, len(DTYPES))
        result[owner].append(Rate(DTYPES[dtype], exponent - 64, *amounts))
    return result

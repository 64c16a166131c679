"""What holds lines and operators back: operations and bytes of each piece of work, and the cost by cause."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from deepscope.analysis.analysis import Analysis
from deepscope.analysis.array_ops.selection import Columns, Mask, by_line, distinct_rows, named, of_kind
from deepscope.analysis.numbers.arguments import FLOATS, Tensor, arguments
from deepscope.analysis.numbers.byte_formulas import bytes_formula, bytes_of_call
from deepscope.analysis.numbers.flop_formulas import LARGEST, UNREADABLE
from deepscope.analysis.numbers.work import exposed_ns, is_copy_in, queueing
from deepscope.analysis.ownership.owners import Operators, Work
from deepscope.records import Rate, Why
from deepscope.trace.arrays import distinct_places, nearest, pick, summable
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64, Trace

DTYPES = ("", "float32", "tf32", "bfloat16", "float16", "float8", "float64", "complex64", "other")
"""Types of what is computed with; the first stands for an unknown one."""
_WIDTHS = (0, 1, 2, 4, 8)


class Moved(NamedTuple):
    """What calls of operators move; both of shape (q,)."""

    size_bytes: Int64
    """-1 where it is not known."""
    dtype: npt.NDArray[np.uint8]
    """Of the first tensor of floats: a place in `DTYPES`."""


def moved_by(trace: Trace, events: Int64, widths: Int64) -> Moved:
    """Bytes of operators, each distinct call worked out once.

    Args:
        trace: any trace.
        events: the operators; shape (q,).
        widths: bytes of an element in lists of tensors, 0 where nothing tells; shape (q,).
    """
    size_bytes = np.full(len(events), -1, np.int64)
    dtype = np.zeros(len(events), np.uint8)
    columns = trace.events
    has_formula = named(trace, of_kind(trace, Kind.OPERATOR), lambda name: bytes_formula(name) is not None)
    rows = np.flatnonzero(has_formula[events] & (columns.dtypes[events] >= 0))
    chosen = events[rows]
    calls, place = distinct_rows(
        columns.name[chosen],
        columns.shapes[chosen],
        columns.dtypes[chosen],
        columns.strides[chosen],
        columns.concrete[chosen],
        np.searchsorted(_WIDTHS, widths[rows]),
    )
    found = [_of_call(trace.strings, call) for call in calls]
    if found:
        values = np.array([one[0] for one in found], np.int64)
        size_bytes[rows] = np.where(summable(values[place], LARGEST), values[place], -1)
        dtype[rows] = np.array([one[1] for one in found], np.uint8)[place]
    return Moved(size_bytes, dtype)


def _of_call(strings: list[str], call: tuple[int, ...]) -> tuple[int, int]:
    """Bytes and type of a call; its words are indexes into `strings`, -1 for none."""
    name, shapes, dtypes, strides, concrete, width = call
    if shapes < 0:
        return -1, 0
    try:
        dims, words, steps = (json.loads(strings[one]) if one >= 0 else [] for one in (shapes, dtypes, strides))
        given = arguments(dims, words, steps, _WIDTHS[width])
        moved = bytes_of_call(strings[name], given, json.loads(strings[concrete]) if concrete >= 0 else [])
        if moved is not None:
            return moved, _computed_in([one for one in given if isinstance(one, Tensor)])
    except UNREADABLE:
        pass
    return -1, 0


def _computed_in(tensors: list[Tensor]) -> int:
    """The narrowest type of floats among tensors of two dimensions or more: biases and scales are often wider."""
    wide = [one for one in tensors if one.dtype in FLOATS and len(one.sizes) > 1]
    if not wide:
        return 0
    name = min(wide, key=lambda one: one.width).dtype
    return DTYPES.index(name) if name in DTYPES else DTYPES.index("other")


_TYPE_IN_KERNEL = re.compile(r"OpaqueType<(\d+)u?>|\b(double|float|c10::Half|c10::BFloat16|__nv_bfloat16|__half)\b")


def element_widths(trace: Trace, kernels: npt.NDArray[np.integer]) -> Int64:
    """Bytes of an element that kernels work on, as their names tell; 0 where they do not.

    `kernels` are names (indexes into the strings), shape (q,).
    """
    names, place = distinct_places(kernels)
    return np.array([_width_of(trace.strings[name]) for name in names.tolist()], np.int64)[place]


def _width_of(kernel: str) -> int:
    match = _TYPE_IN_KERNEL.search(kernel)
    if match is None:
        return 0
    width = int(match[1]) if match[1] and len(match[1]) == 1 else {"double": 8, "float": 4}.get(match[2] or "", 2)
    return width if width in _WIDTHS else 0


class Roofline(NamedTuple):
    """Of each piece of work; arrays of shape (w,)."""

    unit: Int64
    """Position in `Operators.nodes` of the operator whose operations and bytes it shares; -1 for none."""
    flops: Int64
    moved_bytes: Int64
    """-1 where they are not known."""
    dtype: npt.NDArray[np.uint8]
    """What the operations are of, a place in `DTYPES`; 0 for what counts none."""
    intensity: Int64
    """Operations a byte, as the power of two below; 0 for what counts none."""


def roofline(trace: Trace, operators: Operators, work: Work, flops: Int64) -> Roofline:
    """Operations and bytes, each operator's divided among its kernels by their time.

    A kernel belongs to the operator around its launch that has FLOPs, else to the innermost one. A copy on the device
    moves its bytes twice, a fill once. `flops` are those of each operator (`OperatorFlops.counted`).
    """
    unit = _units(operators, work, flops)
    known = np.flatnonzero(unit >= 0)
    place = distinct_places(unit[known])
    of_unit = _of_units(trace, operators, work, known, place)
    moved = np.full(len(work), -1, np.int64)
    counted = np.zeros(len(work), np.int64)
    dtype = np.zeros(len(work), np.uint8)
    intensity = np.zeros(len(work), np.int64)
    weight, inverse = work.duration_ns[known], place[1]
    size_bytes, operations = of_unit.size_bytes, flops[place[0]]
    is_known = size_bytes[inverse] >= 0
    moved[known] = np.where(is_known, _divided(np.maximum(size_bytes, 0), weight, inverse), -1)
    counted[known] = np.where(is_known, _divided(operations, weight, inverse), 0)
    counts = (operations > 0) & (size_bytes > 0)
    exponent = np.zeros(len(operations), np.int64)
    exponent[counts] = np.clip(np.floor(np.log2(operations[counts] / size_bytes[counts])), -60, 60).astype(np.int64)
    intensity[known] = exponent[inverse]
    dtype[known] = np.where(counts, of_unit.dtype, 0)[inverse]
    _set_tf32(trace, work, dtype)
    _set_copies(trace, work, moved)
    return Roofline(unit, counted, moved, dtype, intensity)


def _units(operators: Operators, work: Work, flops: Int64) -> Int64:
    innermost = pick(operators.around, work.node)
    with_flops = pick(nearest(operators.caller, flops > 0), innermost)
    unit = np.where(with_flops >= 0, with_flops, innermost)
    is_kernel = (work.kind == Kind.KERNEL) | (work.kind == Kind.OPERATOR)
    return np.where(is_kernel & ~work.collective, unit, -1)


def _of_units(trace: Trace, operators: Operators, work: Work, rows: Int64, place: tuple[Int64, Int64]) -> Moved:
    units, inverse = place
    kernel = np.zeros(len(units), np.int64)
    kernel[inverse] = trace.events.name[work.event[rows]]
    widths = element_widths(trace, kernel) if work.metric == "device" else np.zeros(len(units), np.int64)
    return moved_by(trace, operators.nodes[units], widths)


def _divided(values: Int64, weight: Int64, group: Int64) -> Int64:
    """Each group's value divided among its rows by weight; the last row of a group has what rounding leaves.

    `values` has shape (g,), the others shape (q,).
    """
    if not len(group):
        return np.zeros(0, np.int64)
    whole = np.bincount(group, weight, len(values))
    part = np.floor(values[group] * np.divide(weight, whole[group], where=whole[group] > 0, out=np.zeros(len(group))))
    shares = np.minimum(part.astype(np.int64), values[group])
    left = values.copy()
    np.subtract.at(left, group, shares)
    last = np.zeros(len(values), np.int64)
    last[group] = np.arange(len(group))
    shares[last] += left
    return shares


# Tensor cores multiply float32 as TF32: `…_tf32f32_…`, `s1688gemm`, `tensorop`.
_TF32 = re.compile(r"tf32|tensorop_s|s1688|s16816|bf16x", re.IGNORECASE)


def _set_tf32(trace: Trace, work: Work, dtype: npt.NDArray[np.uint8]) -> None:
    rows = np.flatnonzero((dtype == DTYPES.index("float32")) & (work.kind == Kind.KERNEL))
    is_tf32 = trace.named(work.event[rows], lambda name: _TF32.search(name) is not None)
    dtype[rows[is_tf32]] = DTYPES.index("tf32")


def _set_copies(trace: Trace, work: Work, moved: Int64) -> None:
    for kind, times in ((Kind.MEMCPY, 2), (Kind.MEMSET, 1)):
        rows = np.flatnonzero(work.kind == kind)
        size_bytes = trace.events.size_bytes[work.event[rows]]
        moved[rows] = np.where(size_bytes > 0, size_bytes * times, -1)


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

"""Operations and bytes of each piece of work, and of what type and intensity it is."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from deepscope.analysis.array_ops.ancestry import nearest
from deepscope.analysis.numbers.moved_bytes import DTYPES, element_widths, moved_by
from deepscope.analysis.ownership.owners import Operators
from deepscope.analysis.ownership.work import Work
from deepscope.trace.arrays import distinct_places, pick
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64, Trace


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


class _OfUnits(NamedTuple):
    size_bytes: Int64
    dtype: npt.NDArray[np.uint8]


def _of_units(trace: Trace, operators: Operators, work: Work, rows: Int64, place: tuple[Int64, Int64]) -> _OfUnits:
    units, inverse = place
    kernel = np.zeros(len(units), np.int64)
    kernel[inverse] = trace.events.name[work.event[rows]]
    widths = element_widths(trace, kernel) if work.metric == "device" else np.zeros(len(units), np.int64)
    moved = moved_by(trace, operators.nodes[units], widths)
    return _OfUnits(moved.size_bytes, moved.dtype)


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
    names, place = distinct_places(trace.events.name[work.event[rows]])
    is_tf32 = np.array([_TF32.search(trace.strings[name]) is not None for name in names.tolist()], np.bool_)
    dtype[rows[is_tf32[place]]] = DTYPES.index("tf32")


def _set_copies(trace: Trace, work: Work, moved: Int64) -> None:
    for kind, times in ((Kind.MEMCPY, 2), (Kind.MEMSET, 1)):
        rows = np.flatnonzero(work.kind == kind)
        size_bytes = trace.events.size_bytes[work.event[rows]]
        moved[rows] = np.where(size_bytes > 0, size_bytes * times, -1)

"""FLOPs of operators: from the shapes of their arguments; each product counted once."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from deepscope.analysis.array_ops.ancestry import nearest
from deepscope.analysis.array_ops.selection import Mask
from deepscope.analysis.numbers.flop_formulas import FORMULAS, UNREADABLE, flops_of_call, lacks_formula
from deepscope.analysis.ownership.operators import Operators
from deepscope.trace.arrays import distinct_places, pick
from deepscope.trace.kineto.bounds import summable
from deepscope.trace.model import Int64, Trace
from deepscope.trace.names import CONVOLUTIONS

_LARGEST = 2**60


class OperatorFlops(NamedTuple):
    """FLOPs of operators by their position in `Operators.nodes`; arrays of shape (k,)."""

    counted: Int64
    """0 where an operator around it has some already."""
    unknown: Mask
    """Which multiply, have recorded shapes, and no formula tells how much: neither of them, nor of one around or within
    them."""


def flops_of_operators(trace: Trace, operators: Operators) -> OperatorFlops:
    """FLOPs by operator; of nested ones (`aten::convolution` calls `aten::_convolution`) the outermost known counts."""
    names = trace.events.name[operators.nodes]
    flops = np.full(len(operators.nodes), -1, np.int64)
    rows = np.flatnonzero(_named(trace, FORMULAS.__contains__)[names])
    found = _from_shapes(trace, operators.nodes[rows])
    flops[rows] = np.where((found < 0) | summable(found, _LARGEST), found, 0)
    known = flops >= 0
    multiplies = _named(trace, lambda name: name in FORMULAS or lacks_formula(name))[names]
    counts = flops > 0
    inner = pick(nearest(operators.caller, counts), operators.caller) >= 0
    unknown = multiplies & ~known & (trace.events.shapes[operators.nodes] >= 0)
    if unknown.any():
        above = pick(nearest(operators.caller, known), operators.caller) >= 0
        unknown &= ~above & ~_around(operators.caller, known)
    return OperatorFlops(np.where(counts & ~inner, flops, 0), unknown)


def _around(caller: Int64, chosen: Mask) -> Mask:
    """Which nodes have a chosen one below them."""
    found = np.zeros(len(caller), np.bool_)
    at = np.unique(caller[chosen])
    while len(at := at[at >= 0]):
        found[at] = True
        at = np.unique(caller[at])
    return found


def _named(trace: Trace, wanted: Callable[[str], bool]) -> Mask:
    """Which strings are wanted names."""
    return np.array([wanted(text) for text in trace.strings] + [False], np.bool_)


def _from_shapes(trace: Trace, events: Int64) -> Int64:
    """FLOPs of operators that have a formula, each distinct call worked out once; -1 where unknown."""
    columns = trace.events
    width = len(trace.strings) + 1
    named = columns.name[events].astype(np.int64) * width + columns.shapes[events] + 1
    shaped, place = distinct_places(named)
    worded, place_of_words = distinct_places(place * width + columns.concrete[events] + 1)
    calls, row = distinct_places(place_of_words * width + columns.strides[events] + 1)
    values = []
    for call in calls.tolist():
        words = int(worded[call // width])
        name, shapes = divmod(int(shaped[words // width]), width)
        values.append(_flops_of_call(trace.strings, name, shapes, words % width, call % width))
    return np.array(values, np.int64)[row]


def _flops_of_call(strings: list[str], name: int, shapes: int, concrete: int, strides: int) -> int:
    """`shapes`, `concrete` and `strides` are indexes into `strings` from 1 on, 0 for none."""
    if not shapes:
        return -1
    try:
        words = json.loads(strings[concrete - 1]) if concrete else []
        dims = json.loads(strings[shapes - 1])
        if strides and strings[name] not in CONVOLUTIONS:
            dims = _dense(dims, json.loads(strings[strides - 1]))
        found = flops_of_call(strings[name], dims, words)
    except UNREADABLE:
        return -1
    return -1 if found is None else found


def _dense(dims: list[Any], strides: list[Any]) -> list[Any]:
    """The shapes; None for sparse and nested tensors, of which torch writes no strides."""
    missing = [()] * (len(dims) - len(strides))
    return [
        None if sizes and not steps and isinstance(sizes[0], int) else sizes
        for sizes, steps in zip(dims, [*strides, *missing], strict=True)
    ]

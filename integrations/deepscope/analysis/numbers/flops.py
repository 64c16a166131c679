"""FLOPs of operators: from the shapes of their arguments; each product counted once."""

from __future__ import annotations

import json

import numpy as np

from deepscope.analysis.algebra.ancestry import nearest
from deepscope.analysis.algebra.selection import Mask
from deepscope.analysis.numbers.flop_formulas import FORMULAS, UNREADABLE, flops_of_call
from deepscope.analysis.ownership.operators import Operators
from deepscope.trace.arrays import distinct_places, pick
from deepscope.trace.kineto.bounds import summable
from deepscope.trace.model import Int64, Trace

__all__ = ["flops_of_operators"]

_LARGEST = 2**60


def flops_of_operators(trace: Trace, operators: Operators) -> Int64:
    """FLOPs by operator (position in `Operators.nodes`), 0 where an operator around it has some already; shape (k,).

    `aten::convolution` calls `aten::_convolution`, which calls a library's: the outermost known one counts.
    """
    flops = np.zeros(len(operators.nodes), np.int64)
    rows = np.flatnonzero(_has_formula(trace)[trace.events.name[operators.nodes]])
    found = _from_shapes(trace, operators.nodes[rows])
    flops[rows] = np.where(summable(found, _LARGEST), found, 0)
    known = flops > 0
    if not known.any():
        return flops
    inner = pick(nearest(operators.caller, known), operators.caller) >= 0
    return np.where(known & ~inner, flops, 0)


def _has_formula(trace: Trace) -> Mask:
    """Which strings are names of operators with a formula."""
    return np.array([text in FORMULAS for text in trace.strings] + [False], np.bool_)


def _from_shapes(trace: Trace, events: Int64) -> Int64:
    """FLOPs of operators that have a formula, each distinct call worked out once; 0 where the arguments do not tell."""
    columns = trace.events
    width = len(trace.strings) + 1
    named = columns.name[events].astype(np.int64) * width + columns.shapes[events] + 1
    shaped, position = distinct_places(named)
    calls, row = distinct_places(position * width + columns.concrete[events] + 1)
    values = [
        _flops_of_call(trace.strings, *divmod(int(shaped[call // width]), width), call % width)
        for call in calls.tolist()
    ]
    return np.array(values, np.int64)[row]


def _flops_of_call(strings: list[str], name: int, shapes: int, concrete: int) -> int:
    """`shapes` and `concrete` are indexes into `strings` from 1 on, 0 for none."""
    if not shapes:
        return 0
    try:
        words = json.loads(strings[concrete - 1]) if concrete else []
        return flops_of_call(strings[name], json.loads(strings[shapes - 1]), words) or 0
    except UNREADABLE:
        return 0

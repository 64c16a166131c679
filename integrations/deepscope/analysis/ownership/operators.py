"""Operators: how they nest, and their own time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deepscope.analysis.array_ops.ancestry import nearest, position_in, self_values
from deepscope.analysis.array_ops.selection import of_kind
from deepscope.trace.arrays import pick
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64, Trace


@dataclass(frozen=True, slots=True)
class Operators:
    """The operators of a trace; arrays of shape (k,) but for `around`."""

    nodes: Int64
    """Their events, ascending."""
    caller: Int64
    """Position in `nodes` of the operator that each was called from, -1 for none."""
    self_ns: Int64
    """Time in each less the operators called from it."""
    around: Int64
    """By event, the position in `nodes` of the innermost operator at or above it, -1 for none; shape (n,)."""


def find_operators(trace: Trace, parent: Int64) -> Operators:
    """All operators; `parent` is the event that encloses each one on its thread, -1 for none, shape (n,)."""
    is_operator = of_kind(trace, Kind.OPERATOR)
    nodes = np.flatnonzero(is_operator)
    around = position_in(nodes, nearest(parent, is_operator), len(parent))
    caller = pick(around, parent[nodes])
    return Operators(nodes, caller, self_values(trace.events.duration_ns[nodes], caller), around)

"""Operators by line: how many it starts, and the FLOPs of all on it."""

from __future__ import annotations

import numpy as np

from deepscope.analysis.algebra.extent import Extent
from deepscope.analysis.algebra.selection import Columns, Mask, by_line
from deepscope.analysis.ownership.calls import CallForest
from deepscope.analysis.ownership.locations import Scopes
from deepscope.analysis.ownership.operators import Operators
from deepscope.analysis.ownership.owners import Owners
from deepscope.trace.model import Events, Int64

__all__ = ["operator_columns"]


def operator_columns(
    events: Events,
    operators: Operators,
    *,
    calls: CallForest,
    scopes: Scopes,
    owners: Owners,
    flops: Int64,
    extent: Extent,
) -> Columns:
    """Operators and FLOPs; columns of shape (lines + 1,). `flops` are those of each operator, shape (k,)."""
    counted = extent.holds(events.start_ns[operators.nodes])
    location = owners.location[operators.nodes]
    lines = len(scopes.locations)
    outermost = counted & _outermost(operators, calls, scopes, owners.open_scope)
    return {
        "operators": by_line(location[outermost], lines),
        "flops": by_line(location[counted], lines, flops[counted]),
    }


def _outermost(operators: Operators, calls: CallForest, scopes: Scopes, open_scope: Int64) -> Mask:
    """Operators that a line itself starts: no other stands between; autograd's own spans are left out; shape (k,)."""
    outermost = operators.caller < 0
    if scopes.source != "call_stack":
        outermost |= open_scope[operators.nodes] != open_scope[operators.nodes[operators.caller]]
    engine = calls.root[operators.nodes] == operators.nodes
    return np.asarray(outermost & ~engine)

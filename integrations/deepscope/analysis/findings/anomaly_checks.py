"""The operators by which autograd's engine looks for NaN, with anomaly detection on."""

from __future__ import annotations

import numpy as np

from deepscope.analysis.array_ops.selection import mask_of, named, of_kind
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64, Trace
from deepscope.trace.names import is_backward_root

ASKS = "aten::isnan"
"""The first operator of each check."""
_CHECKS = frozenset({ASKS, "aten::_is_any_true", "aten::is_nonzero", "aten::item"})


def anomaly_checks(trace: Trace, parent: Int64) -> Int64:
    """Such operators (events, ascending); `parent` is the event that encloses each one on its thread, shape (n,).

    torch/csrc/autograd/engine.cpp calls `isnan(gradient)._is_any_true().item()` behind the node, in its own span. A
    hook of the user's may read a value there, too; nobody but the engine asks for NaN before.
    """
    operators = of_kind(trace, Kind.OPERATOR)
    asks = np.flatnonzero(named(trace, operators, ASKS.__eq__) & (parent >= 0))
    if not len(asks):
        return asks
    engine = named(trace, operators, is_backward_root)
    checked = mask_of(parent[asks], len(parent)) & engine
    return np.flatnonzero(named(trace, operators, _CHECKS.__contains__) & (parent >= 0) & checked[parent])

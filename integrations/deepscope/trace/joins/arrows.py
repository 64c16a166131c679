"""Arrows between events (flow events), joined by their ids: Ascend's lead from a call to the work that it launched.

msprof (https://gitee.com/ascend/msprof-analyze) says by `HostToDevice` arrows which call launched a piece of work; the
`connection_id` of the two is not always the same.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from deepscope.trace.arrays import first_with
from deepscope.trace.joins.nesting import innermost
from deepscope.trace.model import Flows, Int32, Int64, Kind

__all__ = ["arrow_ends", "correlation_by_arrows"]


def arrow_ends(arrows: Flows) -> tuple[Int64, Int64]:
    """Tail and head of each arrow that has both (rows of `arrows`); several heads may have one tail."""
    tails, heads = np.flatnonzero(arrows.is_start), np.flatnonzero(~arrows.is_start)
    at = first_with(arrows.id[tails], arrows.id[heads])
    return tails[at[at >= 0]], heads[at >= 0]


def correlation_by_arrows(
    arrows: Flows,
    *,
    start_ns: Int64,
    end_ns: Int64,
    thread: Int32,
    kind: npt.NDArray[np.uint8],
    correlation: Int64,
) -> Int64:
    """`correlation`, where each piece of work at the head of an arrow has that of the call around the tail; shape (n,).

    Arrows stand on the threads that `thread` names.
    """
    tails, heads = arrow_ends(arrows)
    calls = np.flatnonzero((kind == Kind.RUNTIME) & (correlation >= 0))
    work = np.flatnonzero((kind >= Kind.KERNEL) & (kind <= Kind.DEVICE_SPAN))
    call = innermost(arrows.ts_ns[tails], arrows.thread[tails], start_ns[calls], end_ns[calls], thread[calls])
    target = innermost(arrows.ts_ns[heads], arrows.thread[heads], start_ns[work], end_ns[work], thread[work])
    hit = (call >= 0) & (target >= 0)
    joined: Int64 = correlation.copy()
    joined[work[target[hit]]] = correlation[calls[call[hit]]]
    return joined

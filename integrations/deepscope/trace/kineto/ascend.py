"""Ascend's `trace_view.json` made like the others: calls on the threads that made them, work joined to its calls.

msprof (https://gitee.com/ascend/msprof-analyze) puts the calls into CANN under a process of their own, and says by
`HostToDevice` arrows which call launched a piece of work; the `connection_id` of the two is not always the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from deepscope.trace.joins.nesting import innermost
from deepscope.trace.model import Flows, Int32, Int64, Kind

__all__ = ["CANN", "connect", "home_threads"]

CANN = "CANN"


def home_threads(threads: list[tuple[Any, Any]], process_names: list[str], used: npt.NDArray[np.bool_]) -> Int32:
    """For each thread the one that its events go to: from CANN's to that of the same number, if that is `used`."""
    home = np.arange(len(threads), dtype=np.int32)
    if CANN in process_names:
        own = {tid: i for i, (_, tid) in enumerate(threads) if used[i] and process_names[i] != CANN}
        for i, (_, tid) in enumerate(threads):
            if process_names[i] == CANN:
                home[i] = own.get(tid, i)
    return home


def connect(
    arrows: Flows,
    *,
    start_ns: Int64,
    end_ns: Int64,
    thread: Int32,
    kind: npt.NDArray[np.uint8],
    correlation: Int64,
) -> None:
    """Give each piece of work at the head of a `HostToDevice` arrow the correlation of the call around its tail.

    Changes `correlation` in place; arrows stand on the threads that `thread` names.
    """
    tails, heads = np.flatnonzero(arrows.is_start), np.flatnonzero(~arrows.is_start)
    calls = np.flatnonzero((kind == Kind.RUNTIME) & (correlation >= 0))
    work = np.flatnonzero((kind >= Kind.KERNEL) & (kind <= Kind.DEVICE_SPAN))
    if not len(tails) or not len(heads) or not len(calls) or not len(work):
        return
    tails = tails[np.argsort(arrows.id[tails], kind="stable")]
    at = np.minimum(np.searchsorted(arrows.id[tails], arrows.id[heads]), len(tails) - 1)
    joined = arrows.id[tails[at]] == arrows.id[heads]
    heads, tails = heads[joined], tails[at[joined]]
    call = innermost(arrows.ts_ns[tails], arrows.thread[tails], start_ns[calls], end_ns[calls], thread[calls])
    target = innermost(arrows.ts_ns[heads], arrows.thread[heads], start_ns[work], end_ns[work], thread[work])
    hit = (call >= 0) & (target >= 0)
    correlation[work[target[hit]]] = correlation[calls[call[hit]]]

"""How far the CPU was ahead: from the launch of each piece of work to its start, and what was queued before it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from deepscope.analysis.array_ops.selection import Mask
from deepscope.analysis.ownership.owned_work import OwnedWork
from deepscope.trace.arrays import distinct_values
from deepscope.trace.model import Int64


class Queueing(NamedTuple):
    """Of each piece of work, 0 where its launch is not known; arrays of shape (w,)."""

    launched: Mask
    delay_ns: Int64
    """From the start of the launching call to its own start; clocks that disagree give 0."""
    queued: Int64
    """Work of its device that was launched before its launch and not finished by then."""


def queueing(work: OwnedWork) -> Queueing:
    """The delays and queues of all work of a trace."""
    launched = (work.node >= 0) & (work.metric == "device")
    delay = np.where(launched, np.maximum(work.start_ns - work.launch_ns, 0), 0)
    queued = np.zeros(len(work), np.int64)
    for device in distinct_values(work.device[launched]).tolist():
        rows = np.flatnonzero(launched & (work.device == device))
        at = work.launch_ns[rows]
        whole = work.counts[rows]
        before = np.searchsorted(np.sort(at[whole]), at, side="left")
        # Clocks of CPU and device may disagree by a little: nothing ends before it is launched.
        ends = np.sort(np.maximum(work.end_ns[rows], at)[whole])
        queued[rows] = np.maximum(before - np.searchsorted(ends, at, side="right"), 0)
    return Queueing(launched, delay, queued)

"""Collectives and copies: how much of their time no kernel on the same device hides."""

from __future__ import annotations

import numpy as np

from deepscope.analysis.algebra.intervals import union
from deepscope.analysis.algebra.selection import Mask
from deepscope.analysis.ownership.work import Work
from deepscope.trace.arrays import distinct_values
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64


def exposed_ns(work: Work, which: Mask | None = None) -> Int64:
    """The part of each collective that no kernel but a collective overlaps on its device; shape (w,).

    `which` are the pieces of work asked for, the collectives if it is None; other work has 0.
    """
    asked = work.collective if which is None else which
    result = np.zeros(len(work), np.int64)
    for device in distinct_values(work.device[asked]).tolist():
        here = work.device == device
        ours = here & asked
        other = here & ~work.collective & (work.kind == Kind.KERNEL)
        compute = union(work.start_ns[other], work.end_ns[other])
        start, end = work.start_ns[ours], work.end_ns[ours]
        result[ours] = end - start - compute.overlap_ns(start, end)
    return result

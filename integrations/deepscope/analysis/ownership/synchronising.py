"""Which events make a CPU thread wait for the device."""

from __future__ import annotations

import numpy as np

from deepscope.analysis.algebra.selection import named, of_kind
from deepscope.trace.model import Int64, Kind, Trace
from deepscope.trace.names import is_sync, is_sync_operator

__all__ = ["find_waits"]


def find_waits(trace: Trace, *, has_device: bool) -> Int64:
    """The events (ascending indexes, shape (k,)) in which a CPU thread waits for the device.

    In a trace without device work an operator such as `.item()` waits for nothing.
    """
    found = named(trace, of_kind(trace, Kind.RUNTIME), is_sync)
    if has_device:
        found |= named(trace, of_kind(trace, Kind.OPERATOR), is_sync_operator)
    return np.flatnonzero(found)

"""Bounds of the numbers in a trace that can be true; others would overflow the sums that they enter."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from deepscope.trace.model import Int64

Mask = npt.NDArray[np.bool_]

MOST_BYTES = 2**50
"""A pebibyte, of one allocation or copy."""
_YEAR_NS = 365 * 86_400 * 10**9
_MOST = 2**62
"""Of a sum: half of what 64 bits hold, so that differences of sums hold too."""


def summable(values: Int64, most: int) -> Mask:
    """Which values lie in [-most, most], and are small enough that all of them together cannot overflow."""
    found = (values >= -most) & (values <= most)
    if np.abs(values[found]).sum(dtype=np.float64) >= _MOST:
        fair = _MOST // len(values)
        found &= (values >= -fair) & (values <= fair)
    return np.asarray(found)


def possible_times(start_ns: Int64, duration_ns: Int64, device: npt.NDArray[np.signedinteger]) -> Mask:
    """Which events of a trace can have been where they say: within a year of the others, and no longer than a year.

    What remains can be summed up over all events, and over all of the time for each device, in 64 bits. Starts lie in
    (-2**62, 2**62), durations in [0, 2**62); all arrays have shape (n,).
    """
    every = np.ones(len(start_ns), np.bool_)
    if not len(start_ns) or _span_ns(start_ns, duration_ns) * len(start_ns) < _MOST:
        return every
    middle = np.partition(start_ns, len(start_ns) // 2)[len(start_ns) // 2]
    distance = np.abs(start_ns // 2 - middle // 2)  # halves: the whole might not fit
    for limit in (_YEAR_NS, _MOST // (4 * len(start_ns))):
        found = (distance <= limit // 2) & (duration_ns <= limit)
        devices = len(np.unique(device[found]))
        total_ns = duration_ns[found].sum(dtype=np.float64)
        if total_ns < _MOST and (not devices or _span_ns(start_ns[found], duration_ns[found]) * devices < _MOST):
            break
    return np.asarray(found)


def _span_ns(start_ns: Int64, duration_ns: Int64) -> int:
    return int((start_ns + duration_ns).max()) - int(start_ns.min())

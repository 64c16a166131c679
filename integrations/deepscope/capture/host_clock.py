"""Readings of the host's clock beside marks in torch's recording, so that the one can be held against the other."""

from __future__ import annotations

import time

from deepscope.capture.lines.emit import make_pair
from deepscope.capture.saving.clock import Readings
from deepscope.trace.format.span_names import clock_name

_TIMES = 8


def read_clocks() -> Readings:
    """Marks some moments, 2 µs each. The closest pair will count: the thread may be interrupted in the others."""
    readings: Readings = []
    for number in range(_TIMES):
        enter, leave = make_pair(clock_name(number))
        before = time.time_ns()
        enter()
        readings.append((before, time.time_ns()))
        leave()
    return readings

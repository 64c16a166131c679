"""How torch's clock stands to the host's: spans whose starts lie between two readings of the host's clock.

torch converts the processor's counter to Unix time once a recording (2.13: to within the error of the comparison), and
writes whole microseconds before 2.4.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from deepscope.trace.format.header import Clock
from deepscope.trace.format.span_names import clock_name
from deepscope.trace.model import Trace

Readings = list[tuple[int, int]]
"""For each span the host's clock before it was opened and after, in nanoseconds since the epoch."""

_BASE = "baseTimeNanoseconds"


def compared(readings: Readings, export: Trace) -> Clock | None:
    """What the readings tell of the times in torch's export; None where none of the spans is there."""
    found = [_one(reading, start) for number, reading in enumerate(readings) for start in _start(export, number)]
    return min(found, key=lambda one: one.error_ns) if found else None


def _start(export: Trace, number: int) -> list[int]:
    name = clock_name(number)
    if name not in export.strings:
        return []
    rows = np.flatnonzero(export.events.name == export.strings.index(name))[:1]
    return [export.base_ns + int(start) for start in export.events.start_ns[rows]]


def _one(reading: tuple[int, int], start_ns: int) -> Clock:
    """Half of the pair's distance, and what is rounded, is what it may be off."""
    before, after = reading
    rounded = 1_000 if start_ns % 1_000 == 0 else 0
    return Clock(
        offset_ns=(before + after) // 2 - start_ns, error_ns=(after - before + 1) // 2 + rounded, unix_ns=before
    )


def on_host_clock(export: Trace, clock: Clock) -> tuple[Trace, Clock]:
    """The trace with a base that makes Unix time of its times, and what is left to add: nothing."""
    metadata = {**export.metadata, _BASE: export.base_ns + clock.offset_ns}
    moved = replace(export, metadata=metadata, base_ns=metadata[_BASE])
    return moved, Clock(error_ns=clock.error_ns, unix_ns=clock.unix_ns)

"""What the allocator had after each of its events."""

from __future__ import annotations

import numpy as np

from deepscope.analysis.analysis import Analysis
from deepscope.analysis.event_tables.columns import integers, optional, places, texts
from deepscope.analysis.numbers.memory_blocks import device_of
from deepscope.analysis.tables.memory import device_name
from deepscope.records.columns import Column
from deepscope.trace.arrays import distinct_places
from deepscope.trace.model import Int64


def memory_record(analysis: Analysis) -> list[Column]:
    """A row an allocation or release in the extent, in order of time on each device (on the CPU where it is one)."""
    use = analysis.memory
    memory = analysis.attribution.trace.memory
    curves = use.devices
    place = _joined([one.place for one in curves])
    device = np.repeat(np.array([one.code for one in curves], np.int64), [len(one.place) for one in curves])
    codes, words = device_words(device)
    return [
        texts("device", codes, words),
        integers("at_ns", _joined([one.ts_ns for one in curves])),
        integers("change_bytes", memory.size_bytes[use.rows[place]]),
        integers("allocated_bytes", _joined([one.allocated_bytes for one in curves])),
        optional("reserved_bytes", _joined([one.reserved_bytes for one in curves])),
        *places(analysis, use.line[place]),
    ]


def device_words(codes: Int64) -> tuple[Int64, list[str]]:
    """Devices (as `device_codes` has them) as words: their indexes, and the words."""
    found, place = distinct_places(codes)
    return place, [device_name(*device_of(code)) for code in found.tolist()]


def _joined(arrays: list[Int64]) -> Int64:
    return np.concatenate(arrays) if arrays else np.zeros(0, np.int64)

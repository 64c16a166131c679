"""Each block of memory: who allocated it, how large it is, from when to when it lived, and what held it."""

from __future__ import annotations

import numpy as np

from deepscope.analysis.analysis import Analysis
from deepscope.analysis.event_tables.columns import integers, optional, places, texts
from deepscope.analysis.event_tables.memory_record import device_words
from deepscope.analysis.numbers.memory_blocks import KINDS
from deepscope.analysis.ownership.calls import open_at
from deepscope.records.columns import Column
from deepscope.trace.arrays import pick
from deepscope.trace.model import Int64


def operator_memory(analysis: Analysis) -> list[Column]:
    """A row a block that was live in the extent, in order of its beginning; those from before the window first."""
    attribution, use = analysis.attribution, analysis.memory
    trace, blocks = attribution.trace, use.blocks
    events, memory = trace.events, trace.memory
    count = len(use.rows)
    ended = blocks.end < count
    end = np.where(ended, blocks.end, -1)
    chosen = np.flatnonzero(_is_live(analysis, blocks.begin, end))
    chosen = chosen[np.argsort(blocks.begin[chosen], kind="stable")]
    begin, end = blocks.begin[chosen], end[chosen]
    row_at, row_gone = pick(use.rows, begin), pick(use.rows, end)
    opened = open_at(trace, attribution.calls.nested, memory.ts_ns[use.rows], memory.thread[use.rows])
    operator = pick(attribution.operators.nodes, pick(attribution.operators.around, pick(opened, begin)))
    allocated = pick(memory.ts_ns, row_at)
    released = pick(memory.ts_ns, row_gone)
    level = np.full(count, -1, np.int64)
    for code in np.unique(use.device):
        where, values = use.level_of(int(code))
        level[where] = values
    device, words = device_words(blocks.device[chosen])
    return [
        texts("name", pick(events.name.astype(np.int64), operator), trace.strings),
        texts("device", device, words),
        integers("size_bytes", blocks.size_bytes[chosen]),
        texts("held_as", blocks.kind[chosen], KINDS),
        optional("allocated_at_ns", np.where(begin >= 0, allocated, _NEVER), _NEVER),
        optional("released_at_ns", np.where(end >= 0, released, _NEVER), _NEVER),
        optional("duration_ns", np.where((begin >= 0) & (end >= 0), released - allocated, -1)),
        optional("allocated_then_bytes", pick(level, begin)),
        optional("allocated_after_release_bytes", pick(level, end)),
        *places(analysis, pick(use.line, begin)),
    ]


_NEVER = np.iinfo(np.int64).min


def _is_live(analysis: Analysis, begin: Int64, end: Int64) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which blocks were live at any event of the extent."""
    use = analysis.memory
    inside = np.flatnonzero(use.counted)
    if not len(inside):
        return np.zeros(len(begin), np.bool_)
    return np.asarray((begin <= inside[-1]) & ((end < 0) | (end >= inside[0])))

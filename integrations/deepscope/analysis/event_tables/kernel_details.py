"""Each piece of device work: where and when it ran, what launched it, and which line owns it."""

from __future__ import annotations

import numpy as np

from deepscope.analysis.analysis import Analysis
from deepscope.analysis.event_tables.columns import devices, integers, modules, optional, places, steps, texts
from deepscope.analysis.numbers.queueing import queueing
from deepscope.records.columns import Column
from deepscope.trace.arrays import pick
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64

KINDS = ("kernel", "memcpy", "memset", "collective", "operator")
"""What device work is; operators where the CPU is the device."""
_CODES = {int(Kind.KERNEL): 0, int(Kind.MEMCPY): 1, int(Kind.MEMSET): 2}


def kernel_details(analysis: Analysis) -> list[Column]:
    """A row a piece of device work that was launched in the extent; none where the CPU is the device.

    A fused kernel is its largest part's line's.
    """
    attribution = analysis.attribution
    trace, work = attribution.trace, attribution.work
    chosen = analysis.counted & work.counts & (work.metric == "device")
    rows = np.flatnonzero(chosen)
    event = work.event[rows]
    queue = queueing(work)
    launcher = analysis.operator[rows]
    launched = queue.launched[rows]
    events, strings = trace.events, trace.strings
    return [
        texts("name", events.name[event], strings),
        texts("kind", kind_codes(analysis)[rows], KINDS),
        steps(analysis, work.step[rows]),
        devices(analysis, work.device[rows]),
        optional("stream", events.stream[event]),
        integers("start_ns", work.start_ns[rows]),
        integers("duration_ns", work.end_ns[rows] - work.start_ns[rows]),
        optional("launch_delay_ns", np.where(launched, queue.delay_ns[rows], -1)),
        optional("queued", np.where(launched, queue.queued[rows], -1)),
        optional("occupancy_percent", events.occupancy[event].astype(np.int64)),
        optional("size_bytes", events.size_bytes[event]),
        optional("correlation", events.correlation[event]),
        texts("operator", pick(events.name.astype(np.int64), launcher), strings),
        texts("input_shapes", pick(events.shapes.astype(np.int64), launcher), strings),
        Column("backward", "flag", work.backward[rows]),
        modules(analysis, work.node[rows]),
        *places(analysis, work.location[rows]),
    ]


def kind_codes(analysis: Analysis) -> Int64:
    """What each piece of work is, an index into `KINDS`; shape (w,)."""
    work = analysis.attribution.work
    if work.metric != "device":
        return np.full(len(work), KINDS.index("operator"), np.int64)
    table = np.zeros(256, np.int64)
    for kind, code in _CODES.items():
        table[kind] = code
    return np.where(work.collective, KINDS.index("collective"), table[work.kind])

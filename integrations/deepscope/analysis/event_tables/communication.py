"""Each collective: where and when it ran, and how much of it no computation hid."""

from __future__ import annotations

import numpy as np

from deepscope.analysis.analysis import Analysis
from deepscope.analysis.event_tables.columns import devices, integers, optional, places, steps, texts
from deepscope.analysis.numbers.collectives import exposed_ns
from deepscope.records.columns import Column
from deepscope.trace.arrays import pick

__all__ = ["communication"]


def communication(analysis: Analysis) -> list[Column]:
    """A row a collective that was launched in the extent, in order of time."""
    attribution = analysis.attribution
    trace, work = attribution.trace, attribution.work
    rows = np.flatnonzero(analysis.counted & work.counts & work.collective)
    rows = rows[np.argsort(work.start_ns[rows], kind="stable")]
    event = work.event[rows]
    events, strings = trace.events, trace.strings
    length = work.end_ns[rows] - work.start_ns[rows]
    exposed = exposed_ns(work)[rows]
    launcher = analysis.operator[rows]
    return [
        texts("name", events.name[event], strings),
        steps(analysis, work.step[rows]),
        devices(analysis, work.device[rows]),
        optional("stream", events.stream[event]),
        integers("start_ns", work.start_ns[rows]),
        integers("duration_ns", length),
        integers("overlapped_ns", length - exposed),
        integers("not_overlapped_ns", exposed),
        texts("operator", pick(events.name.astype(np.int64), launcher), strings),
        texts("input_shapes", pick(events.shapes.astype(np.int64), launcher), strings),
        *places(analysis, work.location[rows]),
    ]

"""Each collective: where and when it ran, what it moved, and how much of it no computation hid."""

from __future__ import annotations

import numpy as np

from deepscope.analysis.analysis import Analysis
from deepscope.analysis.event_tables.columns import devices, integers, optional, places, steps, texts
from deepscope.analysis.numbers.collective_calls import collective_calls
from deepscope.records.columns import Column
from deepscope.trace.arrays import pick


def communication(analysis: Analysis) -> list[Column]:
    """A row a collective that was launched in the extent, in order of time; of backends on the CPU a row a span."""
    attribution = analysis.attribution
    trace, work = attribution.trace, attribution.work
    calls = collective_calls(attribution, analysis.extent)
    events, strings = trace.events, trace.strings
    start = events.start_ns[calls.event]
    order = np.argsort(start, kind="stable")
    event, piece, call = calls.event[order], calls.work[order], calls.of[order]
    time_ns, exposed_ns = calls.time_ns[order], calls.exposed_ns[order]
    on_cpu = piece < 0
    step = np.where(on_cpu, attribution.training.steps.of(start[order]), pick(work.step, piece))
    location = np.where(on_cpu, attribution.owners.location[event], pick(work.location, piece))
    launcher = pick(analysis.operator, piece)
    facts = calls.facts
    size = np.array([one.size_bytes or -1 for one in facts], np.int64)
    group_size = np.array([one.group.size or -1 for one in facts], np.int64)
    return [
        texts("name", events.name[event], strings),
        steps(analysis, step),
        devices(analysis, pick(work.device.astype(np.int64), piece)),
        optional("stream", np.where(on_cpu, -1, events.stream[event])),
        integers("start_ns", start[order]),
        integers("duration_ns", time_ns),
        integers("overlapped_ns", time_ns - exposed_ns),
        integers("not_overlapped_ns", exposed_ns),
        texts("collective", call, [one.kind for one in facts]),
        texts("library", call, [one.library for one in facts]),
        texts("group", call, [one.group.name for one in facts]),
        optional("group_size", pick(group_size, call)),
        texts("dtype", call, [one.dtype for one in facts]),
        optional("size_bytes", pick(size, call)),
        texts("operator", pick(events.name.astype(np.int64), launcher), strings),
        texts("input_shapes", pick(events.shapes.astype(np.int64), launcher), strings),
        *places(analysis, location),
    ]

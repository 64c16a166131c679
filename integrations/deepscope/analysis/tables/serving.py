"""The phases of a server of models, by the annotations around its steps."""

from __future__ import annotations

import numpy as np

from deepscope.analysis.analysis import Analysis
from deepscope.analysis.array_ops.selection import named, of_kind
from deepscope.records import ServingPhase
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64
from deepscope.trace.serving_names import serving_step


def serving_table(analysis: Analysis) -> list[ServingPhase]:
    """The phases, that with most time first; none where no annotation tells steps of a server."""
    trace, work = analysis.attribution.trace, analysis.attribution.work
    events = trace.events
    found = np.flatnonzero(named(trace, of_kind(trace, Kind.ANNOTATION), serving_step))
    if not len(found):
        return []
    found = found[events.thread[found] == np.bincount(events.thread[found]).argmax()]
    found = _outermost(found, events.start_ns, events.start_ns + events.duration_ns)
    start, end = events.start_ns[found], events.start_ns[found] + events.duration_ns[found]
    launched = work.node >= 0
    step = np.searchsorted(start, work.launch_ns[launched], "right") - 1
    inside = (step >= 0) & (work.launch_ns[launched] < end[step])
    done, device = end.copy(), np.zeros(len(found), np.int64)
    np.maximum.at(done, step[inside], work.end_ns[launched][inside])
    np.add.at(device, step[inside], work.duration_ns[launched][inside])
    done[:-1] = np.minimum(done[:-1], start[1:])
    rows: dict[str, ServingPhase] = {}
    for place, event in enumerate(found.tolist()):
        told = serving_step(trace.strings[int(events.name[event])])
        if told is None or not analysis.extent.holds(start[place : place + 1]).all():
            continue
        row = rows.setdefault(
            told.phase, ServingPhase(phase=told.phase, steps=0, duration_ns=0, device_ns=0, requests=0, tokens=0)
        )
        row.steps += 1
        row.duration_ns += int(done[place] - start[place])
        row.device_ns += int(device[place]) if work.metric == "device" else 0
        row.requests += told.requests
        row.tokens += max(told.tokens, 0)
        row.untold_steps += told.tokens < 0
    return sorted(rows.values(), key=lambda row: -row.duration_ns)


def _outermost(found: Int64, start: Int64, end: Int64) -> Int64:
    """The spans that lie in none of the others, by their starts: a server may annotate a step twice."""
    order = found[np.lexsort((-end[found], start[found]))]
    before = np.maximum.accumulate(np.concatenate((np.full(1, np.iinfo(np.int64).min), end[order][:-1])))
    return order[start[order] >= before]

"""Device work by device and name: how often, how long, and its share of the device's time."""

from __future__ import annotations

import numpy as np

from deepscope.analysis.analysis import Analysis
from deepscope.analysis.event_tables.columns import devices, integers, texts
from deepscope.analysis.event_tables.kernel_details import KINDS, kind_codes
from deepscope.records.columns import Column
from deepscope.trace.arrays import distinct_places
from deepscope.trace.model import Int64


def op_statistic(analysis: Analysis) -> list[Column]:
    """A row a kind of device work by name, the largest first; where the CPU is the device, of operators' own time."""
    attribution = analysis.attribution
    trace, work = attribution.trace, attribution.work
    rows = np.flatnonzero(analysis.counted & work.counts)
    # An operator's own time may be shared out among the lines it was fused from.
    own = _summed(work.event[analysis.counted], work.duration_ns[analysis.counted], len(trace.events))
    length = (work.end_ns - work.start_ns if work.metric == "device" else own[work.event])[rows]
    name, kind, device = (
        trace.events.name[work.event[rows]].astype(np.int64),
        kind_codes(analysis)[rows],
        work.device[rows],
    )
    device_of, device_place = distinct_places(device)
    key, group = distinct_places((device_place * len(trace.strings) + name) * len(KINDS) + kind)
    count = np.bincount(group, minlength=len(key)).astype(np.int64)
    total = _summed(group, length, len(key))
    shortest = np.full(len(key), np.iinfo(np.int64).max)
    np.minimum.at(shortest, group, length)
    longest = np.zeros(len(key), np.int64)
    np.maximum.at(longest, group, length)
    place = key // len(KINDS) // max(len(trace.strings), 1)
    whole = _summed(device_place, length, len(device_of))[place]
    order = np.argsort(-total, kind="stable")
    return [
        devices(analysis, device_of[place][order]),
        texts("name", (key // len(KINDS) % max(len(trace.strings), 1))[order], trace.strings),
        texts("kind", (key % len(KINDS))[order], KINDS),
        integers("count", count[order]),
        integers("total_ns", total[order]),
        integers("min_ns", shortest[order]),
        integers("mean_ns", (total // np.maximum(count, 1))[order]),
        integers("max_ns", longest[order]),
        Column("ratio", "number", (total / np.maximum(whole, 1))[order]),
    ]


def _summed(group: Int64, values: Int64, groups: int) -> Int64:
    result = np.zeros(groups, np.int64)
    np.add.at(result, group, values)
    return result

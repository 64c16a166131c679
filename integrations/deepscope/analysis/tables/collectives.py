"""The collectives by kind, process group, element type and size."""

from __future__ import annotations

import numpy as np

from deepscope.analysis.analysis import Analysis
from deepscope.analysis.numbers.collective_calls import Group, Told, bus_factor, collective_calls
from deepscope.records import Collective

__all__ = ["collective_table"]

_MOST_MATCHED = 4096
"""Calls of one row that are kept one by one, to be matched with those of other ranks."""


def collective_table(analysis: Analysis) -> list[Collective]:
    """The collectives within the extent, the largest time first."""
    calls = collective_calls(analysis.attribution, analysis.extent)
    rows: dict[tuple[str, str, Group, str, int, bool], list[int]] = {}
    for place, told in enumerate(calls.told):
        for on_device in (True, False):
            key = (told.kind, told.library, told.group, told.dtype, _size_class(told), on_device)
            rows.setdefault(key, []).append(place)
    table = []
    for (*_, on_device), places in rows.items():
        chosen = np.flatnonzero(np.isin(calls.of, places) & (calls.on_device == on_device))
        if not len(chosen):
            continue
        told = calls.told[places[0]]
        of, time = calls.of[chosen], calls.time_ns[chosen]
        size = np.array([one.size_bytes for one in calls.told], np.int64)[of]
        factor = bus_factor(told.kind, told.group.size)
        known = int(time[size > 0].sum())
        total = int(size.sum())
        table.append(
            Collective(
                kind=told.kind,
                library=told.library,
                group=told.group.name,
                group_description=told.group.description,
                group_ranks=told.group.ranks,
                group_size=told.group.size,
                dtype=told.dtype,
                size_class_bytes=_size_class(told),
                on_device=on_device,
                calls=len(chosen),
                time_ns=int(time.sum()),
                bytes=total,
                bytes_known_ns=known,
                bus_bytes=round(total * factor),
                bus_known_ns=known if factor else 0,
                exposed_ns=int(calls.exposed_ns[chosen].sum()),
                shortest_ns=time.tolist() if len(time) <= _MOST_MATCHED else [],
                min_ns=int(time.min()),
                max_ns=int(time.max()),
            )
        )
    return sorted(table, key=lambda row: -row.time_ns)


def _size_class(told: Told) -> int:
    return 1 << (told.size_bytes.bit_length() - 1) if told.size_bytes else 0

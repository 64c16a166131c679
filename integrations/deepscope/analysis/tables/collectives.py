"""The collectives by kind, process group, element type and size; and each call of them."""

from __future__ import annotations

import numpy as np

from deepscope.analysis.analysis import Analysis
from deepscope.analysis.array_ops.selection import Mask
from deepscope.analysis.numbers.collective_calls import CollectiveCalls, CollectiveFacts, bus_factor
from deepscope.analysis.ownership.attribution import Attribution
from deepscope.records import Collective, CollectiveCall
from deepscope.trace.arrays import pick
from deepscope.trace.model import Int64


def collective_table(calls: CollectiveCalls, attribution: Attribution) -> tuple[list[Collective], Int64]:
    """A record for each kind, group, type and size, the largest time first; and of each call its place among them."""
    steps = attribution.training.steps
    outside = (steps.of(calls.launch_ns(attribution.trace.events)) < 0) & bool(len(steps))
    keys: dict[tuple[object, ...], int] = {}
    rows_of_facts = np.array(
        [
            [keys.setdefault((*_key(facts), on_device), len(keys)) for on_device in (False, True)]
            for facts in calls.facts
        ],
        np.int64,
    ).reshape(-1, 2)  # fmt: skip
    row = rows_of_facts[calls.of, calls.on_device.astype(np.int64)]
    by_row = np.argsort(row, kind="stable")
    bounds = np.searchsorted(row[by_row], np.arange(len(keys) + 1))
    sizes = np.array([one.size_bytes for one in calls.facts], np.int64)
    found = []
    for number in range(len(keys)):
        chosen = by_row[bounds[number] : bounds[number + 1]]
        if len(chosen):
            found.append((number, _record(calls, chosen, sizes[calls.of[chosen]], outside[chosen])))
    found.sort(key=lambda one: -one[1].time_ns)
    place = np.full(len(keys), -1, np.int64)
    place[[number for number, _ in found]] = np.arange(len(found))
    return [record for _, record in found], place[row]


def _key(facts: CollectiveFacts) -> tuple[object, ...]:
    return facts.kind, facts.library, facts.group, facts.dtype, _size_class(facts)


def _record(calls: CollectiveCalls, chosen: Int64, size: Int64, outside: Mask) -> Collective:
    """Of the chosen calls, which agree in all that a row has in common."""
    facts, time = calls.facts[calls.of[chosen[0]]], calls.time_ns[chosen]
    factor = bus_factor(facts.kind, facts.group.size)
    known, total = int(time[size > 0].sum()), int(size.sum())
    return Collective(
        kind=facts.kind,
        library=facts.library,
        group=facts.group.name,
        group_description=facts.group.description,
        group_ranks=facts.group.ranks,
        group_size=facts.group.size,
        dtype=facts.dtype,
        size_class_bytes=_size_class(facts),
        on_device=bool(calls.on_device[chosen[0]]),
        calls=len(chosen),
        outside_calls=int(outside.sum()),
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


_MOST_MATCHED = 4096
"""Calls of one row that are kept one by one, to be matched with those of other ranks."""


def _size_class(facts: CollectiveFacts) -> int:
    return 1 << (facts.size_bytes.bit_length() - 1) if facts.size_bytes else 0


MOST_CALLS = 4096
"""Calls that are kept of a rank."""
_MOST_NS = 1 << 62
"""Of the time since the epoch that the head of a trace tells."""


def collective_call_table(
    analysis: Analysis, calls: CollectiveCalls, row: Int64, position: Int64
) -> list[CollectiveCall]:
    """The first calls in the order of their launches; what is beyond `MOST_CALLS` is left out.

    Args:
        analysis: of the trace.
        calls: of its extent.
        row: of each call its place in the table of collectives.
        position: of each location its place in the table of lines, -1 for none.
    """
    attribution = analysis.attribution
    events, steps = attribution.trace.events, attribution.training.steps
    event, launched_by, work = (column[:MOST_CALLS] for column in (calls.event, calls.launched_by, calls.work))
    launch = calls.launch_ns(events)[:MOST_CALLS]
    owners = attribution.owners.location
    own = np.where(launched_by >= 0, owners[launched_by], owners[event])
    location = np.where(work >= 0, pick(attribution.work.location, work), own)
    size = np.array([one.size_bytes for one in calls.facts], np.int64)
    base_ns = attribution.trace.unix_base_ns
    start = np.minimum(events.start_ns[event] + (base_ns if abs(base_ns) < _MOST_NS else 0), _MOST_NS - 1)
    columns = (
        start,
        start + events.duration_ns[event],
        pick(steps.number, steps.of(launch)),
        row[:MOST_CALLS],
        calls.number[:MOST_CALLS],
        calls.peer[:MOST_CALLS],
        pick(position, location),
        pick(size, calls.of[:MOST_CALLS]),
    )
    return [CollectiveCall(*values) for values in zip(*(column.tolist() for column in columns), strict=True)]

"""The collectives: each call with how long it takes, and sums by kind, process group, element type and size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deepscope.analysis.analysis import Analysis
from deepscope.analysis.array_ops.intervals import Extent, union
from deepscope.analysis.array_ops.selection import Mask, distinct, mask_of, named, of_kind
from deepscope.analysis.numbers.work import exposed_ns
from deepscope.analysis.ownership.attribution import Attribution
from deepscope.analysis.tables.messages import (
    MOST_RANKS,
    Message,
    bus_factor,
    call_numbers,
    columns_of_calls,
    kind_of_collective,
    message_of_call,
    peers_in_group,
    rank_in_run,
)
from deepscope.records import Collective, CollectiveCall
from deepscope.trace.arrays import distinct_values, nearest_to, pick, position_in
from deepscope.trace.communication import is_collective
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Events, Int64, Trace
from deepscope.trace.names import ANNOUNCEMENT, is_communication_span, is_cpu_collective


@dataclass(frozen=True, slots=True)
class CollectiveCalls:
    """The calls of collectives on one rank, in the order of their launches; arrays of shape (c,)."""

    event: Int64
    """The kernel, or the span."""
    work: Int64
    """The piece of work; -1 for spans of the CPU."""
    messages: list[Message]
    of: Int64
    """Index into `messages`."""
    on_device: Mask
    """Kernels of a device; else spans of a thread of the CPU."""
    time_ns: Int64
    exposed_ns: Int64
    """The part that no computation overlaps."""
    launched_by: Int64
    """The CPU event that launched it: of a span the operator that queued it; -1 where it is not known."""
    number: Int64
    """torch's number of the call in its process group; -1 where the trace does not tell."""
    peer: Int64
    """Of a point-to-point message, the other rank in the whole run; -1 where it is not known, and for collectives."""

    def launch_ns(self, events: Events) -> Int64:
        """When each was launched; its start where that is not known. Shape (c,)."""
        return np.where(self.launched_by >= 0, events.start_ns[self.launched_by], events.start_ns[self.event])


def collective_calls(of: Attribution, extent: Extent) -> CollectiveCalls:
    """The calls within the extent: kernels, and spans of backends that work on the CPU."""
    trace, work = of.trace, of.work
    events = trace.events
    spans = named(trace, of_kind(trace, Kind.ANNOTATION, Kind.OPERATOR), is_communication_span)
    is_device = work.metric == "device"
    rows = np.flatnonzero(work.collective & extent.holds(work.launch_ns)) if is_device else np.zeros(0, np.int64)
    on_cpu = named(trace, spans, is_cpu_collective)
    host = np.flatnonzero(on_cpu & extent.holds(events.start_ns))
    event = np.concatenate((work.event[rows], host))
    at = np.concatenate((work.launch_ns[rows], events.start_ns[host]))
    order = np.argsort(at, kind="stable")
    node = np.concatenate((work.node[rows], host))
    message, operator = _announced(of, event, node)
    span = nearest_to(node, of.calls.parent, spans)
    columns = columns_of_calls(trace, event, message, operator, span)
    distinct_rows, place = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
    messages, message_of = [message_of_call(trace, row) for row in distinct_rows.tolist()], place.reshape(-1)
    exposed = exposed_ns(work)[rows] if len(rows) else np.zeros(0, np.int64)
    queued = _queued(trace, host, on_cpu)
    in_group = peers_in_group(trace, span, np.concatenate((np.full(len(rows), -1, np.int64), queued)))
    return CollectiveCalls(
        event=event[order],
        work=np.concatenate((rows, np.full(len(host), -1, np.int64)))[order],
        messages=messages,
        of=message_of[order],
        on_device=(np.arange(len(event)) < len(rows))[order],
        time_ns=np.concatenate((work.duration_ns[rows], events.duration_ns[host]))[order],
        exposed_ns=np.concatenate((exposed, _exposed_on_cpu(of, host)))[order],
        launched_by=np.concatenate((work.node[rows], queued))[order],
        number=call_numbers(trace, message, operator)[order],
        peer=_peers(trace, messages, message_of, message, in_group)[order],
    )


def _queued(trace: Trace, host: Int64, on_cpu: Mask) -> Int64:
    """The operators that the chosen spans of the CPU are the work of; -1 where the trace does not say.

    `on_cpu` says of each event whether it is such a span, chosen or not.
    """
    if not len(host):
        return host
    spans = np.flatnonzero(on_cpu)
    spans = spans[np.argsort(trace.events.start_ns[spans], kind="stable")]
    return pick(_queued_by(trace, spans), position_in(spans, host, len(trace.events)))


def _peers(trace: Trace, messages: list[Message], message_of: Int64, message: Int64, in_group: Int64) -> Int64:
    """The other rank of each message, by its number in the group if nothing tells more; -1 for none."""
    sends, receives = (
        np.array([one.kind == kind for one in messages], np.bool_)[message_of] for kind in ("send", "recv")
    )
    if not (sends | receives).any():
        return np.full(len(message_of), -1, np.int64)
    pairs, place = np.unique(np.stack((message_of, in_group), axis=1), axis=0, return_inverse=True)
    in_run = np.array([rank_in_run(peer, messages[one].group.ranks) for one, peer in pairs.tolist()], np.int64)
    named_so = np.where(sends, pick(trace.messages.target, message), pick(trace.messages.source, message))
    named_so[named_so >= MOST_RANKS] = -1
    return np.where(sends | receives, np.where(named_so >= 0, named_so, in_run[place.reshape(-1)]), -1)


def _exposed_on_cpu(of: Attribution, spans: Int64) -> Int64:
    """The part of each span during which no operator runs on another thread, nor a kernel on a device."""
    events, operators = of.trace.events, of.operators
    outermost = operators.nodes[operators.caller < 0]
    names = named(of.trace, of_kind(of.trace, Kind.OPERATOR), lambda name: is_collective(name) or name == ANNOUNCEMENT)
    outermost = outermost[~names[outermost]]
    compute = of.work.kind == Kind.KERNEL
    kernels = (compute & ~of.work.collective) if of.work.metric == "device" else np.zeros(len(of.work), np.bool_)
    result = np.zeros(len(spans), np.int64)
    thread = events.thread[spans]
    for one in distinct_values(thread).tolist():
        here, others = thread == one, outermost[events.thread[outermost] != one]
        busy = union(
            np.concatenate((events.start_ns[others], of.work.start_ns[kernels])),
            np.concatenate((events.end_ns[others], of.work.end_ns[kernels])),
        )
        start, end = events.start_ns[spans[here]], events.end_ns[spans[here]]
        result[here] = end - start - busy.overlap_ns(start, end)
    return result


def _announced(of: Attribution, event: Int64, node: Int64) -> tuple[Int64, Int64]:
    """What tells of each call, -1 for none: an index into the trace's messages, and the operator around its launch."""
    events, messages = of.trace.events, of.trace.messages
    tells = mask_of(messages.event, len(events))
    announced = named(of.trace, of_kind(of.trace, Kind.OPERATOR), ANNOUNCEMENT.__eq__)
    operator = nearest_to(node, of.calls.parent, announced)
    return position_in(messages.event, np.where(tells[event], event, operator), len(events)), operator


_PREFIX = "c10d::"
_BETWEEN_TWO = frozenset({"send", "recv"})
"""What has one sender and one receiver."""


def _queued_by(trace: Trace, spans: Int64) -> Int64:
    """The operator that each span (an event, of all that the trace has) is the work of; -1 where it cannot be told.

    The span of a message between two ranks is opened within its operator. Collectives are queued and taken out in
    order: the operators of a kind are those of the spans of that kind if there are as many, and none begins after its
    span.

    `spans` are of backends that work on the CPU, by their starts; shape (c,).
    """
    events = trace.events
    found = np.full(len(spans), -1, np.int64)
    operators = np.flatnonzero(named(trace, of_kind(trace, Kind.OPERATOR), lambda name: name.startswith(_PREFIX)))
    if not len(spans) or not len(operators):
        return found
    operators = operators[np.argsort(events.start_ns[operators], kind="stable")]
    words: dict[str, int] = {"": -1}
    number = np.full(len(trace.strings), -1, np.int64)
    both = np.concatenate((events.name[spans], events.name[operators]))
    for code in distinct(both, len(trace.strings)):
        number[code] = words.setdefault(kind_of_collective(trace.strings[code].rpartition(":")[2]), len(words))
    of_spans, of_operators = number[events.name[spans]], number[events.name[operators]]
    for word, kind in words.items():
        ours, theirs = np.flatnonzero(of_spans == kind), operators[of_operators == kind]
        if kind < 0 or not len(ours) or not len(theirs):
            continue
        if word in _BETWEEN_TWO:
            found[ours] = _around(trace, spans[ours], theirs)
        elif len(ours) == len(theirs) and (events.start_ns[theirs] <= events.start_ns[spans[ours]]).all():
            found[ours] = theirs
    return found


def _around(trace: Trace, spans: Int64, operators: Int64) -> Int64:
    """The last operator that began on the thread of each span, where it had not ended when the span began."""
    events = trace.events
    found = np.full(len(spans), -1, np.int64)
    for thread in distinct_values(events.thread[spans]).tolist():
        ours = np.flatnonzero(events.thread[spans] == thread)
        theirs = operators[events.thread[operators] == thread]
        start = events.start_ns[spans[ours]]
        place = np.searchsorted(events.start_ns[theirs], start, side="right") - 1
        known = place >= 0
        last = theirs[place[known]]
        known[known] = events.end_ns[last] >= start[known]
        found[ours[known]] = theirs[place[known]]
    return found


def collective_table(calls: CollectiveCalls, attribution: Attribution) -> tuple[list[Collective], Int64]:
    """A record for each kind, group, type and size, the largest time first; and of each call its place among them."""
    steps = attribution.training.steps
    outside = (steps.of(calls.launch_ns(attribution.trace.events)) < 0) & bool(len(steps))
    keys: dict[tuple[object, ...], int] = {}
    rows_of_messages = np.array(
        [
            [keys.setdefault((*_key(message), on_device), len(keys)) for on_device in (False, True)]
            for message in calls.messages
        ],
        np.int64,
    ).reshape(-1, 2)  # fmt: skip
    row = rows_of_messages[calls.of, calls.on_device.astype(np.int64)]
    by_row = np.argsort(row, kind="stable")
    bounds = np.searchsorted(row[by_row], np.arange(len(keys) + 1))
    sizes = np.array([one.size_bytes for one in calls.messages], np.int64)
    found = []
    for number in range(len(keys)):
        chosen = by_row[bounds[number] : bounds[number + 1]]
        if len(chosen):
            found.append((number, _record(calls, chosen, sizes[calls.of[chosen]], outside[chosen])))
    found.sort(key=lambda one: -one[1].time_ns)
    place = np.full(len(keys), -1, np.int64)
    place[[number for number, _ in found]] = np.arange(len(found))
    return [record for _, record in found], place[row]


def _key(message: Message) -> tuple[object, ...]:
    return message.kind, message.library, message.group, message.dtype, _size_class(message)


def _record(calls: CollectiveCalls, chosen: Int64, size: Int64, outside: Mask) -> Collective:
    """Of the chosen calls, which agree in all that a row has in common."""
    message, time = calls.messages[calls.of[chosen[0]]], calls.time_ns[chosen]
    factor = bus_factor(message.kind, message.group.size)
    known, total = int(time[size > 0].sum()), int(size.sum())
    return Collective(
        kind=message.kind,
        library=message.library,
        group=message.group.name,
        group_description=message.group.description,
        group_ranks=message.group.ranks,
        group_size=message.group.size,
        dtype=message.dtype,
        size_class_bytes=_size_class(message),
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


def _size_class(message: Message) -> int:
    return 1 << (message.size_bytes.bit_length() - 1) if message.size_bytes else 0


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
    size = np.array([one.size_bytes for one in calls.messages], np.int64)
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

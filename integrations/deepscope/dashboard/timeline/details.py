"""All that is known of one slice: its place, its links, and facts such as shapes, bytes and FLOPs."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable

import numpy as np

from deepscope.analysis.critical.streams import find_pieces, find_stream_waits
from deepscope.analysis.critical.waits import clipped, find_device_waits
from deepscope.analysis.numbers.flops import flops_of_operators
from deepscope.analysis.numbers.work import queueing
from deepscope.analysis.ownership.attribution import Attribution
from deepscope.dashboard.page_answer import Fact
from deepscope.dashboard.timeline.answers import Link, SliceDetails
from deepscope.dashboard.timeline.columns import (
    KINDS,
    LINK_KINDS,
    FactColumn,
    Links,
    Texts,
    TimelineColumns,
    row_of,
    shown_name,
    whole_name,
)
from deepscope.errors import OptionError
from deepscope.printable import printable
from deepscope.quantities import bytes_text, rate_text, time_text
from deepscope.trace.arrays import distinct_places, pick
from deepscope.trace.kinds import Kind
from deepscope.trace.model import QUEUE_OFFSET, Int64

MOST_LINKS = 100
"""So many links of one slice in each direction are told: a replayed graph launches thousands of kernels by one call."""

_LAUNCH, _BACKWARD, _WAIT = range(3)


def links_of(of: Attribution, of_event: Int64) -> Links:
    """All links of a trace; `of_event` is the slice of each event."""
    parts = [_launches(of), _backwards(of), *_waits(of)]
    kind = np.repeat([_LAUNCH, _BACKWARD, _WAIT, _WAIT], [len(source) for source, _ in parts])
    source = of_event[np.concatenate([one for one, _ in parts])]
    target = of_event[np.concatenate([one for _, one in parts])]
    order = np.lexsort((target, source))
    source, target = source[order], target[order]
    return Links(
        kind=kind[order].astype(np.uint8),
        source=source.astype(np.int32),
        target=target.astype(np.int32),
        by_target=np.argsort(target, kind="stable").astype(np.int32),
    )


def _launches(of: Attribution) -> tuple[Int64, Int64]:
    """Calls and the work that they launched (events)."""
    work = of.work
    rows = np.flatnonzero(work.counts & (work.node >= 0) & (work.metric == "device"))
    return work.node[rows], work.event[rows]


def _backwards(of: Attribution) -> tuple[Int64, Int64]:
    """Forward operators, and the spans of autograd's engine that run their backward."""
    calls = of.calls
    roots = np.flatnonzero(calls.root == np.arange(len(calls.root)))
    roots = roots[(calls.up[roots] >= 0) & (calls.up[roots] != calls.caller[roots])]
    return calls.up[roots], roots


def _waits(of: Attribution) -> list[tuple[Int64, Int64]]:
    """Work, and the calls or the work of other streams that waited for it."""
    trace, work = of.trace, of.work
    pieces = find_pieces(trace.events, work)
    found = find_device_waits(trace, pieces, work.kind[pieces.row].astype(np.int64), work.node[pieces.row])
    pieces = clipped(pieces, found, trace.events.end_ns)
    other = find_stream_waits(trace, pieces)
    late = np.flatnonzero(other >= 0)
    return [(pieces.event[found.piece], found.call), (pieces.event[other[late]], pieces.event[late])]


def links_at(columns: TimelineColumns, one: int) -> list[Link]:
    """The links from and to a slice, those to it first."""
    links = columns.links
    first, last = np.searchsorted(links.source, [one, one + 1]).tolist()
    low, high = (bisect_left(links.by_target, end, key=links.target.__getitem__) for end in (one, one + 1))
    into = links.by_target[low : min(high, low + MOST_LINKS)].tolist()
    return [_link(columns, row, one) for row in [*into, *range(first, min(last, first + MOST_LINKS))]]


def _link(columns: TimelineColumns, row: int, one: int) -> Link:
    source, target = int(columns.links.source[row]), int(columns.links.target[row])
    kind = LINK_KINDS[columns.links.kind[row]]
    slices = columns.slices
    source_track, source_row = row_of(columns, source)
    target_track, target_row = row_of(columns, target)
    is_wait = kind == "wait"
    # A call that waits goes on once it returns; work that waits starts.
    waits_in_call = is_wait and columns.tracks[target_track].kind == "thread"
    return Link(
        kind=kind,
        from_slice=source,
        from_track=source_track,
        from_row=source_row,
        from_ns=int(slices.end[source] if is_wait else slices.start[source]),
        to_slice=target,
        to_track=target_track,
        to_row=target_row,
        to_ns=int(slices.end[target] if waits_in_call else slices.start[target]),
        title=shown_name(columns.labels, int(slices.label[target if source == one else source])),
    )


_DEEPEST = 2_000
"""So many lines around a slice are told."""


def details_of(columns: TimelineColumns, one: int) -> SliceDetails:
    """The details of a slice.

    Raises:
        OptionError: there is no such slice.
    """
    slices = columns.slices
    if not 0 <= one < len(slices):
        raise OptionError("slice", one, f"no such slice; there are {len(slices):,}, from 0 on")
    label, (track, row) = int(slices.label[one]), row_of(columns, one)
    module = int(slices.module[one])
    return SliceDetails(
        slice=one,
        track=track,
        row=row,
        name=whole_name(columns.labels, label),
        kind=KINDS[columns.labels.kind[label]],
        start_ns=int(slices.start[one]),
        end_ns=int(slices.end[one]),
        self_ns=int(slices.self_ns[one]),
        place=int(slices.place[one]),
        stack=_stack(columns, int(slices.path[one])),
        module=printable(columns.modules[module]) if module >= 0 else "",
        facts=facts_at(columns, one),
        links=links_at(columns, one),
    )


def _stack(columns: TimelineColumns, path: int) -> list[int]:
    found: list[int] = []
    while path > 0 and len(found) < _DEEPEST:
        found.append(int(columns.path_place[path]))
        path = int(columns.path_parent[path])
    return found


_LONGEST = 10_000
"""Letters of one fact."""

_TEXTS = {
    "category": "Category",
    "operator": "Launched by operator",
    "operator_shapes": "Its input shapes",
    "shapes": "Input shapes",
    "dtypes": "Input types",
    "strides": "Input strides",
    "concrete": "Other inputs",
    "grid": "Grid",
    "block": "Block",
    "collective": "Collective",
    "element_type": "Element type",
    "group": "Process group",
    "group_description": "Its purpose",
    "group_ranks": "Its ranks",
}
"""Facts that are texts, with what they are called."""

_MESSAGE_TEXTS = ("collective", "element_type", "group", "group_description", "group_ranks")
_MESSAGE_NUMBERS = ("in_elements", "out_elements", "group_size")
Words = Callable[[int], str]


def _plain(value: int) -> str:
    return f"{value:,}"


_NUMBERS: dict[str, tuple[str, Words]] = {
    "in_elements": ("Elements in", _plain),
    "out_elements": ("Elements out", _plain),
    "group_size": ("Ranks", _plain),
    "registers": ("Registers per thread", _plain),
    "shared_memory": ("Shared memory per block", lambda value: bytes_text(value) or "0B"),
    "occupancy": ("Estimated occupancy", lambda value: f"{value}%"),
    "blocks_per_sm": ("Blocks per multiprocessor", lambda value: f"{value / 1000:.2f}"),
    "size_bytes": ("Size", lambda value: bytes_text(value) or "0B"),
    "flops": ("FLOPs", _plain),
    "launch_delay": ("From launch to start", lambda value: time_text(value) or "0ns"),
    "queued": ("Queued before it", _plain),
    "stream": ("Stream", str),
    "step": ("Launched in step", str),
    "sequence": ("Sequence number", str),
    "correlation": ("Correlation", str),
    "external_id": ("External id", str),
}


def facts_of(of: Attribution, of_event: Int64) -> tuple[list[FactColumn], Texts]:
    """All facts of a trace by kind, and the texts in them; `of_event` is the slice of each event."""
    numbers = _of_events(of) | _of_work(of) | _of_messages(of, _MESSAGE_NUMBERS)
    flops = flops_of_operators(of.trace, of.operators).counted
    numbers["flops"] = of.operators.nodes[flops > 0], flops[flops > 0]
    texts = _of_messages(of, _MESSAGE_TEXTS) | _of_launches(of)
    code = {key: texts[key] if key in texts else _text_column(of, key) for key in _TEXTS}
    used, place = distinct_places(np.concatenate([values for _, values in code.values()]))
    found, begin = [], 0
    for key, (event, values) in code.items():
        found.append(_column(key, of_event[event], place[begin : begin + len(values)]))
        begin += len(values)
    found += [_column(key, of_event[event], values) for key, (event, values) in numbers.items()]
    strings = of.trace.strings
    return [one for one in found if len(one.slice)], Texts.of(strings[one] for one in used.tolist())


EventFacts = tuple[Int64, Int64]
"""Events, and what is told of each."""


def _text_column(of: Attribution, key: str) -> EventFacts:
    column = getattr(of.trace.events, key)
    event = np.flatnonzero(column >= 0)
    return event, column[event].astype(np.int64)


def _of_events(of: Attribution) -> dict[str, EventFacts]:
    events = of.trace.events
    on_device = (events.kind >= Kind.KERNEL) & (events.kind <= Kind.DEVICE_SPAN)
    found = {}
    for key in ("sequence", "external_id", "correlation", "size_bytes", "occupancy", "registers", "shared_memory"):
        column = getattr(events, key)
        event = np.flatnonzero((column >= 0) & (column < QUEUE_OFFSET))
        found[key] = event, column[event].astype(np.int64)
    event = np.flatnonzero(on_device & (events.stream >= 0) & (events.stream < 1 << 31))
    found["stream"] = event, events.stream[event]
    event = np.flatnonzero(events.blocks_per_sm >= 0)
    per_sm = np.minimum(events.blocks_per_sm[event].astype(np.float64), 1e12)
    found["blocks_per_sm"] = event, np.rint(1000 * np.nan_to_num(per_sm)).astype(np.int64)
    return found


def _of_messages(of: Attribution, keys: tuple[str, ...]) -> dict[str, EventFacts]:
    messages = of.trace.messages
    columns = {key: getattr(messages, key) for key in keys}
    return {key: (messages.event[column >= 0], column[column >= 0]) for key, column in columns.items()}


def _of_launches(of: Attribution) -> dict[str, EventFacts]:
    """The operators that launched work, and the shapes of their arguments."""
    work, events = of.work, of.trace.events
    rows = np.flatnonzero(work.counts & (work.metric == "device"))
    operator = pick(of.operators.nodes, pick(of.operators.around, work.node[rows]))
    event, operator = work.event[rows[operator >= 0]], operator[operator >= 0]
    shapes = events.shapes[operator].astype(np.int64)
    return {
        "operator": (event, events.name[operator].astype(np.int64)),
        "operator_shapes": (event[shapes >= 0], shapes[shapes >= 0]),
    }


def _of_work(of: Attribution) -> dict[str, EventFacts]:
    work = of.work
    found = {}
    if work.metric == "device":
        queue = queueing(work)
        rows = np.flatnonzero(queue.launched & work.counts)
        found["launch_delay"] = work.event[rows], queue.delay_ns[rows]
        found["queued"] = work.event[rows], queue.queued[rows]
    rows = np.flatnonzero(work.counts & (work.step >= 0))
    found["step"] = work.event[rows], of.training.steps.number[work.step[rows]]
    return found


def _column(key: str, slices: Int64, values: Int64) -> FactColumn:
    order = np.argsort(slices, kind="stable")
    return FactColumn(key, slices[order].astype(np.int32), values[order])


def facts_at(columns: TimelineColumns, one: int) -> list[Fact]:
    """All facts of a slice, in the order in which they are told."""
    known: dict[str, int] = {}
    for column in columns.facts:
        place = int(np.searchsorted(column.slice, one))
        if place < len(column.slice) and column.slice[place] == one:
            known[column.key] = int(column.value[place])
    found = [
        Fact(label=label, value=printable(columns.texts[known[key]])[:_LONGEST])
        for key, label in _TEXTS.items()
        if key in known
    ]
    found += [Fact(label=label, value=words(known[key])) for key, (label, words) in _NUMBERS.items() if key in known]
    slices = columns.slices
    kind, length = KINDS[columns.labels.kind[slices.label[one]]], int(slices.end[one] - slices.start[one])
    if kind == "copy" and (rate := rate_text(known.get("size_bytes", 0), length, "B/s")):
        found.append(Fact(label="Bandwidth", value=rate))
    return found

"""What led to what: launches to work, forward operators to backward ones, work to what waited for it."""

from __future__ import annotations

import numpy as np

from deepscope.analysis.critical.pieces import find_pieces
from deepscope.analysis.critical.streams import find_stream_waits
from deepscope.analysis.critical.waits import clipped, find_device_waits
from deepscope.analysis.ownership.attribution import Attribution
from deepscope.dashboard.timeline.answers import Link
from deepscope.dashboard.timeline.columns import LINK_KINDS, Columns, Links
from deepscope.dashboard.timeline.names import shown_name
from deepscope.dashboard.timeline.places import row_of
from deepscope.trace.model import Int64

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


def links_at(columns: Columns, one: int) -> list[Link]:
    """The links from and to a slice, those to it first."""
    links = columns.links
    first, last = np.searchsorted(links.source, [one, one + 1]).tolist()
    low, high = _between(links, one)
    into = links.by_target[low : min(high, low + MOST_LINKS)].tolist()
    return [_link(columns, row, one) for row in [*into, *range(first, min(last, first + MOST_LINKS))]]


def _between(links: Links, target: int) -> tuple[int, int]:
    """Where the links to a slice stand in `by_target`."""
    bounds = []
    for wanted in (target, target + 1):
        low, high = 0, len(links.by_target)
        while low < high:
            middle = (low + high) // 2
            if links.target[links.by_target[middle]] < wanted:
                low = middle + 1
            else:
                high = middle
        bounds.append(low)
    return bounds[0], bounds[1]


def _link(columns: Columns, row: int, one: int) -> Link:
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

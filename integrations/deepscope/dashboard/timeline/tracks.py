"""On which track each slice stands, and in which row: below what it lies in, in the highest row that is free."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from deepscope.analysis.array_ops.selection import Mask, named, of_kind
from deepscope.analysis.ownership.calls import CPU_KINDS
from deepscope.dashboard.timeline.answers import Track, TrackKind
from deepscope.dashboard.timeline.columns import MOST_ROWS
from deepscope.printable import clipped
from deepscope.trace.arrays import depth, distinct_values, nearest, pick
from deepscope.trace.joins.nesting import Ints, Nesting
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64, Thread, Trace
from deepscope.trace.names import is_backward_root

_CLIMB = 256
"""So far outward the beginning of a chain is looked for; beyond, all that lies in the outermost slice is one."""


def rows_of(start: Int64, end: Int64, group: Ints, rank: Ints, *, side_by_side: Mask) -> tuple[Int64, Int64]:
    """The row of each slice within its group, and the slice that it lies in, -1 for none; both of shape (n,).

    By depth no two slices of a row overlap, whatever outlasts what it began in: all that is open when a slice starts
    lies above it. Where slices outlast what they began in, rows stay empty for as long as they run, and depth grows
    without end in chains of them. There the rows are given out in order of time instead: each slice has the first that
    is free below what it lies in, or any free one if that has outlasted what it began in.

    Args:
        start: of each slice.
        end: of each slice.
        group: slices of different groups have nothing to do with each other.
        rank: of slices that start and end together the lower one encloses the other.
        side_by_side: which slices do not call each other where they overlap, so that they may stand in any free row.
    """
    nesting = Nesting.of(start, end, group, rank)
    parent = nesting.parents_of(start, end, group)
    row = depth(parent)
    wasteful = nesting.order[_wasteful(nesting, row[nesting.order])]
    if len(wasteful):
        top = _outermost_of_chains(start, end, parent, wasteful)
        chosen = np.flatnonzero(top >= 0)
        place = np.full(len(start), len(start))  # what has no length follows what begins with it
        place[nesting.order] = np.arange(len(nesting.order))
        order = chosen[np.lexsort((place[chosen], start[chosen], top[chosen]))]
        at = np.full(len(start) + 1, -1)
        at[order] = np.arange(len(order))
        outlasts = (parent >= 0) & (end > pick(end, parent))
        outer = parent[order]
        above = at[np.where(side_by_side[order] | outlasts[outer], -1, outer)]
        free = _first_free(start[order].tolist(), end[order].tolist(), top[order].tolist(), above.tolist())
        row[order] = row[top[order]] + np.array(free, np.int64)
    return np.minimum(row, MOST_ROWS - 1), parent


def _wasteful(nesting: Nesting, level: Int64) -> Mask:
    """Above which slices (of `nesting.order`) a row is free; `level` are depths; shape (k,)."""
    k = len(nesting.order)
    outlasts = (nesting.parent >= 0) & (nesting.end > pick(nesting.end, nesting.parent))
    found = np.zeros(k, np.bool_)
    if not outlasts.any():
        return found
    component = np.cumsum(nesting.parent < 0) - 1
    affected = np.zeros(int(component[-1]) + 1, np.bool_)
    affected[component[outlasts]] = True
    rows = np.flatnonzero(affected[component])
    member = component[rows]
    first = np.flatnonzero(np.append(True, member[1:] != member[:-1]))
    number = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(rows))))
    begin, end = _on_one_axis(nesting.start[rows], nesting.end[rows], first, number)
    deep = np.flatnonzero(level[rows] > 0)
    closed = np.searchsorted(np.sort(end), begin[deep], side="right") - first[number[deep]]
    is_open = deep - first[number[deep]] - closed
    found[rows[deep]] = level[rows[deep]] > is_open
    return found


def _on_one_axis(start: Int64, end: Int64, first: Int64, number: Int64) -> tuple[Int64, Int64]:
    """Times moved so that each component has a stretch of one axis to itself, in their order.

    `first` is the first row of each component, `number` the component of each row.
    """
    origin = start[first]
    spans = np.maximum.reduceat(end, first) - origin + 1
    if spans.sum(dtype=np.float64) < 1 << 62:
        shift = (np.cumsum(spans) - spans - origin)[number]
        return start + shift, end + shift
    _, instant = np.unique(np.concatenate((start, end)), return_inverse=True)
    key = np.concatenate((number, number)) * (2 * len(start) + 1) + instant.reshape(-1)
    return key[: len(start)], key[len(start) :]


def _outermost_of_chains(start: Int64, end: Int64, parent: Int64, chosen: Int64) -> Int64:
    """The first slice of the chain that each slice is in or below, -1 for none; shape (n,).

    A chain begins with the outermost slice that had ended by the start of a `chosen` one in it.
    """
    first, rows, at = chosen.copy(), np.arange(len(chosen)), parent[chosen]
    for _ in range(_CLIMB):
        on = at >= 0
        rows, at = rows[on], at[on]
        if not len(rows):
            break
        ended = end[at] <= start[chosen[rows]]
        first[rows[ended]] = at[ended]
        at = parent[at]
    is_first = np.zeros(len(start), np.bool_)
    is_first[first] = True
    if len(rows):
        is_first[nearest(parent, parent < 0)[chosen[rows]]] = True
    marked = np.flatnonzero(is_first)
    is_first[marked[pick(nearest(parent, is_first), parent[marked]) >= 0]] = False
    return nearest(parent, is_first)


def _first_free(starts: list[int], ends: list[int], groups: list[int], above: list[int]) -> list[int]:
    """The first row of each slice that nothing open holds; slices stand by group and start.

    Below `above`, the place of what it lies in; -1 where any row will do.
    """
    found: list[int] = []
    held: list[tuple[int, int]] = []
    taken, current = 0, -1
    for start, end, group, outer in zip(starts, ends, groups, above, strict=True):
        if group != current:
            held, taken, current = [], 0, group
        while held and held[0][0] <= start:
            taken ^= heapq.heappop(held)[1]
        closed = taken | ((2 << found[outer]) - 1) if outer >= 0 else taken
        bit = ~closed & (closed + 1)
        row = bit.bit_length() - 1
        found.append(row)
        if end > start and row < MOST_ROWS:
            taken |= bit
            heapq.heappush(held, (end, bit))
    return found


MOST_TRACKS = 256
"""So many threads and streams have tracks of their own, those with most events; the others share one of each kind."""

_LONGEST_TITLE = 120


@dataclass(frozen=True, slots=True)
class Placement:
    """The tracks in the order in which they are shown, and the one of each event."""

    tracks: list[Track]
    """Not yet with their rows and slices."""
    of_event: Int64
    """Index into `tracks`; shape (n,)."""
    shared: list[int]
    """The tracks that several threads or streams share."""


def place_on_tracks(trace: Trace, training_thread: int, steps: Mask, *, has_steps: bool) -> Placement:
    """The tracks of a trace. With `has_steps` the first is that of the steps: of these events, and of phases."""
    events = trace.events
    on_device = of_kind(trace, Kind.KERNEL, Kind.MEMCPY, Kind.MEMSET, Kind.DEVICE_SPAN)
    lane = events.thread.astype(np.int64) * 2 + on_device
    lane[steps] = -1
    counts = np.bincount(lane[~steps], minlength=2 * len(trace.threads))
    used = np.flatnonzero(counts)
    own = used[np.argsort(-counts[used], kind="stable")[:MOST_TRACKS]]
    if training_thread >= 0 and counts[2 * training_thread]:
        own = distinct_values(np.append(own, 2 * training_thread))
    sample = np.full(2 * len(trace.threads) + 1, -1, np.int64)  # the last place is that of the steps
    sample[lane[::-1]] = np.arange(len(lane))[::-1]
    ordered = _ordered(trace, own, training_thread, lane, sample)
    tracks = [_track("steps", "steps")] if has_steps else []
    number = np.full(2 * len(trace.threads) + 1, -1, np.int64)  # the last place is that of the steps
    number[-1] = 0
    shared = []
    several = _has_several_processes(trace, counts)
    others = {side: used[(used % 2 == side) & ~np.isin(used, own)] for side in (0, 1)}
    for one in ordered:
        if one % 2 == 0 and one != 2 * training_thread and len(others[1]):
            shared.append(_share(tracks, number, others, side=1))
        number[one] = len(tracks)
        tracks.append(
            _of_stream(trace, one, int(sample[one]))
            if one % 2
            else _of_thread(trace, one // 2, training_thread, several)
        )
    shared += [_share(tracks, number, others, side=side) for side in (1, 0) if len(others[side])]
    for place, track in enumerate(tracks):
        track.id = place
    return Placement(tracks, number[lane], shared)


def _share(tracks: list[Track], number: Int64, others: dict[int, Int64], *, side: int) -> int:
    """A track for all other threads (`side` 0) or streams (1)."""
    rest, others[side] = others[side], others[side][:0]
    number[rest] = len(tracks)
    kind: TrackKind = "stream" if side else "thread"
    tracks.append(_track(kind, f"{len(rest):,} other {kind}s"))
    return len(tracks) - 1


def _ordered(trace: Trace, own: Int64, training_thread: int, lane: Int64, sample: Int64) -> list[int]:
    """The training thread, the streams by device and number, autograd's threads, others by their start, markers.

    `sample` is the first event of each thread and side.
    """
    events = trace.events
    lanes = 2 * len(trace.threads)
    first = np.full(lanes + 1, np.iinfo(np.int64).max)
    np.minimum.at(first, lane, events.start_ns)
    calls = np.bincount(lane[of_kind(trace, *CPU_KINDS)] + 1, minlength=lanes + 1)[1:] > 0
    engine = named(trace, of_kind(trace, Kind.OPERATOR), is_backward_root)
    autograd = np.bincount(lane[engine], minlength=lanes) > 0

    def key(one: int) -> tuple[int, ...]:
        if one % 2:
            event = sample[one]
            return 1, int(events.device[event]), int(events.stream[event]), one
        if one == 2 * training_thread:
            return (0,)
        return 2 if autograd[one] else 3 if calls[one] else 4, int(first[one]), one

    return sorted(own.tolist(), key=key)


def _has_several_processes(trace: Trace, counts: Int64) -> bool:
    """Whether threads of more than one process have events; what has words for a number is no process."""
    used = np.flatnonzero(counts[::2]).tolist()
    return len({trace.threads[one].pid for one in used if isinstance(trace.threads[one].pid, int)}) > 1


def _of_thread(trace: Trace, place: int, training_thread: int, several_processes: bool) -> Track:
    thread = trace.threads[place]
    words = _words(thread, "thread")
    if several_processes and thread.process_name:
        words = f"{thread.process_name} {thread.pid}: {words}"
    return _track("thread", words, is_training=place == training_thread)


def _of_stream(trace: Trace, one: int, event: int) -> Track:
    device, stream = int(trace.events.device[event]), int(trace.events.stream[event])
    thread = trace.threads[one // 2]
    words = f"stream {stream}" if 0 <= stream < 1 << 31 else _words(thread, "stream")
    return _track("stream", words if device < 0 else f"device {device}, {words}", device=device)


def _words(thread: Thread, kind: str) -> str:
    name, number = thread.name.strip(), str(thread.tid)
    if not name and not isinstance(thread.tid, int) and number:
        return number
    return name if number in name and name else f"{name or kind} {number}"


def _track(kind: TrackKind, title: str, *, device: int = -1, is_training: bool = False) -> Track:
    words = clipped(title, _LONGEST_TITLE)
    return Track(id=0, kind=kind, title=words, device=device, rows=0, slices=0, is_training=is_training)

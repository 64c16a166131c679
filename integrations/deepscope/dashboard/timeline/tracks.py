"""On which track each event stands: the steps, a thread of the CPU, a stream of a device."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from deepscope.analysis.array_ops.selection import named, of_kind
from deepscope.analysis.ownership.calls import CPU_KINDS, step_events
from deepscope.dashboard.timeline.answers import Track, TrackKind
from deepscope.printable import printable
from deepscope.trace.arrays import distinct_values
from deepscope.trace.kinds import Kind
from deepscope.trace.model import Int64, Thread, Trace
from deepscope.trace.names import is_backward_root

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


def place_on_tracks(trace: Trace, training_thread: int, *, has_steps: bool) -> Placement:
    """The tracks of a trace. With `has_steps` the first is that of the steps, which has the training thread's."""
    events = trace.events
    on_device = of_kind(trace, Kind.KERNEL, Kind.MEMCPY, Kind.MEMSET, Kind.DEVICE_SPAN)
    lane = events.thread.astype(np.int64) * 2 + on_device
    steps = step_events(trace) & (events.thread == training_thread) if has_steps else np.zeros(len(events), np.bool_)
    lane[steps] = -1
    counts = np.bincount(lane[~steps], minlength=2 * len(trace.threads))
    used = np.flatnonzero(counts)
    own = used[np.argsort(-counts[used], kind="stable")[:MOST_TRACKS]]
    if training_thread >= 0 and counts[2 * training_thread]:
        own = distinct_values(np.append(own, 2 * training_thread))
    ordered = _ordered(trace, own, training_thread, lane)
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
            _of_stream(trace, one, lane) if one % 2 else _of_thread(trace, one // 2, training_thread, several)
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


def _ordered(trace: Trace, own: Int64, training_thread: int, lane: Int64) -> list[int]:
    """The training thread, the streams by device and number, autograd's threads, others by their start, markers."""
    events = trace.events
    lanes = 2 * len(trace.threads)
    first = np.full(lanes + 1, np.iinfo(np.int64).max)
    np.minimum.at(first, lane, events.start_ns)
    calls = np.bincount(lane[of_kind(trace, *CPU_KINDS)] + 1, minlength=lanes + 1)[1:] > 0
    engine = named(trace, of_kind(trace, Kind.OPERATOR), is_backward_root)
    autograd = np.bincount(lane[engine], minlength=lanes) > 0
    sample = _sample(lane, lanes)

    def key(one: int) -> tuple[int, ...]:
        if one % 2:
            event = sample[one]
            return 1, int(events.device[event]), int(events.stream[event]), one
        if one == 2 * training_thread:
            return (0,)
        return 2 if autograd[one] else 3 if calls[one] else 4, int(first[one]), one

    return sorted(own.tolist(), key=key)


def _sample(lane: Int64, lanes: int) -> Int64:
    """An event of each thread and side; the last place is that of the steps."""
    sample = np.full(lanes + 1, -1, np.int64)
    sample[lane] = np.arange(len(lane))
    return sample


def _has_several_processes(trace: Trace, counts: Int64) -> bool:
    """Whether threads of more than one process have events; processes that bear words stand for something else."""
    used = np.flatnonzero(counts[::2]).tolist()
    return len({trace.threads[one].pid for one in used if isinstance(trace.threads[one].pid, int)}) > 1


def _of_thread(trace: Trace, place: int, training_thread: int, several_processes: bool) -> Track:
    thread = trace.threads[place]
    words = _words(thread, "thread")
    if several_processes and thread.process_name:
        words = f"{thread.process_name} {thread.pid}: {words}"
    return _track("thread", words, is_training=place == training_thread)


def _of_stream(trace: Trace, one: int, lane: Int64) -> Track:
    event = int(np.argmax(lane == one))
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
    words = printable(title)
    if len(words) > _LONGEST_TITLE:
        words = words[: _LONGEST_TITLE - 1] + "…"
    return Track(id=0, kind=kind, title=words, device=device, rows=0, slices=0, is_training=is_training)

"""A snapshot's report, device by device, and what grows from step to step."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import takewhile

import numpy as np

from deepscope.analysis.array_ops.selection import Mask
from deepscope.analysis.snapshots.replay import (
    LiveBlock,
    Place,
    Replay,
    holders,
    is_backward,
    is_python,
    place_of,
    places,
    replay,
)
from deepscope.records.memory import (
    Fragmentation,
    GrowingHolder,
    SnapshotDevice,
    SnapshotFailure,
    SnapshotGrowth,
    SnapshotMoment,
    SnapshotReport,
    StepSource,
)
from deepscope.trace.memory_snapshots import Annotation, Entry, MemorySnapshot, Segment
from deepscope.trace.model import Int64
from deepscope.trace.names import Frame

LEAST_STEPS = 3
"""With fewer nothing is said of growth."""
_SERIES = (re.compile(r"(ProfilerStep)#\d+$"), re.compile(r"(Optimizer\.step#.*)", re.DOTALL))
"""Annotations that come once a step, the best first."""
_OF_STEPS = 0.8
"""A line grows if so many of the steps left something."""
_EQUAL = 0.9
"""Of the allocations from the first usual step to the last one, those in usual steps."""
_COVERED = 0.5
"""Of the whole history's allocations, those in usual steps."""
_DRIFT = 0.25
"""What a step leaves, by the span of what is live in it."""
_BOTH = 0.1
"""Of a training step's allocations, those in backward, and those outside it."""


@dataclass(frozen=True, slots=True)
class _Steps:
    source: StepSource
    name: str
    begins: list[int]
    """The entry that each step begins with, and the one after the last step."""


def growth(
    replayed: Replay,
    annotations: Sequence[Annotation],
    known: Sequence[Place],
    stacks: Sequence[tuple[Frame, ...]],
) -> SnapshotGrowth | None:
    """What grows in a device's history; None where it has too few steps, or none that can be told apart.

    Args:
        replayed: the history.
        annotations: of this device.
        known: the place of each stack.
        stacks: of the snapshot.
    """
    entries = replayed.entries
    allocations = _Allocations(entries)
    steps = _by_annotations(entries, annotations) or _by_allocations(replayed, allocations, stacks)
    if steps is None or len(steps.begins) - 2 < LEAST_STEPS:
        return None
    whole = len(steps.begins) - 2  # the last one's blocks may be in use
    left: dict[Place, Counter[int]] = defaultdict(Counter)
    for block in replayed.live_after(len(entries) - 1):
        step = bisect_left(steps.begins, block.entry + 1) - 1
        if block.entry >= 0 and 0 <= step < whole:
            left[place_of(block, known)][step] += block.size_bytes
    grows = [
        GrowingHolder(
            **place._asdict(),
            size_bytes=sum(found.values()),
            per_step_bytes=sum(found.values()) // whole,
            steps=len(found),
        )
        for place, found in left.items()
        if len(found) >= max(LEAST_STEPS, _OF_STEPS * whole)
    ]
    return SnapshotGrowth(
        source=steps.source,
        name=steps.name,
        steps=whole,
        equal_steps=int(allocations.usual(steps.begins[:-1]).sum()),
        holders=sorted(grows, key=lambda one: (-one.size_bytes, one.file, one.line)),
    )


def _by_annotations(entries: Sequence[Entry], annotations: Sequence[Annotation]) -> _Steps | None:
    times = [one.time_us for one in entries]
    if not times or not all(times):
        return None
    for series in _SERIES:
        begins: dict[str, list[int]] = defaultdict(list)
        for one in annotations:
            # A step that began before the history may not be whole.
            if one.is_start and one.time_us >= times[0] and (found := series.match(one.name)):
                begins[found[1]].append(bisect_left(times, one.time_us))
        for name, found_begins in sorted(begins.items(), key=lambda one: len(one[1])):
            distinct = sorted(set(found_begins))
            if len(distinct) - 2 >= LEAST_STEPS:
                return _Steps("annotations", name, distinct)
    return None


class _Allocations:
    """Which stacks allocate between two entries: one number a range, equal for the same stacks in any order."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.stacks = np.array([one.stack if one.action == "alloc" else -2 for one in entries], np.int64)
        """Of each entry; -2 for none that allocates."""
        mixed = np.random.default_rng(0).integers(1 << 63, size=int(self.stacks.max(initial=0)) + 3, dtype=np.uint64)
        mixed[-2] = 0
        self._sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mixed[self.stacks])])
        self._counts = np.concatenate([np.zeros(1, np.int64), np.cumsum(self.stacks > -2)])

    def usual(self, begins: Sequence[int] | Int64) -> Mask:
        """Which of the steps that begin there have what most of them have; shape (begins - 1,)."""
        _, kind, times = np.unique(np.diff(self._sums[begins]), return_inverse=True, return_counts=True)
        return np.asarray(kind == times.argmax(), np.bool_)

    def between(self, begins: Sequence[int] | Int64) -> Int64:
        """How many there are in each step; shape (begins - 1,)."""
        return np.diff(self._counts[begins])


def _by_allocations(replayed: Replay, allocations: _Allocations, stacks: Sequence[tuple[Frame, ...]]) -> _Steps | None:
    """Steps from one allocation on some stack to the next one on it, where nearly all have the same allocations.

    Of all stacks that one is taken whose steps cover most. The layers of a model look like steps, too: they run within
    the call of a module, or in backward alone.
    """
    order = np.argsort(allocations.stacks, kind="stable")
    ends = np.flatnonzero(np.diff(allocations.stacks[order])) + 1
    best, most = None, _COVERED * int((allocations.stacks > -2).sum())
    in_backward = np.array([*map(is_backward, stacks), False, True], np.bool_)[allocations.stacks]
    for begins in np.split(order, ends):
        if len(begins) - 2 < LEAST_STEPS or allocations.stacks[begins[0]] < 0:
            continue
        counts, usual = allocations.between(begins), allocations.usual(begins)
        covered = int(counts[usual].sum())
        at = np.flatnonzero(usual)
        if len(at) < LEAST_STEPS or covered <= most or covered < _EQUAL * counts[at[0] : at[-1] + 1].sum():
            continue
        inside = begins[at[0] : at[-1] + 2]
        if _is_in_module_call(
            {stacks[one] for one in set(allocations.stacks[inside[0] : inside[-1]].tolist()) if one >= 0}
        ):
            continue
        backward = in_backward[inside[0] : inside[-1]].sum() / counts[at[0] : at[-1] + 1].sum()
        if _BOTH <= backward <= 1 - _BOTH or _returns(replayed.allocated_bytes, inside):
            best, most = begins, covered
    return None if best is None else _Steps("allocations", "", best.tolist())


def _is_in_module_call(stacks: Collection[tuple[Frame, ...]]) -> bool:
    """Whether all of the stacks outside backward go through the same call of a module."""
    outwards = [[frame for frame in reversed(one) if is_python(frame)] for one in stacks if not is_backward(one)]
    shared = takewhile(lambda frames: len(set(frames)) == 1, zip(*outwards, strict=False))
    return any(frame.path.endswith("torch/nn/modules/module.py") and "call" in frame.function for frame, *_ in shared)


def _returns(live: Int64, begins: Int64) -> bool:
    """Whether most steps end with about as much as they began with."""
    drift = np.median(np.abs(np.diff(live[begins])))
    within = live[: begins[-1]]
    span = np.maximum.reduceat(within, begins[:-1]) - np.minimum.reduceat(within, begins[:-1])
    return bool(drift <= _DRIFT * np.median(span))


FAILURES = 3
"""Allocations that failed and are told with all that was live then."""


def snapshot_report(snapshot: MemorySnapshot, path: str) -> SnapshotReport:
    """What a snapshot tells."""
    known = places(snapshot.stacks)
    used = {segment.device for segment in snapshot.segments}
    used |= {device for device, history in enumerate(snapshot.histories) if history}
    devices = [_device(snapshot, device, known) for device in sorted(used)]
    devices.sort(key=lambda one: -one.peak.allocated_bytes)
    return SnapshotReport(path=path, devices=devices, settings=snapshot.settings)


def _device(snapshot: MemorySnapshot, device: int, known: Sequence[Place]) -> SnapshotDevice:
    segments = [segment for segment in snapshot.segments if segment.device == device]
    entries = snapshot.histories[device] if device < len(snapshot.histories) else []
    replayed = replay(entries, segments)
    failed = [place for place, one in enumerate(entries) if one.action == "oom"]
    has_peak = any(one.action == "alloc" for one in entries)
    noted = [one for one in snapshot.annotations if one.device == device]

    def moment(blocks: list[LiveBlock], entry: int) -> SnapshotMoment:
        return SnapshotMoment(
            time_us=entries[entry].time_us if entries else 0,
            allocated_bytes=sum(block.size_bytes for block in blocks),
            reserved_bytes=int(replayed.reserved_bytes[entry])
            if entries
            else sum(segment.size_bytes for segment in segments),
            holders=holders(blocks, known, snapshot.stacks),
        )

    peak = int(replayed.allocated_bytes.argmax()) if has_peak else len(entries) - 1
    return SnapshotDevice(
        device=device,
        entries=len(entries),
        begin_us=entries[0].time_us if entries else 0,
        end_us=entries[-1].time_us if entries else 0,
        has_peak=has_peak,
        peak=moment(replayed.live_after(peak), peak),
        failures=[_failure(replayed, place, moment(replayed.live_after(place), place)) for place in failed[-FAILURES:]],
        failed=len(failed),
        fragmentation=_fragmentation(segments),
        growth=growth(replayed, noted, known, snapshot.stacks),
    )


def _failure(replayed: Replay, place: int, live: SnapshotMoment) -> SnapshotFailure:
    entry = replayed.entries[place]
    return SnapshotFailure(
        time_us=live.time_us,
        allocated_bytes=live.allocated_bytes,
        reserved_bytes=live.reserved_bytes,
        holders=live.holders,
        asked_bytes=entry.size_bytes,
        free_bytes=entry.address,
    )


def _fragmentation(segments: Sequence[Segment]) -> Fragmentation:
    live = [block for segment in segments for block in segment.blocks if block.is_live]
    size = sum(block.size_bytes for block in live)
    # Of expandable segments a part of any size can go back, so torch counts none of them as split.
    split = [
        block.size_bytes
        for segment in segments
        if not segment.is_expandable and len(segment.blocks) > 1
        for block in segment.blocks
        if not block.is_live
    ]
    free = [block.size_bytes for segment in segments for block in segment.blocks if not block.is_live]
    return Fragmentation(
        reserved_bytes=sum(segment.size_bytes for segment in segments),
        live_bytes=size,
        rounding_bytes=size - sum(block.requested_bytes for block in live),
        split_bytes=sum(split),
        largest_free_bytes=max(free, default=0),
        segments=len(segments),
    )

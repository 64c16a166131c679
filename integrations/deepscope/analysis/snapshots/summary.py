"""A snapshot's report, device by device."""

from __future__ import annotations

from collections.abc import Sequence

from deepscope.analysis.snapshots.growth import growth
from deepscope.analysis.snapshots.replay import LiveBlock, Place, Replay, holders, places, replay
from deepscope.records.snapshots import (
    Fragmentation,
    SnapshotDevice,
    SnapshotFailure,
    SnapshotMoment,
    SnapshotReport,
)
from deepscope.trace.memory_snapshots.read import MemorySnapshot, Segment

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

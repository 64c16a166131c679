"""The history of a device carried out again: what was live, and what was reserved, after each entry.

A block is live until it may be used again (`free_completed`): what another stream still uses is not free. Of blocks
that were allocated before the history only their release is known, or that they are live at its end.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from deepscope.trace.memory_snapshots.read import NO_STACK, Entry, Segment
from deepscope.trace.model import Int64

_GROWS = frozenset({"segment_alloc", "segment_map"})
_SHRINKS = frozenset({"segment_free", "segment_unmap"})


class LiveBlock(NamedTuple):
    """A block that is live at some moment."""

    size_bytes: int
    """As it was asked for."""
    stack: int
    """-1 unknown."""
    category: str
    entry: int
    """That allocated it; -1: before the history."""


@dataclass(frozen=True, slots=True)
class Replay:
    """A device's history."""

    entries: Sequence[Entry]
    first: dict[int, LiveBlock]
    """What was live before it, by address."""
    allocated_bytes: Int64
    """Live after each entry, as it was asked for; shape (entries,)."""
    reserved_bytes: Int64
    """After each entry, -1 unknown; shape (entries,)."""
    frees: frozenset[str]
    """Actions that end a block's life."""

    def live_after(self, entry: int) -> list[LiveBlock]:
        """The blocks that are live after an entry; -1: before the history."""
        live = dict(self.first)
        for place, one in enumerate(self.entries[: entry + 1]):
            if one.action == "alloc":
                live[one.address] = LiveBlock(one.size_bytes, one.stack, one.category, place)
            elif one.action in self.frees:
                live.pop(one.address, None)
        return list(live.values())


def _live_at_end(segments: Iterable[Segment]) -> dict[int, LiveBlock]:
    """What was live as the snapshot was taken, by address."""
    return {
        block.address: LiveBlock(block.requested_bytes, block.stack, block.category, -1)
        for segment in segments
        for block in segment.blocks
        if block.is_live
    }


def replay(entries: Sequence[Entry], segments: Sequence[Segment]) -> Replay:
    """The history of a device with the segments that it has at the end."""
    at_end = _live_at_end(segments)
    frees = _frees(entries, at_end)
    first: dict[int, LiveBlock] = {}
    seen: set[int] = set()
    for one in entries:
        is_free = one.action in frees
        if is_free and one.address not in seen:
            # The stack of a release says who released.
            first[one.address] = LiveBlock(one.size_bytes, NO_STACK, one.category, -1)
        if is_free or one.action == "alloc":
            seen.add(one.address)
    first |= {address: block for address, block in at_end.items() if address not in seen}
    sizes = {address: block.size_bytes for address, block in first.items()}
    live = sum(sizes.values())
    reserved = sum(segment.size_bytes for segment in segments)
    reserved -= sum(_reserves(one) for one in entries)
    allocated_bytes, reserved_bytes = [], []
    for one in entries:
        if one.action == "alloc":
            live += one.size_bytes - sizes.get(one.address, 0)  # whose release is not in the history
            sizes[one.address] = one.size_bytes
        elif one.action in frees:
            live -= sizes.pop(one.address, 0)
        reserved += _reserves(one)
        allocated_bytes.append(live)
        reserved_bytes.append(reserved)
    allocated, held = np.array(allocated_bytes, np.int64), np.array(reserved_bytes, np.int64)
    if (held < allocated).any():  # entries of segments were not recorded
        held = np.full(len(entries), -1, np.int64)
    return Replay(entries, first, allocated, held, frees)


def _frees(entries: Sequence[Entry], at_end: Collection[int]) -> frozenset[str]:
    """Which actions end a block's life: requests where completed releases were not recorded (`skip_actions`)."""
    waiting: set[int] = set()
    for one in entries:
        if one.action == "free_completed":
            return frozenset({"free_completed"})
        if one.action == "alloc" and one.address in waiting:
            return frozenset({"free_requested"})
        if one.action == "free_requested":
            waiting.add(one.address)
    return frozenset({"free_completed"} if all(address in at_end for address in waiting) else {"free_requested"})


def _reserves(entry: Entry) -> int:
    if entry.action in _GROWS:
        return entry.size_bytes
    return -entry.size_bytes if entry.action in _SHRINKS else 0

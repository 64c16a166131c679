"""The history of a device carried out again: what was live and reserved after each entry, and who held it.

A block is live until it may be used again (`free_completed`): what another stream still uses is not free. Of blocks
that were allocated before the history only their release is known, or that they are live at its end.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from deepscope.analysis.ownership.locations import Owner, owner_of_file
from deepscope.records.memory import HolderKind, HolderStack, SnapshotHolder
from deepscope.trace.memory_snapshots import NO_STACK, Entry, Segment
from deepscope.trace.model import Int64
from deepscope.trace.names import Frame

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


_STACKS = 8
_FRAMES = 64
_NAME = 300
_OWN = (
    "torch::unwind",
    "torch::CapturedTraceback",
    "torch::cuda::",
    "c10::cuda::CUDACachingAllocator",
    "c10::impl::wrap",
)
"""How the names of frames begin that record, allocate or dispatch."""


class Place(NamedTuple):
    """A line that holds memory, or why none is known."""

    kind: HolderKind
    file: str = ""
    line: int = 0
    function: str = ""


BEFORE = Place("before")


def places(stacks: Sequence[tuple[Frame, ...]]) -> list[Place]:
    """The place of each stack. Of its Python frames a library's speaks only where none is the user's."""
    return [_place(stack) for stack in stacks]


def _place(stack: tuple[Frame, ...]) -> Place:
    owners = [owner_of_file(frame.path) if is_python(frame) else Owner.RUNTIME for frame in stack]
    best = max(owners, default=Owner.RUNTIME)
    if best == Owner.RUNTIME:
        return Place("backward" if is_backward(stack) else "no_line")
    frame = stack[owners.index(best)]
    return Place("line", frame.path, frame.line, frame.function)


def is_backward(stack: tuple[Frame, ...]) -> bool:
    """Whether autograd's engine ran what a stack allocated for; stacks without frames of C++ do not say."""
    return any("torch::autograd::Engine" in frame.function for frame in stack)


def is_python(frame: Frame) -> bool:
    """Whether a frame is Python's, not of C++ or of the interpreter itself."""
    return frame.line > 0 and (frame.path.endswith(".py") or frame.path.startswith("<ipython-input"))


def place_of(block: LiveBlock, known: Sequence[Place]) -> Place:
    """Of one block."""
    if block.stack != NO_STACK:
        return known[block.stack]
    return BEFORE if block.entry < 0 else Place("no_line")


def holders(
    blocks: Iterable[LiveBlock], known: Sequence[Place], stacks: Sequence[tuple[Frame, ...]]
) -> list[SnapshotHolder]:
    """The blocks by place and category, largest first; they sum to all of the blocks."""
    rows: dict[tuple[HolderKind, str, int, str], SnapshotHolder] = {}
    by_stack: dict[tuple[HolderKind, str, int, str], dict[int, list[int]]] = defaultdict(dict)
    for block in blocks:
        place = place_of(block, known)
        key = (place.kind, place.file, place.line, block.category)
        row = rows.get(key)
        if row is None:
            row = rows[key] = SnapshotHolder(
                kind=place.kind,
                file=place.file,
                line=place.line,
                function=place.function,
                category=block.category[:_NAME],
            )
        row.size_bytes += block.size_bytes
        row.blocks += 1
        if block.stack != NO_STACK:
            sums = by_stack[key].setdefault(block.stack, [0, 0])
            sums[0] += block.size_bytes
            sums[1] += 1
    for key, found in by_stack.items():
        largest = sorted(found.items(), key=lambda one: -one[1][0])[:_STACKS]
        rows[key].stacks = [
            HolderStack(size_bytes=size, blocks=count, frames=_texts(stacks[stack])) for stack, (size, count) in largest
        ]
    return sorted(rows.values(), key=lambda row: (-row.size_bytes, row.file, row.line, row.category))


def _texts(stack: tuple[Frame, ...]) -> list[str]:
    shown = [frame for frame in stack if is_python(frame) or _is_of_torch(frame.function)]
    return [_text(frame) for frame in shown[:_FRAMES]]


def _is_of_torch(function: str) -> bool:
    """Of frames of C++; those of the interpreter, which is C, say nothing beside Python's own."""
    return "::" in function and not function.startswith(_OWN)


def _text(frame: Frame) -> str:
    name = frame.function[:_NAME]
    return f"{frame.path[-_NAME:]}({frame.line}): {name}" if is_python(frame) else name

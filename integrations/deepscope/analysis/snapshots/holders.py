"""Whose the live blocks are: the innermost line of the user's on each one's stack."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from deepscope.analysis.ownership.frames import Owner, owner_of_file
from deepscope.analysis.snapshots.replay import LiveBlock
from deepscope.records.snapshots import HolderKind, HolderStack, SnapshotHolder
from deepscope.trace.memory_snapshots.read import NO_STACK
from deepscope.trace.names import Frame

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

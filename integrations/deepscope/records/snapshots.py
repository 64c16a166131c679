"""What a snapshot of torch's memory tells of each device: who held what, what is fragmented, what grows."""

from __future__ import annotations

from typing import Literal

import msgspec

HolderKind = Literal["line", "no_line", "backward", "before"]
"""Whose bytes are: a line's; of a stack without a line of the user's, or of autograd's thread, which has no Python
frame; or unknown, since they were allocated before the history began."""
StepSource = Literal["annotations", "allocations"]
"""What tells steps apart: annotations of steps, or allocations that come again and again in the same order."""


class HolderStack(msgspec.Struct, kw_only=True):
    """One of the stacks that a holder's blocks were allocated on."""

    size_bytes: int
    blocks: int
    frames: list[str]
    """`path(line): function`, innermost first; without the allocator's and the interpreter's own frames."""


class SnapshotHolder(msgspec.Struct, kw_only=True):
    """What one line had allocated of what was live at a moment."""

    kind: HolderKind
    file: str = ""
    line: int = 0
    function: str = ""
    category: str = ""
    """As the snapshot has it (`torch.cuda.memory._set_memory_metadata`); "" for none."""
    size_bytes: int = 0
    """As it was asked for: the allocator rounds blocks up."""
    blocks: int = 0
    stacks: list[HolderStack] = []
    """The largest; no more than eight."""


class SnapshotMoment(msgspec.Struct, kw_only=True):
    """What was live at a moment."""

    time_us: int
    """Unix time in microseconds; 0 where the snapshot has no times."""
    allocated_bytes: int
    """As it was asked for."""
    reserved_bytes: int
    """What the allocator had of the device; -1 unknown."""
    holders: list[SnapshotHolder]
    """Largest first; they sum to `allocated_bytes`."""


class SnapshotFailure(SnapshotMoment, kw_only=True):
    """An allocation that failed, and what was live then."""

    asked_bytes: int
    free_bytes: int
    """What the device had left, as its driver says."""


class Fragmentation(msgspec.Struct, kw_only=True):
    """How the allocator's memory is divided, as the snapshot was taken."""

    reserved_bytes: int
    live_bytes: int
    """With what blocks are rounded up by; reserved bytes without these are free for reuse."""
    rounding_bytes: int
    """The part of `live_bytes` that nobody asked for."""
    split_bytes: int
    """Free parts of segments that hold live blocks, too: they cannot go back to the device."""
    largest_free_bytes: int
    """The largest block that can be had without asking the device."""
    segments: int


class GrowingHolder(msgspec.Struct, kw_only=True):
    """A line whose blocks of one step after the other are still live at the history's end."""

    kind: HolderKind
    file: str = ""
    line: int = 0
    function: str = ""
    size_bytes: int = 0
    """Of all steps."""
    per_step_bytes: int = 0
    steps: int = 0
    """That left something."""


class SnapshotGrowth(msgspec.Struct, kw_only=True):
    """What grows from step to step."""

    source: StepSource
    name: str
    """Of the annotation; "" with `allocations`."""
    steps: int
    """That were compared: whole ones, without the last, whose blocks may be in use."""
    equal_steps: int
    """How many of them have the same allocations."""
    holders: list[GrowingHolder]
    """Largest first."""


class SnapshotDevice(msgspec.Struct, kw_only=True):
    """One device of a snapshot."""

    device: int
    entries: int
    """Of the history."""
    begin_us: int
    """Unix time in microseconds; 0 where the snapshot has no times."""
    end_us: int
    has_peak: bool
    """Whether the history tells of a peak; else `peak` is what was live as the snapshot was taken."""
    peak: SnapshotMoment
    failures: list[SnapshotFailure]
    """The last three at most."""
    failed: int
    """How many allocations failed."""
    fragmentation: Fragmentation
    growth: SnapshotGrowth | None
    """None where no steps can be told apart."""


class SnapshotReport(msgspec.Struct, kw_only=True):
    """A snapshot of torch's memory."""

    path: str
    devices: list[SnapshotDevice]
    """Those that were used, the largest peak first."""
    settings: dict[str, str] = {}
    """Of the allocator."""

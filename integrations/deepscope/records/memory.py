"""Memory of a trace (curves, peaks, what was live, by line and holder; counters), and what a snapshot tells."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from deepscope.records.merging import (
    Either,
    First,
    FirstKnown,
    Largest,
    RankRecords,
    Sum,
    largest_first,
    left_out,
    merged_by,
    of_largest,
    record,
    table,
)


class HeldMemory(msgspec.Struct, kw_only=True):
    """Live bytes at one moment by what held them."""

    size_bytes: Sum = 0
    """The others sum to it."""
    parameters_bytes: Sum = 0
    gradients_bytes: Sum = 0
    optimizer_bytes: Sum = 0
    inputs_bytes: Sum = 0
    activations_bytes: Sum = 0
    temporaries_bytes: Sum = 0
    unknown_bytes: Sum = 0


class HeldByLine(HeldMemory, kw_only=True):
    """What one line had allocated of it; without a file, what no line had."""

    file: First[str]
    line: First[int]
    function: First[str]
    exact: First[bool] = False


class CurvePoint(msgspec.Struct, array_like=True):
    """A device's memory after an allocation or a release."""

    at_ns: int
    """On the trace's clock."""
    allocated_bytes: int
    reserved_bytes: int
    """-1 where the trace does not say."""


class DeviceMemory(msgspec.Struct, kw_only=True):
    """The memory of one device; of ranks that call theirs by the same name, added up."""

    device: First[str]
    """`cuda:0`, `cpu`."""
    peak: Annotated[HeldMemory, merged_by(record)]
    """At the peak of each rank."""
    largest_peak_bytes: Largest
    """The peak of the rank that had the largest one; the next three are that rank's."""
    peak_at_ns: Annotated[int, merged_by(of_largest("largest_peak_bytes"))]
    capacity_bytes: Annotated[int, merged_by(of_largest("largest_peak_bytes"))] = 0
    """What the device has; 0 where the trace does not say."""
    curve: Annotated[list[CurvePoint], merged_by(of_largest("largest_peak_bytes"))] = []
    """Some 500 points at most, the peak among them."""


class MemoryFailure(msgspec.Struct, kw_only=True):
    """An allocation that failed, and what was live then."""

    error: str
    message: str
    device: str
    """Where most was live."""
    at_ns: int
    """When the exception reached the recorder, on the trace's clock."""
    held: HeldMemory
    lines: list[HeldByLine]
    """Largest first; they sum to `held`."""


class Memory(msgspec.Struct, kw_only=True):
    """The memory of a run, where the trace has it."""

    devices: Annotated[list[DeviceMemory], merged_by(table("device", order=largest_first("largest_peak_bytes")))] = []
    """Empty without `profile_memory`."""
    owners_known: Either = False
    """Whether the recorder told what held memory; else all of it is unknown."""
    failure: FirstKnown[MemoryFailure | None] = None
    """Of the first rank that failed."""


def _mean(group: RankRecords[Any], field: str) -> float:
    """Weighted by the time that each rank's covers; where none covers any, the plain mean."""
    weights = [record.covered_ns for record in group.records]
    whole = sum(weights)
    values: list[float] = group.values(field)
    if not whole:
        return sum(values) / len(values)
    return float(sum(value * weight for value, weight in zip(values, weights, strict=True)) / whole)


def _smallest(group: RankRecords[Any], field: str) -> float:
    return float(min(group.values(field)))


def _largest(group: RankRecords[Any], field: str) -> float:
    return float(max(group.values(field)))


class CounterBlock(msgspec.Struct, array_like=True):
    """A counter's level in some neighbouring steps, or in one."""

    block: First[int]
    """The steps' number divided by `Profile.steps_per_block`, rounded down."""
    mean: Annotated[float, merged_by(_mean)]
    """Weighted by time, in the series' unit; so are the next two."""
    smallest: Annotated[float, merged_by(_smallest)]
    """The least level in the steps."""
    largest: Annotated[float, merged_by(_largest)]
    """The peak in the steps."""
    covered_ns: Sum
    """Time of the steps in which the level is known."""


class CounterSeries(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One number over time. Each value holds until the next one."""

    counter: First[str]
    """What is counted: of DeepScope's own the track's name without its prefix."""
    series: First[str]
    """Of what: a core, a disk, a device, `all`."""
    unit: First[str] = ""
    """`%`, `B`, `B/s`, `1/s`, `W`, `MHz`, `°C`; "" for a plain number, and for counters of others."""
    mean: Annotated[float, merged_by(_mean)] = 0.0
    """Weighted by time."""
    smallest: Annotated[float, merged_by(_smallest)] = 0.0
    """The least of the values."""
    largest: Annotated[float, merged_by(_largest)] = 0.0
    """The peak."""
    samples: Sum = 0
    """How many values the trace has."""
    covered_ns: Sum = 0
    """Time in which the level is known."""
    is_own: First[bool] = False
    """Whether DeepScope counted it, so that its meaning is known (docs/counters.md)."""
    blocks: Annotated[list[CounterBlock], merged_by(left_out)] = []
    """By the steps, of a single rank; of the first series alone."""


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

"""Memory: each device's curve and peak, and what was live, by line and by what held it."""

from __future__ import annotations

from typing import Annotated

import msgspec

from deepscope.records.merging import (
    Either,
    First,
    FirstKnown,
    Largest,
    Sum,
    largest_first,
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
    is_told: Either = False
    """Whether the recorder told what held memory; else all of it is unknown."""
    failure: FirstKnown[MemoryFailure | None] = None
    """Of the first rank that failed."""

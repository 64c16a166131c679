"""Memory: each device's curve and peak, and what was live, by line and by what held it; and counters over time."""

from __future__ import annotations

from typing import Annotated, Any

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

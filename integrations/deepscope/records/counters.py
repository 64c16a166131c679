"""What was counted while a trace was recorded: how busy the machine was, as levels over time."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from deepscope.records.merging import First, RankRecords, Sum, left_out, merged_by


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

"""Operators, kernels, steps and phases."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from deepscope.records.merging import (
    First,
    Largest,
    RankSpread,
    Smallest,
    Sum,
    keys_summed,
    merged_by,
    of_largest,
    quotient,
    record,
    spread_of,
    to_be_judged,
)
from deepscope.records.why import Verdict, Why

__all__ = ["Kernel", "KernelKind", "Operator", "Phase", "Step"]

KernelKind = Literal["kernel", "memcpy", "memset", "collective"]


class Operator(msgspec.Struct, kw_only=True):
    """One operator by name."""

    name: First[str]
    calls: Sum
    self_device_ns: Sum
    total_device_ns: Sum
    self_cpu_ns: Sum
    total_cpu_ns: Sum
    flops: Sum = 0
    verdict: Annotated[Verdict, merged_by(to_be_judged)] = ""
    """What holds its work back; set when a profile is loaded."""
    why: Annotated[Why, merged_by(record)] = msgspec.field(default_factory=Why)
    """The time of its work by cause; where its FLOPs are those of operators that it calls, of their work, too."""


class Kernel(msgspec.Struct, kw_only=True):
    """One kind of device work by name."""

    name: First[str]
    kind: First[KernelKind]
    calls: Sum
    device_ns: Sum
    mean_ns: Annotated[int, merged_by(quotient("device_ns", "calls"))]
    max_ns: Largest
    operator: Annotated[str, merged_by(of_largest("device_ns"))] = ""
    """The operator that launches most of it."""


class Step(msgspec.Struct, kw_only=True):
    """One `ProfilerStep#N`. An event belongs to the step of its launch."""

    number: First[int]
    start_ns: Smallest
    duration_ns: Sum
    device_ns: Sum
    """Sum of durations of the device work launched in it (`cpu_self`: of operators' self time)."""
    busy_ns: Sum
    """Union of device work within the step's window, over the devices (`cpu_self`: of operators)."""
    idle_ns: Sum
    wait_ns: Sum
    phases: Annotated[dict[str, int], merged_by(keys_summed)] = {}
    """Phase → CPU wall time in it on the training thread; the values sum to `duration_ns`."""
    spread: Annotated[RankSpread | None, merged_by(spread_of("duration_ns"))] = None
    """Of `duration_ns` over the ranks; None for a single rank."""
    slow_file: Annotated[str, merged_by(of_largest("slow_ns"))] = ""
    """The line on which the training thread was longer than in other steps, by the most; "" for none. Of several
    ranks, that of the rank with most."""
    slow_line: Annotated[int, merged_by(of_largest("slow_ns"))] = 0
    slow_function: Annotated[str, merged_by(of_largest("slow_ns"))] = ""
    slow_ns: Largest = 0
    """Its time on that line less the median over the steps."""


class Phase(msgspec.Struct, kw_only=True):
    """One phase of training: data loading, forward, backward, optimizer, other."""

    name: First[str]
    wall_ns: Sum
    """Time of the training thread in it; all phases sum to the window."""
    device_ns: Sum
    """Device work launched in it."""
    calls: Sum = 0

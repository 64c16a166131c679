"""Operators, kernels, steps and phases."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from deepscope.records.merging import (
    Either,
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

__all__ = ["Kernel", "KernelKind", "Operator", "OperatorInDetail", "Phase", "Step"]

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
    moved_bytes: Sum = 0
    """The least that its work must move, where that is known."""
    allocated_bytes: Sum = 0
    """Taken while it was the innermost operator."""
    tensor_core_self_ns: Sum = 0
    """The part of `self_device_ns` in kernels that use tensor cores, as their names tell."""
    tensor_core_total_ns: Sum = 0
    tensor_core_eligible: Either = False
    """Whether it, or an operator that it calls, could use them."""
    verdict: Annotated[Verdict, merged_by(to_be_judged)] = ""
    """What holds its work back; set when a profile is loaded."""
    why: Annotated[Why, merged_by(record)] = msgspec.field(default_factory=Why)
    """The time of its work by cause; where its FLOPs are those of operators that it calls, of their work, too."""


class OperatorInDetail(Operator, kw_only=True):
    """An operator by the shapes of its arguments, by the lines that led to it, or by both.

    Over the rows of one name all sums are those of its `Operator`.
    """

    shapes: First[str] = ""
    """Of the arguments, as JSON: `[[64, 512], [512], []]`, `[]` for what is no tensor; "" where the trace has none."""
    stack: First[str] = ""
    """The user's lines, the innermost first, as traces write them: `train.py(12): main;…`."""
    dtypes: Annotated[str, merged_by(of_largest("calls"))] = ""
    """Of the arguments, as JSON, as most calls have them; "" where the trace does not tell."""
    out_shapes: Annotated[str, merged_by(of_largest("calls"))] = ""
    """Of the results, as JSON, where the operator's family has a formula; "" elsewhere."""
    max_self_device_ns: Largest = 0
    """Of a single call; so are the next ones."""
    max_total_device_ns: Largest = 0
    max_self_cpu_ns: Largest = 0
    max_total_cpu_ns: Largest = 0
    max_flops: Largest = 0
    max_moved_bytes: Largest = 0
    max_allocated_bytes: Largest = 0


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


class Phase(msgspec.Struct, kw_only=True):
    """One phase of training: data loading, forward, backward, optimizer, other."""

    name: First[str]
    wall_ns: Sum
    """Time of the training thread in it; all phases sum to the window."""
    device_ns: Sum
    """Device work launched in it."""
    calls: Sum = 0

"""Operators and kernels, and the threads and streams that they run on."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from deepscope.records.merging import (
    Either,
    First,
    Largest,
    RankRecords,
    Smallest,
    Sum,
    merged_by,
    of_largest,
    quotient,
    record,
    smallest_known,
    to_be_judged,
)
from deepscope.records.numbers import Verdict, Why

NO_OPERATOR = "(no operator)"
"""The row of device work that no operator launched."""

KernelKind = Literal["kernel", "memcpy", "memset", "collective"]


class Operator(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One operator by name."""

    name: First[str]
    calls: Sum
    self_device_ns: Sum
    total_device_ns: Sum
    self_cpu_ns: Sum
    total_cpu_ns: Sum
    flops: Sum = 0
    calls_without_flops: Sum = 0
    """Calls that multiply, and have no formula or arguments that do not tell."""
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


class OperatorInDetail(Operator, kw_only=True, omit_defaults=True):
    """An operator by the shapes of its arguments, by the lines that led to it, or by both.

    Over the rows of one name all sums are those of its `Operator`.
    """

    in_shapes: First[str] = ""
    """Of the arguments, as JSON: `[[64, 512], [512], []]`, `[]` for what is no tensor; "" where the trace has none."""
    stack: First[str] = ""
    """The user's lines, the innermost first, as traces write them: `train.py(12): main;…`."""
    dtypes: Annotated[str, merged_by(of_largest("calls"))] = ""
    """Of the arguments, as JSON, as most calls have them; "" where the trace does not tell."""
    out_shapes: Annotated[str, merged_by(of_largest("calls"))] = ""
    """Of the results, as JSON, where the operator's family has a formula; "" elsewhere."""
    kind_total_device_ns: Sum = 0
    """The part of `total_device_ns` in calls that are in no other one of their kind: over the operators of a kind they
    sum to its total. The same of CPU time."""
    kind_total_cpu_ns: Sum = 0
    max_self_device_ns: Largest = 0
    """Of a single call; so are the next ones."""
    max_total_device_ns: Largest = 0
    max_self_cpu_ns: Largest = 0
    max_total_cpu_ns: Largest = 0
    max_flops: Largest = 0
    max_moved_bytes: Largest = 0
    max_allocated_bytes: Largest = 0


CALL_NUMBERS = tuple(
    name.removeprefix("max_") for name in OperatorInDetail.__struct_fields__ if name.startswith("max_")
)
"""Numbers of each call of an operator: their sums are fields of `Operator`, their maxima of `OperatorInDetail`."""


def _smallest_of_launches(group: RankRecords[Any], field: str) -> int:
    """The smallest of the ranks that tell how it is launched: a block may well have 0 bytes."""
    known = [one for one in group.records if one.max_threads or one.max_shared_memory_bytes]
    return min((getattr(one, field) for one in known), default=0)


class Kernel(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One kind of device work by name."""

    name: First[str]
    kind: First[KernelKind]
    calls: Sum
    device_ns: Sum
    mean_ns: Annotated[int, merged_by(quotient("device_ns", "calls"))]
    max_ns: Largest
    min_ns: Smallest = 0
    operator: Annotated[str, merged_by(of_largest("device_ns"))] = ""
    """The operator that launches most of it."""
    file: Annotated[str, merged_by(of_largest("device_ns"))] = ""
    """The line that launches most of it; "" for none."""
    line: Annotated[int, merged_by(of_largest("device_ns"))] = 0
    uses_tensor_cores: Either = False
    """As its name tells."""
    grid: Annotated[str, merged_by(of_largest("calls"))] = ""
    """As most launches have it, `[64, 1, 1]`; "" where the trace does not tell. So is the block."""
    block: Annotated[str, merged_by(of_largest("calls"))] = ""
    min_blocks: Annotated[int, merged_by(smallest_known)] = 0
    """Of the grid of a single launch; 0 where the trace does not tell. So are the next ones."""
    max_blocks: Largest = 0
    min_threads: Annotated[int, merged_by(smallest_known)] = 0
    """Of a block."""
    max_threads: Largest = 0
    min_registers: Annotated[int, merged_by(smallest_known)] = 0
    """Of a thread."""
    max_registers: Largest = 0
    min_shared_memory_bytes: Annotated[int, merged_by(_smallest_of_launches)] = 0
    """Of a block."""
    max_shared_memory_bytes: Largest = 0
    occupied_ns: Sum = 0
    """Time times the estimated share of the warps that the device can hold."""
    occupancy_known_ns: Sum = 0
    """Time of which that share is known."""
    sm_blocks_ns: Sum = 0
    """Time times blocks a multiprocessor."""
    sm_blocks_known_ns: Sum = 0
    """Time of which these are known."""
    launched: Sum = 0
    """Pieces of work whose launch is known; of them are the next three."""
    delay_ns: Sum = 0
    """From the start of the launching call to the start on the device."""
    max_delay_ns: Largest = 0
    queued: Sum = 0
    """Work of the same device that was launched before, and not finished, at the launch."""


ThreadRole = Literal["training", "autograd", "other"]


class HostThread(msgspec.Struct, kw_only=True):
    """One thread of the CPU. Its time is divided: the next five from `operator_ns` on sum to `span_ns`."""

    role: First[ThreadRole]
    number: First[int]
    """Of the threads with this role, by the start of the first event. Threads of several ranks that agree in both are
    one row."""
    process: First[str]
    thread: First[str]
    """As the trace has them; of several ranks, the first one's."""
    name: First[str]
    threads: Sum = 1
    """How many ranks have it."""
    span_ns: Sum
    """From its first event to the end of its last; within the step, if one is chosen."""
    operator_ns: Sum
    """In operators, calls of the runtime in them left out."""
    runtime_ns: Sum
    """In calls of the device's runtime."""
    python_ns: Sum
    """In lines, frames or modules, and in nothing of the above."""
    annotation_ns: Sum
    """In annotations alone."""
    rest_ns: Sum
    """In nothing that is recorded."""
    operators: Sum
    """Operators that were started, nested ones too."""
    runtime_calls: Sum
    launches: Sum
    """Kernels launched from it."""
    device_ns: Sum
    """Device work launched from it (`cpu_self`: its operators' own time)."""
    wait_ns: Sum


class Stream(msgspec.Struct, kw_only=True):
    """One stream of a device. Work belongs to the step of its launch; `busy_ns` and what follows lie in the window."""

    device: First[int]
    stream: First[int]
    device_ns: Sum
    """Sum of durations of its work."""
    kernel_ns: Sum
    copy_ns: Sum
    fill_ns: Sum
    collective_ns: Sum
    """The four sum to `device_ns`."""
    kernels: Sum
    copies: Sum
    fills: Sum
    collectives: Sum
    busy_ns: Sum
    """Union of its work."""
    overlapped_ns: Sum
    """The part of it during which another stream of the device works, too."""
    idle_ns: Sum
    """The rest of the window."""
    host_wait_ns: Sum
    """Gaps before work that was launched after the work before had ended; these three as HTA defines them."""
    kernel_wait_ns: Sum
    """Other gaps shorter than 30 µs."""
    other_wait_ns: Sum

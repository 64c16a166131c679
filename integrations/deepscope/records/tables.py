"""Operators, kernels, steps and phases."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from deepscope.records.merging import (
    Either,
    First,
    Largest,
    RankRecords,
    RankSpread,
    Smallest,
    Sum,
    keys_summed,
    largest_first,
    merged_by,
    of_largest,
    quotient,
    record,
    smallest_known,
    spread_of,
    table,
    to_be_judged,
)
from deepscope.records.why import Verdict, Why

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
    min_shared_memory_bytes: Smallest = 0
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
    launches: Sum = 0
    """Kernels launched in it."""
    operators: Sum = 0
    """Operators that lines started in it."""
    computing_ns: Sum = 0
    """Union of kernels that are no collectives within its window, over all devices; 0 without a device."""
    communication_ns: Sum = 0
    """Union of collectives within its window."""
    exposed_ns: Sum = 0
    """The part of it that no computation overlaps."""
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


class ServingStep(msgspec.Struct, kw_only=True):
    """One step of a server of models, as its annotation tells it. Ranks that share its requests have one together."""

    number: First[int]
    """From 0 on, by their starts."""
    phase: First[str]
    """As in `ServingPhase`."""
    requests: First[int]
    """That it works on."""
    tokens: First[int | None]
    """Computed in it; None where its name does not tell."""
    start_ns: Smallest
    """When its annotation starts, on the clock of the trace."""
    duration_ns: Sum
    """From its start until its work is done on the CPU and the device, at the latest until the next one starts."""
    busy_ns: Sum
    """Union of device work within this time, over the devices; 0 without a device."""
    idle_ns: Sum
    """When none of a device's streams works, the same way."""
    device_ns: Sum
    """Device work launched in it; 0 without a device."""
    ranks: Sum = 1
    """That have it."""

    @property
    def token_ns(self) -> float | None:
        """Its time, the mean of the ranks, by its tokens; None where these are not known."""
        return self.duration_ns / (self.ranks * self.tokens) if self.tokens else None


class ServingPhase(msgspec.Struct, kw_only=True):
    """The steps of one phase of a server of models, as its annotations tell them."""

    phase: First[str]
    """`prefill`, `decode`, `mixed` (both in one step) or `verify` (of tokens drafted ahead)."""
    steps: Sum
    """How many; of ranks that share the requests each one's."""
    duration_ns: Sum
    """Each from its start until its work is done on the CPU and the device, at the latest until the next one starts."""
    device_ns: Sum
    """Device work launched in them."""
    requests: Sum
    """Of each step, added up."""
    tokens: Sum
    """Computed in them, as their names tell."""
    steps_without_tokens: Sum = 0
    """Whose names tell no tokens."""


class Phase(msgspec.Struct, kw_only=True):
    """One phase of training: data loading, forward, backward, optimizer, other."""

    name: First[str]
    wall_ns: Sum
    """Time of the training thread in it; all phases sum to the window."""
    device_ns: Sum
    """Device work launched in it."""
    calls: Sum = 0


class FrameworkPart(msgspec.Struct, kw_only=True):
    """One of the things that a framework does between the user's lines, where a line calls its loop."""

    framework: First[str]
    part: First[str]
    """`loops`, `logging`, `checkpoints`, `callback EarlyStopping`."""
    file: First[str]
    line: First[int]
    """The line that calls the loop; `cost_ns` there is with it."""
    cost_ns: Sum
    """The sum over the parts of a line is its `framework_ns`."""


Section = Literal["step", "span", "overlap", "idle", "device"]


class OverviewRow(msgspec.Struct, kw_only=True):
    """One figure of the overview: a time, and the time that it is a part of."""

    section: First[Section]
    """`step`: the split of the steps' time. `span`: from the first to the last work. `overlap`: of collectives with
    computation. `idle`: the gaps of streams by their cause. `device`: how a device is used."""
    device: First[str] = ""
    """Of the section `device`."""
    name: First[str]
    time_ns: Sum
    whole_ns: Sum
    steps: Sum = 0
    """Of the section `step`: over how many steps its times sum."""


class OwnLine(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Own time of one line; the parts sum to that of all blocks."""

    line: First[int]
    """Index in `Profile.lines`; -1 for no line, -2 for all lines that have no row."""
    times_ns: First[list[int]]
    """By block."""
    operator_ns: Sum = 0
    """The CPU in operators, where no device is waited for."""
    python_ns: Sum = 0
    """The CPU outside of operators."""
    data_ns: Sum = 0
    """Loading data."""
    device_ns: Sum = 0
    """Kernels, fills and copies."""
    delay_ns: Sum = 0
    """Delays before work, and of calls that returned late."""


class OwnTimes(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Own times of one rank.

    A block is `Profile.steps_per_block` steps with neighbouring numbers. Over all rows, the times of a block and the
    communication in it sum to its steps' duration.
    """

    blocks: First[list[int]] = []
    """The numbers of its steps divided by `Profile.steps_per_block`, rounded down; [0] without steps."""
    steps: First[list[int]] = []
    """Of each block how many steps are in it."""
    wall_ns: First[list[int]] = []
    """By block, the duration of its steps."""
    communication_ns: First[list[int]] = []
    """The part of it in communication, on the critical path."""
    lines: First[list[OwnLine]] = []
    """The longest first; then those of no line and of all other lines."""


class CollectiveCall(msgspec.Struct, array_like=True):
    """One call: a kernel of a device, or a span of the CPU."""

    start_ns: First[int]
    """Nanoseconds since the epoch, by the rank's own clock."""
    end_ns: First[int]
    """By the same clock."""
    step: First[int]
    """The number of the step that launched it; -1 for none."""
    collective: First[int]
    """Index in `Profile.collectives`: its kind, process group, type and size."""
    sequence: First[int]
    """torch's number of the call in its process group (`Seq`); -1 where the trace does not tell."""
    peer: First[int]
    """Of a point-to-point message: the other rank, by its number in the whole run; -1 for collectives or if unknown."""
    line: First[int]
    """Index in `Profile.lines` of the line that owns it; -1 for none."""
    size_bytes: First[int] = 0
    """Of its message; 0 where the trace does not tell."""


def _sum_of_known(group: RankRecords[Any], field: str) -> int | None:
    """The sum over the ranks that know it."""
    known = [value for value in group.values(field) if value is not None]
    return sum(known) if known else None


class CriticalTimes(msgspec.Struct, kw_only=True):
    """Time on the path by what was done."""

    cpu_ns: Sum = 0
    """A CPU thread ran."""
    data_ns: Sum = 0
    """The training thread loaded data."""
    kernel_ns: Sum = 0
    """Kernels and fills of the device ran."""
    copy_ns: Sum = 0
    communication_ns: Sum = 0
    """Collectives ran."""
    launch_ns: Sum = 0
    """Work was launched and had not started; the device was free."""
    gap_ns: Sum = 0
    """What work had to wait for had ended, and it had not started."""
    return_ns: Sum = 0
    """What a call waited for had ended, and it had not returned."""


class CriticalLine(CriticalTimes, kw_only=True):
    """A line on the path."""

    file: First[str]
    line: First[int]
    function: First[str]
    exact: First[bool]
    critical_ns: Sum
    """Time on the path."""
    would_shorten_ns: Annotated[int | None, merged_by(_sum_of_known)] = None
    """By how much the steps that were evaluated would be shorter if the line took no time; None where that is not
    known."""


class CriticalPath(CriticalTimes, kw_only=True):
    """The path of all steps (of a trace without steps, that of the window)."""

    steps: Sum = 0
    evaluated_steps: Sum = 0
    """Those in which it was found what lines would save."""
    critical_ns: Sum = 0
    """The length of the steps; all times on the path sum to it."""
    lines: Annotated[
        list[CriticalLine],
        merged_by(table("file", "line", "function", "exact", order=largest_first("critical_ns"))),
    ] = []
    """Those longest on the path."""
    others: Annotated[CriticalTimes, merged_by(record)] = msgspec.field(default_factory=CriticalTimes)
    """All other lines together."""
    no_line: Annotated[CriticalTimes, merged_by(record)] = msgspec.field(default_factory=CriticalTimes)

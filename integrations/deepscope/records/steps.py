"""What the time of steps goes to: each step, phases, the overview, the critical path, and what a rank does itself."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from deepscope.records.lines import LINE_KEY
from deepscope.records.merging import (
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
    record,
    spread_of,
    table,
)


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
        merged_by(table(*LINE_KEY, order=largest_first("critical_ns"))),
    ] = []
    """Those longest on the path."""
    others: Annotated[CriticalTimes, merged_by(record)] = msgspec.field(default_factory=CriticalTimes)
    """All other lines together."""
    no_line: Annotated[CriticalTimes, merged_by(record)] = msgspec.field(default_factory=CriticalTimes)


StepTable = Literal["lines", "operators", "kernels", "modules"]

ROW_KEYS: dict[StepTable, tuple[str, ...]] = {
    "lines": LINE_KEY,
    "operators": ("name",),
    "kernels": ("name", "kind"),
    "modules": ("path", "class_name"),
}
"""What names a row of each table."""

_Times = Annotated[dict[int, int], merged_by(keys_summed)]


class StepTimes(msgspec.Struct, array_like=True):
    """One row's time by step. What it had outside the steps is the rest of its number.

    A block is `Profile.steps_per_block` steps with neighbouring numbers; its key is their number divided by that many,
    rounded down. A block without time is left out.
    """

    table: First[StepTable]
    row: First[int]
    """Index in that table of the profile; -1 for the work of no line."""
    device_ns: _Times
    """Block → part of `self_device_ns` (of a kernel, of `device_ns`)."""
    beside_ns: _Times = {}
    """Of a line: block → part of `idle_ns` or, where the CPU is the device, of `python_ns`: the rest of its cost."""

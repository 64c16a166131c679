"""The Profile: all that is shown of a trace, aggregated; a few hundred kilobytes, loaded in milliseconds.

Every number is defined in docs/numbers.md. Times are integer nanoseconds and sums over the whole trace (or the chosen
step). A field's annotation says how ranks merge it.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Annotated, Any, Literal, get_args

import msgspec

from deepscope.records.collectives import Collective, CollectiveCall
from deepscope.records.findings import Finding, Try
from deepscope.records.lines import LINE_KEY, CallNode, FrameworkPart, Function, Line, Module, Part, PartKey
from deepscope.records.memory import CounterSeries, Memory
from deepscope.records.merging import (
    First,
    Largest,
    RankRecords,
    Sum,
    largest_first,
    left_out,
    merged_by,
    nothing,
    record,
    table,
)
from deepscope.records.numbers import Numbers, Peaks
from deepscope.records.operators import HostThread, Kernel, Operator, OperatorInDetail, Stream, ThreadRole
from deepscope.records.source_files import SourceFile
from deepscope.records.steps import (
    ROW_KEYS,
    CriticalPath,
    OverviewRow,
    OwnTimes,
    Phase,
    Section,
    ServingPhase,
    ServingStep,
    Step,
    StepTimes,
)
from deepscope.records.trace_info import Detail, PartOf, TraceInfo
from deepscope.records.whole_run import Audit, WholeRun

PROFILE_FORMAT = 34
"""Raised with every change of these structures or of what a number means; older caches are then made anew."""

Metric = Literal["device", "cpu_self"]

COLLECTIVE_KEY = (
    "kind",
    "library",
    "group",
    "group_description",
    "group_ranks",
    "group_size",
    "dtype",
    "size_class_bytes",
    "on_device",
)
"""Rows of two ranks that agree in these are of the same process group and the same messages."""


class Resolved(msgspec.Struct, kw_only=True):
    """Device time by how far it could be traced; the four sum to the device time."""

    line_ns: Sum = 0
    function_ns: Sum = 0
    module_ns: Sum = 0
    none_ns: Sum = 0

    @property
    def ratio(self) -> float:
        """Share that reached a line, function or module, 0 to 1; 1 where there was no device time."""
        known = self.line_ns + self.function_ns + self.module_ns
        return known / (known + self.none_ns) if known + self.none_ns else 1.0


class Totals(msgspec.Struct, kw_only=True):
    """The whole trace or the chosen step."""

    device_ns: Sum
    """Sum of durations of all device work (`cpu_self`: of operators' self time)."""
    busy_ns: Sum
    """Union of device work per device, summed over devices."""
    idle_ns: Sum
    wall_ns: Sum
    """The window (the steps; without steps first to last event) without `added_ns`."""
    wait_ns: Sum
    steps: Largest
    launches: Sum
    operators: Sum
    peak_bytes: Sum = 0
    flops: Sum = 0
    recording_ns: Sum = 0
    added_ns: Sum = 0
    """What recording added to the window while no device worked: in no step, and in no idle time."""
    behind_ns: Largest = 0
    """How long a device went on, behind the window's end, with what was launched in the window."""
    worker_ns: Sum = 0
    worker_cpu_ns: Sum = 0
    compiled_at_call_ns: Sum = 0
    """The part of `device_ns` in compiled graphs that stands at the line of the call: of what lines, is not known."""
    ranks: Sum = 1


def by_saving(finding: Finding) -> tuple[int, str, str, int]:
    """The order of findings: the largest saving first."""
    return -finding.saving_ns, finding.code, finding.file, finding.line


def add_findings(profile: Profile, findings: list[Finding]) -> None:
    """Puts more findings among those of a profile."""
    profile.findings = sorted([*profile.findings, *findings], key=by_saving)


def _files(group: RankRecords[Any], field: str) -> dict[str, SourceFile]:
    """By path, the first rank's text: ranks on other hosts may run another text, which then stays unseen here."""
    merged: dict[str, SourceFile] = {}
    for files in group.values(field):
        for path, file in files.items():
            merged.setdefault(path, file)
    return merged


def _by_section(row: OverviewRow) -> tuple[int, int, str]:
    return get_args(Section).index(row.section), len(row.device), row.device


def _by_role(thread: HostThread) -> tuple[int, int]:
    return get_args(ThreadRole).index(thread.role), thread.number


class Profile(msgspec.Struct, kw_only=True):
    """The result of one trace, or of several ranks merged."""

    format: First[int] = PROFILE_FORMAT
    metric: First[Metric]
    trace: Annotated[TraceInfo, merged_by(record)]
    totals: Annotated[Totals, merged_by(record)]
    lines: Annotated[list[Line], merged_by(table(*LINE_KEY, order=largest_first("self_device_ns")))]
    """By `self_device_ns`, largest first."""
    no_line: Annotated[Numbers, merged_by(record)]
    library_lines: Annotated[list[Line], merged_by(table(*LINE_KEY, order=largest_first("self_device_ns")))] = []
    """Recorded lines of libraries: device time, calls and launches below the user's lines, which own the work."""
    resolved: Annotated[Resolved, merged_by(record)]
    functions: Annotated[
        list[Function], merged_by(table("file", "line", "function", order=largest_first("self_device_ns")))
    ] = []
    framework: Annotated[
        list[FrameworkPart],
        merged_by(table("framework", "part", "file", "line", order=largest_first("cost_ns"))),
    ] = []
    """What the framework that trains costs between the user's lines, a part of the cost of the line that calls it."""
    modules: Annotated[list[Module], merged_by(table(*ROW_KEYS["modules"], order=largest_first("self_device_ns")))] = []
    operators: Annotated[
        list[Operator], merged_by(table(*ROW_KEYS["operators"], order=largest_first("self_device_ns")))
    ] = []
    operators_in_detail: Annotated[
        list[OperatorInDetail],
        merged_by(table("name", "in_shapes", "stack", order=largest_first("self_device_ns"))),
    ] = []
    """On demand alone: by what `details` name."""
    details: First[tuple[Detail, ...]] = ()
    kernels: Annotated[list[Kernel], merged_by(table(*ROW_KEYS["kernels"], order=largest_first("device_ns")))] = []
    steps: Annotated[list[Step], merged_by(table("number", order=attrgetter("number")))] = []
    step_times: Annotated[list[StepTimes], merged_by(left_out)] = []
    """Of the largest rows of lines, operators, kernels and modules: their time by block of steps."""
    steps_per_block: Largest = 1
    """A power of two: blocks are longer where there are many steps."""
    phases: Annotated[list[Phase], merged_by(table("name"))] = []
    serving: Annotated[list[ServingPhase], merged_by(table("phase"))] = []
    """Of a server of models whose annotations tell its steps, those with most time first; else empty."""
    serving_steps: Annotated[
        list[ServingStep],
        merged_by(table("number", "phase", "requests", "tokens", order=attrgetter("number", "start_ns"))),
    ] = []
    """The steps of such a server, which `serving` sums up."""
    overview: Annotated[list[OverviewRow], merged_by(table("section", "device", "name", order=_by_section))] = []
    threads: Annotated[list[HostThread], merged_by(table("role", "number", order=_by_role))] = []
    streams: Annotated[list[Stream], merged_by(table("device", "stream", order=attrgetter("device", "stream")))] = []
    collectives: Annotated[list[Collective], merged_by(table(*COLLECTIVE_KEY, order=largest_first("time_ns")))] = []
    collective_calls: Annotated[list[CollectiveCall], merged_by(left_out)] = []
    """Of a single rank, its first calls of collectives by their starts; empty where ranks are merged."""
    counters: Annotated[list[CounterSeries], merged_by(table("counter", "series", "unit", "is_own"))] = []
    """What was counted beside the trace, DeepScope's own counters first, in the order of docs/counters.md."""
    memory: Annotated[Memory, merged_by(record)] = msgspec.field(default_factory=Memory)
    critical: Annotated[CriticalPath, merged_by(record)] = msgspec.field(default_factory=CriticalPath)
    """The critical path of the steps; each rank has its own."""
    own_times: Annotated[OwnTimes | None, merged_by(nothing)] = None
    """Of a single rank, what it does itself by line and time; None where ranks are merged."""
    call_tree: Annotated[list[CallNode], merged_by(left_out)] = []
    parts: Annotated[list[Part], merged_by(left_out)] = []
    """What the work of the call tree's nodes is made of; a part stands before those below it."""
    places: Annotated[list[PartKey], merged_by(left_out)] = []
    """What the parts are."""
    findings: Annotated[list[Finding], merged_by(table("code", "file", "line", order=by_saving))] = []
    """The largest saving first."""
    audit: Annotated[Audit | None, merged_by(record)] = None
    """None where no step was to be looked at."""
    files: Annotated[dict[str, SourceFile], merged_by(_files)] = {}
    step: First[int | None] = None
    """The step chosen, if one was."""
    part_of: Annotated[PartOf | None, merged_by(record)] = None
    """The whole, where only a phase or a module of it was asked for; steps, phases and memory then are the whole's."""
    peaks: First[Peaks | None] = None
    """Of the device, by which verdicts are found; None where they are not known. Set when a profile is loaded."""

    whole_run: Annotated[WholeRun | None, merged_by(record)] = None
    """As found beside the traces when they were loaded, never cached; None where a rank has no account of it."""
    tries: First[list[Try]] = []
    """What was tried on the program, as found beside the traces when they were loaded; never cached."""

    def to_pandas(self, table: str = "lines") -> Any:
        """One of its tables (docs/columns.md) as a `pandas.DataFrame`.

        Raises:
            OptionError: there is no such table; the message lists those that there are.
            MissingExtraError: pandas is not installed.
        """
        from deepscope.records.columns import column_table

        return column_table(self, table).to_pandas()

    def to_arrow(self, table: str = "lines") -> Any:
        """The same as a `pyarrow.Table`, which polars, DuckDB and others read: `polars.from_arrow(…)`."""
        from deepscope.records.columns import column_table

        return column_table(self, table).to_arrow()

    def _repr_html_(self) -> str:
        """How a notebook shows it: its hot lines."""
        from deepscope.records.notebook import notebook_table

        return notebook_table(self)

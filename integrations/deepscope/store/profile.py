"""The Profile: all that is shown of a trace, aggregated; a few hundred kilobytes, loaded in milliseconds.

Every number is defined in docs/numbers.md. Times are integer nanoseconds and sums over the whole trace (or the chosen
step).
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

__all__ = [
    "PROFILE_FORMAT",
    "CallNode",
    "Edit",
    "Finding",
    "Function",
    "Kernel",
    "Library",
    "Line",
    "Module",
    "Numbers",
    "Operator",
    "Phase",
    "Profile",
    "RankSpread",
    "Remedy",
    "Resolved",
    "SourceFile",
    "Step",
    "Top",
    "Totals",
    "TraceInfo",
]

PROFILE_FORMAT = 5
"""Raised with every change of these structures or of what a number means; older caches are then made anew."""

Metric = Literal["device", "cpu_self"]


class Numbers(msgspec.Struct, kw_only=True):
    """What is measured of a line, a function, a module or of the work that reached no line."""

    self_device_ns: int = 0
    total_device_ns: int = 0
    backward_device_ns: int = 0
    """Part of `self_device_ns`."""
    self_cpu_ns: int = 0
    total_cpu_ns: int = 0
    python_ns: int = 0
    """Part of `self_cpu_ns` outside operators and calls of the device's runtime: the interpreter's own work, or its
    waiting. The next three sum to it."""
    python_cpu_ns: int = 0
    """On the CPU; all of it where the trace does not tell."""
    loader_wait_ns: int = 0
    """Waiting for data-loader workers."""
    blocked_ns: int = 0
    """Asleep, or waiting for something else than a device: a file, a network, a lock, another thread."""
    wait_ns: int = 0
    idle_ns: int = 0
    cost_ns: int = 0
    """What it costs the run: device time and the idle time it is blamed for; where the CPU is the device, operators'
    own time and the interpreter's. Summed up it is the time of the run, but for work that overlaps."""
    launches: int = 0
    calls: int = 0
    operators: int = 0
    bytes_allocated: int = 0
    bytes_freed: int = 0
    peak_bytes: int = 0
    """Share of the bytes live at the peak of the device's memory that was allocated here."""
    h2d_ns: int = 0
    h2d_bytes: int = 0
    d2h_ns: int = 0
    d2h_bytes: int = 0
    d2d_ns: int = 0
    d2d_bytes: int = 0
    collective_ns: int = 0
    collective_exposed_ns: int = 0
    flops: int = 0
    worker_ns: int = 0
    """Time in data-loader worker processes, waiting there included; in no other number."""
    worker_cpu_ns: int = 0
    """The part of `worker_ns` on the CPU; 0 in traces that do not know it."""
    recording_ns: int = 0
    """DeepScope's own cost on this line, already taken off the CPU times."""


class Top(msgspec.Struct, array_like=True):
    """One of the largest contributors to a line: an operator or a kernel."""

    name: str
    device_ns: int
    count: int


class RankSpread(msgspec.Struct, array_like=True):
    """How far a number lies apart between the ranks that were merged; a rank without it counts as 0."""

    min_ns: int
    min_rank: int
    median_ns: int
    """Of an even number of ranks the mean of the two in the middle, rounded down."""
    max_ns: int
    max_rank: int


class Library(msgspec.Struct):
    """Where below a user line the time goes, in an installed package."""

    module: str
    """The Python module (`transformers.models.gpt2.modeling_gpt2`)."""
    function: str
    operator: str
    device_ns: int
    include: str
    """The `include=` pattern that would open it up."""
    include_ns: int = 0
    """The line's device time in all that the pattern opens up."""


class Line(Numbers, kw_only=True):
    """One line of user code. `file` is the absolute path as recorded."""

    file: str
    line: int
    function: str
    exact: bool
    """From line scopes. Not so: `line` is the first line of the function and the numbers are the function's."""
    of_loop: bool = False
    """Not exact: the numbers are those of the loop that begins at `line`."""
    in_compiled_region: bool = False
    text: str | None = None
    """The source line that ran, where the trace carries it."""
    top_operators: list[Top] = []
    top_kernels: list[Top] = []
    libraries: list[Library] = []
    spread: RankSpread | None = None
    """Of `self_device_ns` over the ranks; None for a single rank."""


class Function(Numbers, kw_only=True):
    """One function of user code, all its lines together; `line` is its first."""

    file: str
    line: int
    function: str
    exact: bool = False
    spread: RankSpread | None = None
    """Of `self_device_ns` over the ranks; None for a single rank."""


class Module(Numbers, kw_only=True):
    """One `nn.Module` by path (`encoder.layers.0.linear1`) or, where the trace has no paths, by class."""

    path: str
    class_name: str


class Operator(msgspec.Struct, kw_only=True):
    """One operator by name."""

    name: str
    calls: int
    self_device_ns: int
    total_device_ns: int
    self_cpu_ns: int
    total_cpu_ns: int
    flops: int = 0


class Kernel(msgspec.Struct, kw_only=True):
    """One kind of device work by name."""

    name: str
    kind: Literal["kernel", "memcpy", "memset", "collective"]
    calls: int
    device_ns: int
    mean_ns: int
    max_ns: int
    operator: str = ""
    """The operator that launches most of it."""


class Step(msgspec.Struct, kw_only=True):
    """One `ProfilerStep#N`. An event belongs to the step of its launch."""

    number: int
    start_ns: int
    duration_ns: int
    device_ns: int
    """Sum of durations of the device work launched in it (`cpu_self`: of operators' self time)."""
    busy_ns: int
    """Union of device work within the step's window, over the devices (`cpu_self`: of operators)."""
    idle_ns: int
    wait_ns: int
    phases: dict[str, int] = {}
    """Phase → CPU wall time in it on the training thread; the values sum to `duration_ns`."""
    spread: RankSpread | None = None
    """Of `duration_ns` over the ranks; None for a single rank."""


class Phase(msgspec.Struct, kw_only=True):
    """One phase of training: data loading, forward, backward, optimizer, other."""

    name: str
    wall_ns: int
    """Time of the training thread in it; all phases sum to the window."""
    device_ns: int
    """Device work launched in it."""
    calls: int = 0


class CallNode(msgspec.Struct, array_like=True):
    """A node of the call tree of user lines."""

    parent: int
    """Index in `Profile.call_tree`; -1 for a root."""
    line: int
    """Index in `Profile.lines`; -1 for "no line"."""
    self_device_ns: int
    self_cpu_ns: int
    backward_device_ns: int = 0


class Edit(msgspec.Struct):
    """A replacement within one line of a finding's file, `old` at its first place in the text that ran."""

    line: int
    old: str
    new: str


class Remedy(msgspec.Struct):
    """What to do about a finding: in words, and as edits where a machine can make them, all together or none."""

    text: str
    edits: list[Edit] = []


class Finding(msgspec.Struct, kw_only=True):
    """A piece of advice, with the figures that it rests on (docs/findings)."""

    code: str
    """Stable: `DS001`."""
    title: str
    severity: Literal["warning", "info", "hint"]
    """By the share of the wall time that would be saved: from a tenth, from a fiftieth, less."""
    file: str
    """As recorded; "" where no line is known."""
    line: int
    """0 where no line is known."""
    function: str = ""
    message: str
    evidence: dict[str, int | float | str]
    """Figures by name: `…_ns` and `…_bytes` over the whole profile, means in `…_us`; integers add up over ranks."""
    saving_ns: int
    """At most so much less wall time over the whole profile."""
    remedy: Remedy
    doc: str
    """The page about it, below the project's root and in the installed package: `docs/findings/DS001.md`."""


class Resolved(msgspec.Struct, kw_only=True):
    """Device time by how far it could be traced; the four sum to the device time."""

    line_ns: int = 0
    function_ns: int = 0
    module_ns: int = 0
    none_ns: int = 0

    @property
    def ratio(self) -> float:
        """Share that reached a line, function or module, 0 to 1; 1 where there was no device time."""
        known = self.line_ns + self.function_ns + self.module_ns
        return known / (known + self.none_ns) if known + self.none_ns else 1.0


class Totals(msgspec.Struct, kw_only=True):
    """The whole trace or the chosen step."""

    device_ns: int
    """Sum of durations of all device work (`cpu_self`: of operators' self time)."""
    busy_ns: int
    """Union of device work per device, summed over devices."""
    idle_ns: int
    wall_ns: int
    """The window: the steps; without steps first to last event."""
    wait_ns: int
    steps: int
    launches: int
    operators: int
    peak_bytes: int = 0
    flops: int = 0
    recording_ns: int = 0
    worker_ns: int = 0
    worker_cpu_ns: int = 0
    ranks: int = 1


class TraceInfo(msgspec.Struct, kw_only=True):
    """Where a profile comes from."""

    path: str
    paths: list[str] = []
    """All files, when ranks were merged."""
    ranks: list[int] = []
    world_size: int = 1
    device: str = ""
    """`NVIDIA H100 80GB HBM3`, or `CPU`."""
    device_count: int = 0
    hostname: str = ""
    recorded_at: str = ""
    """ISO 8601 with offset; "" where unknown."""
    program: str = ""
    """The script or module that ran, without its arguments; "" where the trace does not say."""
    stage: str = ""
    window: int = 0
    project_root: str = ""
    git_commit: str = ""
    git_dirty: bool = False
    python: str = ""
    torch: str = ""
    lightning: str = ""
    deepscope: str = ""
    line_source: Literal["scopes", "call_stack", "frames", "none"] = "none"
    truncated: bool = False
    warnings: list[str] = []
    recording: dict[str, Any] = {}
    """The recorder's own account (docs/trace-format.md, `lines`)."""
    also_recorded: list[str] = []
    """Other stages of the same run, as found beside the trace when it was loaded; never cached."""


class SourceFile(msgspec.Struct, kw_only=True):
    """One user file as it was when it ran."""

    sha256: str = ""
    text: str | None = None


class Profile(msgspec.Struct, kw_only=True):
    """The result of one trace, or of several ranks merged."""

    format: int = PROFILE_FORMAT
    metric: Metric
    trace: TraceInfo
    totals: Totals
    lines: list[Line]
    """By `self_device_ns`, largest first."""
    no_line: Numbers
    resolved: Resolved
    functions: list[Function] = []
    modules: list[Module] = []
    operators: list[Operator] = []
    kernels: list[Kernel] = []
    steps: list[Step] = []
    phases: list[Phase] = []
    call_tree: list[CallNode] = []
    findings: list[Finding] = []
    """The largest saving first."""
    files: dict[str, SourceFile] = {}
    step: int | None = None
    """The step chosen, if one was."""

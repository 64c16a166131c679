"""What the server answers: a struct for each answer, from which the extension's contract is made (docs/lsp.md).

Lines count from 1. Times and sizes are sums over steps and ranks unless their name says `per_step`. A field that ends
with `words` is shown as it is. A share is a part of the whole, 0 to 1.
"""

from __future__ import annotations

from typing import Annotated, Literal, get_args

import msgspec

from deepscope.records import Finding

Natural = Annotated[int, msgspec.Meta(ge=0)]

Metric = Literal["device", "cpu_self"]
"""What the main number is: the device's time, or the operators' own time on the CPU where no device did any work."""
HotMetric = Literal["cost", "device", "cpu", "wait", "idle", "memory"]
"""By which of their numbers lines are sorted."""
HOT_METRICS: tuple[HotMetric, ...] = get_args(HotMetric)
FrameKind = Literal["line", "module", "library", "operator", "kernel", "other"]
"""A line of the user's, or what its work is made of; `other` is what is too small to be told apart."""
State = Literal["none", "loading", "ready", "error"]
Standing = Literal["same", "edited", "gone"]
"""Of a recorded line: its text is what ran, was edited, or is no longer there."""


class CommandAnswer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Fields go over the wire in camel case."""


class SourceLocation(CommandAnswer, frozen=True, kw_only=True):
    """Where something stands: as recorded, and where it is here."""

    function: str
    file: str
    """As recorded; "" for work that reached no line."""
    line: Natural
    """As recorded; 0 where it is not known."""
    uri: str | None
    """Null where the file is not on this machine."""
    current_line: Natural | None
    """At the moment of the answer."""


class HotAmount(CommandAnswer, frozen=True, kw_only=True):
    """One number of a line, a group of lines or a module."""

    share: float
    """By `cost` of the run's cost, by `device` of all work, else of the sum over all lines (or modules)."""
    words: str
    """Share and mean of a step: `38 % · 12.4 ms`."""


class HotLine(SourceLocation, frozen=True, kw_only=True):
    """A measured line with all its numbers."""

    short_file: str
    """Relative to the project's root."""
    text: str
    """As it ran."""
    label: str
    """What stands at the line's end in an editor."""
    standing: Standing
    share: float
    per_step_ns: float
    """Its cost."""
    baseline_ns: float | None
    """The cost per step in the baseline; null where there is none."""
    baseline_words: str
    """The same with the change since; "" without a baseline."""
    change_words: str
    """Since the baseline: `+3.10 ms`, `new`; "" where the change is too small to mention, or may be noise."""
    whole_words: str
    """The numbers over the whole trace."""
    exact: bool
    """False where the numbers are those of the whole function, or loop, that begins here."""
    amounts: dict[str, HotAmount]
    """By metric: those that are not 0."""
    numbers: dict[str, int]
    """Those of docs/report.md that are not 0."""


class VanishedLine(SourceLocation, frozen=True, kw_only=True):
    """A line of the baseline that is gone or has no time any more, where it stood; the numbers are the baseline's."""

    short_file: str
    text: str
    share: float
    per_step_ns: float
    change_words: str
    """`-1.50 ms`"""
    time_words: str
    """`1.50 ms per step in the baseline (38 %)`"""


class HotGroup(CommandAnswer, frozen=True, kw_only=True):
    """The lines of a function or of a file together."""

    function: str
    """"" for a file."""
    file: str
    short_file: str
    amounts: dict[str, HotAmount]
    """By metric: those that are not 0."""


class HotLines(CommandAnswer, frozen=True, kw_only=True):
    """Answer of `deepscope.hotLines`."""

    metric: Metric
    step_words: str
    """What a time is of: `per step`, or `in the trace` where it has no steps."""
    lines: list[HotLine]
    functions: list[HotGroup]
    files: list[HotGroup]
    vanished: list[VanishedLine]
    vanished_words: str
    """The times of all vanished lines together: `-3.00 ms`."""


class HotModule(CommandAnswer, frozen=True, kw_only=True):
    """A module of the model."""

    path: str
    """"" where it is not known."""
    class_name: str
    label: str
    share: float
    """With what is in it."""
    own_words: str
    """`own 1.00 ms`; "" where it has no time of its own."""
    amounts: dict[str, HotAmount]
    """By metric: device time includes what is in the module; the other numbers are its own."""
    numbers: dict[str, int]


class HotModules(CommandAnswer, frozen=True, kw_only=True):
    """Answer of `deepscope.modules`."""

    metric: Metric
    step_words: str
    modules: list[HotModule]


class Frame(SourceLocation, frozen=True, kw_only=True):
    """A line on a call path, or a part of its work.

    The file of a module is that of its class. Operators and kernels have none.
    """

    kind: FrameKind
    name: str
    """To be shown below what holds it: a line's function, of a module below another one the rest of its path."""
    whole_name: str
    """As recorded."""


class CallPath(Frame, frozen=True, kw_only=True):
    """A node of the call tree; what is the same under one parent is one node."""

    self_ns: int
    total_ns: int
    total_cpu_ns: int
    total_backward_ns: int
    calls: int
    """Of what is below a line; 0 for a line."""
    share: float
    children: list[CallPath]


class CallPaths(CommandAnswer, frozen=True, kw_only=True):
    """Answer of `deepscope.callPaths`: the whole call tree."""

    metric: Metric
    roots: list[CallPath]


class LinePath(Frame, frozen=True, kw_only=True):
    """A line in a chain of calls, or a part of its work; `children` are its callers or what is below, largest first."""

    ns: int
    """Of a caller: the time of the line asked for on the paths through this one. Of a callee: its own total."""
    time_words: str
    detail_words: str
    """Of what is below: `own 2 ms, backward 1 ms, 12 calls`, those that are not 0."""
    children: list[LinePath]


class LinePaths(CommandAnswer, frozen=True, kw_only=True):
    """Answer of `deepscope.linePaths`: who calls a line, what it calls, and what its own work is made of."""

    line: SourceLocation | None
    """Null for a line that is on no path."""
    step_words: str
    callers: list[LinePath]
    callees: list[LinePath]


class Caller(SourceLocation, frozen=True, kw_only=True):
    """A line that calls another."""

    short_file: str
    device_ns: int
    cpu_ns: int
    backward: bool
    """This line ran the backward pass of the other, and called nothing."""
    label: str


class TryCommand(CommandAnswer, frozen=True, kw_only=True):
    """Words behind `python -m deepscope` that try what answers a finding; the program's own arguments follow them."""

    arguments: list[str]
    folder: str
    """To run it in; "" where no workspace folder is open."""
    program: str
    """The file or module that is run."""


class AnnotatedLine(CommandAnswer, frozen=True, kw_only=True):
    """A measured line of an open document."""

    line: Natural
    """As the text is now."""
    recorded_line: Natural
    function: str
    label: str
    tooltip: str
    share: float
    weight: float
    """The largest of its shares, waiting and idling among them."""
    mark: Literal["", "edited", "file changed since", "file newer than trace"]
    """Why the number may not be that of this text."""
    numbers: dict[str, int]


class Located(CommandAnswer, frozen=True, kw_only=True):
    """Where a recorded line stands at this moment."""

    uri: str
    line: Natural
    standing: Standing
    """Where the line is gone, `line` is the one above its place."""


class RecordedLine(CommandAnswer, frozen=True, kw_only=True):
    """A line as it was recorded: the name of a line that no edit changes."""

    file: str
    line: Natural


class ResolvedPath(CommandAnswer, frozen=True, kw_only=True):
    """Where a path stands here that a trace or a dashboard names."""

    uri: str
    line: Natural
    known: bool
    """The trace names it as user code."""


class FoundFinding(Finding, kw_only=True):
    """A finding with its place here."""

    uri: str | None
    current_line: Natural | None = msgspec.field(name="currentLine")
    words: str


class ListedTrace(CommandAnswer, frozen=True, kw_only=True):
    """A trace in the configured places; what its name and head do not say is "" or null until it was read once."""

    path: str
    name: str
    size_bytes: int
    size_words: str
    recorded_ns: int
    """Since the epoch."""
    run: str
    """The same for all traces of one run."""
    program: str
    step_ns: int | None
    """Mean of a step."""
    step_time_words: str
    """`2.79 s a step`"""
    rank: Natural | None
    world_size: int
    window: int | None
    """Which of the run's recordings it is, from 0."""
    stage: str
    device: str
    commit: str
    selected: bool
    """Whether it is shown."""
    problem: str
    """Why it cannot be read; "" where nobody tried, or it can."""


class Run(CommandAnswer, frozen=True, kw_only=True):
    """The traces of one run, the newest first."""

    id: str
    recorded_ns: int
    program: str
    step_time_words: str
    """Mean over the ranks. Where the training is among the traces, it is the training's. "" where it is not known."""
    ranks: int
    """How many."""
    selected: bool
    traces: list[ListedTrace]


class ShownTrace(CommandAnswer, frozen=True, kw_only=True):
    """A trace, or all the traces of a run together, that is shown or compared with."""

    path: str
    paths: list[str]
    metric: Metric
    device: str
    recorded_at: str
    """ISO 8601; "" where the trace does not say."""
    program: str
    verdict: str
    """What most of the run's time goes to, in a sentence."""
    step_ns: int | None
    """Mean of a step; null where the trace has none."""
    stage: str
    also_recorded: list[str]
    """Other stages of the run."""
    ranks: list[Natural]
    steps: Natural
    step: int | None
    """The step chosen, if one was."""
    first_step: int | None
    last_step: int | None
    steps_words: str
    """`steps 2–4`, or what is known."""  # noqa: RUF001
    commit: str
    dirty: bool
    device_ns: int
    busy_ns: int
    idle_ns: int
    wall_ns: int
    warnings: list[str]


class Comparison(CommandAnswer, frozen=True, kw_only=True):
    """How the trace is compared with the baseline."""

    is_chosen: bool
    """By hand; else it is the run before."""
    steps_differ: bool | None
    """Whether the time of a step differs by more than noise; null where a run of fewer than two steps tells of none."""
    is_same_code: bool | None
    """Whether the files that ran are equal, on equal versions of Python and torch; null where it is not known."""


class Remark(CommandAnswer, frozen=True, kw_only=True):
    """A remark on the time of a step."""

    words: str
    """`within noise (±12 %)`, `noise unknown`, `same code`, `3 % of lines shared`, `machine busy (38 %)`."""
    detail: str
    """The same as a sentence; "" where the words say all."""


class Status(CommandAnswer, frozen=True, kw_only=True):
    """What is shown of a workspace folder: answer of many commands, and the notification `$/deepscope/status`."""

    state: State
    message: str
    root: str | None
    """URI of the workspace folder; null without one."""
    trace: ShownTrace | None
    baseline: ShownTrace | None
    comparison: Comparison | None
    """Null without a baseline."""
    newer: ShownTrace | None
    """The newest run, where an older one is shown because no code of the newest is here."""
    step_time_words: str
    """`step 2.79 s`, beside a baseline `step 2.95 → 2.79 s, -5.4 %`; "" where the trace has no steps."""
    remarks: list[Remark]
    """What may explain the change besides the edit."""

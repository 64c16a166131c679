"""What the timeline's questions are answered with; `vscode-extension/contract.py` makes the pages' contract of it.

Times are nanoseconds from the timeline's begin, so that they are exact in JavaScript. Lists of one answer that say
something of the same slices have one length.
"""

from __future__ import annotations

from typing import Literal

from deepscope.dashboard.page_answer import CounterUnit, Fact, PageAnswer

SliceKind = Literal[
    "step", "phase", "annotation", "frame", "line", "library", "module", "operator", "runtime", "kernel", "copy",
    "collective", "span", "other",
]  # fmt: skip
TrackKind = Literal["steps", "thread", "stream"]
LinkKind = Literal["launch", "backward", "wait"]


class Track(PageAnswer):
    """Slices that stand in rows: a CPU thread, a stream of a device, the steps and phases."""

    id: int
    kind: TrackKind
    title: str
    rows: int
    """How deep its slices nest."""
    slices: int
    """In all."""
    device: int = -1
    """Of a stream; -1 for others."""
    is_training: bool = False
    """Whether it is the thread that trains."""


class Counter(PageAnswer):
    """A number over time."""

    id: int
    title: str
    unit: CounterUnit
    largest: float
    device: int = -1


class Timeline(PageAnswer):
    """What there is to see of a trace."""

    end_ns: int
    """The begin is 0."""
    work_begin_ns: int
    """Where the steps begin or, without steps, what else is recorded than spans of the profiler's own."""
    work_end_ns: int
    """Where the last step and all device work have ended."""
    begin_epoch_ns: str
    """Nanoseconds since the epoch, in digits: more than JavaScript's numbers hold."""
    tracks: list[Track]
    """In order: the steps, the training thread, the streams, other threads."""
    counters: list[Counter]
    kinds: list[SliceKind]
    """What `TrackWindow.kind` counts through."""
    places: list[CodeLine]
    """The lines that slices belong to: what `TrackWindow.place` counts through."""
    slices: int


class CodeLine(PageAnswer):
    """A line of code."""

    file: str
    """As recorded."""
    line: int
    function: str
    title: str
    """In words: `net.py:42 Net.forward`."""


class TrackWindow(PageAnswer):
    """The slices of one track in a window, in order of row and start.

    What is too small to be seen is joined with its neighbours in its row into one slice, which says how many it stands
    for; nothing is left out. Lists of one length.
    """

    id: int
    start: list[int]
    end: list[int]
    row: list[int]
    name: list[int]
    """Index into `Window.names`; of joined slices the name with the most time among them."""
    kind: list[int]
    """Index into `Timeline.kinds`."""
    place: list[int]
    """Index into `Timeline.places`; -1 for none."""
    slice: list[int]
    """The slice's number in the timeline, for further questions; -1 for joined ones."""
    count: list[int]
    """How many slices it stands for; 1 for itself."""
    busy: list[int]
    """Nanoseconds within it that its slices cover: its length, or less where there are gaps between joined ones."""


class CounterWindow(PageAnswer):
    """A counter in a window: the value from each time on, the largest where several fall into one pixel."""

    id: int
    at: list[int]
    value: list[float]


class Window(PageAnswer):
    """What a stretch of time shows."""

    begin_ns: int
    end_ns: int
    resolution_ns: int
    """Slices shorter than this may have been joined."""
    tracks: list[TrackWindow]
    counters: list[CounterWindow]
    names: list[str]


class Link(PageAnswer):
    """What a slice caused or was caused by: an arrow from one to another."""

    kind: LinkKind
    from_slice: int
    from_track: int
    from_row: int
    from_ns: int
    to_slice: int
    to_track: int
    to_row: int
    to_ns: int
    title: str
    """The other slice's name."""


class SliceDetails(PageAnswer):
    """All that is known of one slice."""

    slice: int
    track: int
    row: int
    name: str
    """Whole, however long."""
    kind: SliceKind
    start_ns: int
    end_ns: int
    self_ns: int
    """Its time without the slices in it."""
    place: int
    """Of the line that owns it; -1 for none."""
    stack: list[int]
    """Places of the lines around it, the innermost first."""
    module: str
    """The path of the innermost module around it, "" for none."""
    facts: list[Fact]
    """Shapes, stream, grid, bytes, FLOPs, what waited: what is there of it."""
    links: list[Link]


class Sum(PageAnswer):
    """A name with its time in a selection."""

    name: str
    kind: SliceKind
    place: int
    """Index into `Timeline.places`; -1 for none."""
    time_ns: int
    """Within the selection: what goes beyond it is cut off."""
    count: int


class Busy(PageAnswer):
    """How much of a selection a track is busy."""

    track: int
    busy_ns: int
    """The union of its slices (of a thread: of operators and runtime calls) in the selection."""


class Change(PageAnswer):
    """What a counter does in a selection."""

    counter: int
    first: float
    last: float
    least: float
    largest: float
    mean: float
    """By time."""


class Selection(PageAnswer):
    """The sums of a stretch of time, over the tracks that were asked for."""

    begin_ns: int
    end_ns: int
    busy: list[Busy]
    idle_ns: list[int]
    """Of each device in the order of the devices: when none of its streams works."""
    devices: list[int]
    lines: list[Sum]
    """Device work by the line that owns it (without a device: operators' own CPU time), the largest first; all, so that
    they sum to the work in the selection. No line has the place -1."""
    kernels: list[Sum]
    """Device work by name, the largest 50, then one "(others)"."""
    operators: list[Sum]
    """Operators by their own CPU time, the largest 50, then one "(others)"."""
    counters: list[Change]


class Found(PageAnswer):
    """A slice that a search found."""

    slice: int
    track: int
    row: int
    start_ns: int
    end_ns: int
    name: str


class Matches(PageAnswer):
    """What a search found."""

    count: int
    time_ns: int
    """The sum of their durations, each counted even where one is in another."""
    found: list[Found]
    """In order of time, not more than were asked for, those from the asked time on first."""


class Durations(PageAnswer):
    """How long the slices of one name are: a histogram with bins that grow by a constant ratio."""

    name: str
    kind: SliceKind
    count: int
    least_ns: int
    median_ns: int
    p95_ns: int
    largest_ns: int
    total_ns: int
    edges_ns: list[float]
    counts: list[int]
    """One fewer than edges."""
    longest: list[Found]
    """The longest ten."""

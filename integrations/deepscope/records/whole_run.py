"""What the time of a whole run went to, recorded or not, and what an audit looked at."""

from __future__ import annotations

from operator import attrgetter
from typing import Annotated

import msgspec

from deepscope.records.merging import First, Joined, Largest, Sum, distinct, largest_first, merged_by, table


class RunPart(msgspec.Struct, kw_only=True):
    """One part of the run: `steps`, `data`, `evaluation`, `checkpoint`, `logging`, `recording`, `start` or `rest`."""

    name: First[str]
    time_ns: Sum
    """Without what belongs to another part."""
    times: Largest
    """How often it came; 0 for what is not counted."""


class RunEpoch(msgspec.Struct, kw_only=True):
    """The steps of an epoch, or of several in a row."""

    number: First[int]
    """Of the first one, from 0 on in this run."""
    epochs: First[int]
    """How many are in the row."""
    steps: Largest
    """How many were done in it."""
    steps_ns: Sum
    """Without the wait for data."""
    data_ns: Sum
    """The wait for data."""


class CompiledFunction(msgspec.Struct, kw_only=True):
    """A function that torch.compile compiled in the run."""

    file: First[str]
    line: First[int]
    """The function's first one."""
    function: First[str]
    times: Largest
    """How often it was compiled."""
    time_ns: Sum
    """To compile it, both passes, as often as it was."""
    reason: First[str] = ""
    """Why it was compiled again, the last time; "" where it was compiled once."""


class RunPause(msgspec.Struct, kw_only=True):
    """The line that most of a part's time is at in which no step ends for long, with what it calls; of samples."""

    part: First[str]
    """As in `parts`."""
    file: First[str]
    line: First[int]
    function: First[str]
    time_ns: Sum
    """Of the line and of what it calls."""
    times: Largest
    """How many such pauses the part had."""


class WholeRun(msgspec.Struct, kw_only=True):
    """The parts sum to the run's length; a part that was not measured is missing."""

    duration_ns: Sum
    """From its begin to its end."""
    parts: Annotated[list[RunPart], merged_by(table("name"))]
    epochs: Annotated[list[RunEpoch], merged_by(table("number", order=attrgetter("number")))] = []
    compiled: Annotated[
        list[CompiledFunction], merged_by(table("file", "line", "function", order=largest_first("time_ns")))
    ] = []
    """Its time is part of the steps', or of whatever else went on meanwhile."""
    first_step_ns: Largest = 0
    """With its wait for data."""
    usual_step_ns: Largest = 0
    """The median, about, with its wait for data and without the first one; 0 where that is not known."""
    long_steps: Largest = 0
    """Steps that took at least four times as long, at regular intervals."""
    long_steps_ns: Sum = 0
    """All of them together."""
    repeated_data_ns: Sum = 0
    """Of evaluations: those on the data that the run trains on."""
    pauses: Annotated[
        list[RunPause], merged_by(table("part", "file", "line", "function", order=largest_first("time_ns")))
    ] = []
    """The largest of each part and rank."""
    ranks: Sum = 1
    """Whose runs it sums up."""

    def time_ns(self, *names: str) -> int:
        """The time of these parts."""
        return sum(part.time_ns for part in self.parts if part.name in names)

    @property
    def program_ns(self) -> int:
        """The run's length without what recording took: what shares of the run are of."""
        return self.duration_ns - self.time_ns("recording")

    def share(self, *names: str) -> float:
        """These parts of the run without what recording took, 0 to 1."""
        return self.time_ns(*names) / self.program_ns if self.program_ns else 0.0

    @property
    def compiling_share(self) -> float:
        """What compiling takes of the run without what recording took, 0 to 1."""
        return min(sum(one.time_ns for one in self.compiled) / self.program_ns, 1.0) if self.program_ns else 0.0

    @property
    def steps(self) -> int:
        """How many were done."""
        return next((part.times for part in self.parts if part.name == "steps"), 0)

    @property
    def step_ns(self) -> float | None:
        """The mean length of all steps with their wait for data, those that were recorded among them; None without any.

        What recording adds to a recorded step is in it.
        """
        return self.time_ns("steps", "data") / (self.steps * self.ranks) if self.steps else None


class Audit(msgspec.Struct, kw_only=True):
    """Of the steps behind the window (docs/recording.md); what was found in them are findings."""

    steps: Largest
    """How many were looked at."""
    operators: Largest = 0
    """Called in the first of them."""
    left_out: Joined = ""
    """Why none was; "" where some were."""
    hidden: Annotated[list[str], merged_by(distinct)] = []
    """Operators from outside torch: what they do with their arguments is unknown, and counts as a use."""

"""Where a profile comes from, and which part of the trace it is of."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

import msgspec

from deepscope.records.merging import Either, First, Joined, Largest, RankRecords, Sum, distinct, merged_by, record

LineSource = Literal["scopes", "call_stack", "frames", "none"]
"""What tells the lines, the best first."""

_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
_SOURCES: tuple[LineSource, ...] = ("scopes", "call_stack", "frames", "none")


def _paths(group: RankRecords[Any], _: str) -> list[str]:
    return [str(path) for path in group.values("path")]


def _ranks(group: RankRecords[Any], _: str) -> list[int]:
    return list(group.ranks)


def _world_size(group: RankRecords[Any], field: str) -> int:
    sizes: list[int] = group.values(field)
    return max(*sizes, len(group.records))


def _best(group: RankRecords[Any], field: str) -> LineSource:
    return min(group.values(field), key=_SOURCES.index)


class TraceInfo(msgspec.Struct, kw_only=True):
    """Where a profile comes from."""

    path: First[str]
    paths: Annotated[list[str], merged_by(_paths)] = []
    """All files, when ranks were merged."""
    ranks: Annotated[list[int], merged_by(_ranks)] = []
    world_size: Annotated[int, merged_by(_world_size)] = 1
    process_groups: Largest = 0
    """How many the head of the trace lists; 0 where it lists none."""
    device: Joined = ""
    """`NVIDIA H100 80GB HBM3`, or `CPU`."""
    device_count: First[int] = 0
    hostname: Joined = ""
    recorded_at: First[str] = ""
    """ISO 8601 with offset; "" where unknown."""
    program: First[str] = ""
    """The script or module that ran, without its arguments; "" where the trace does not say."""
    arguments: First[str] = ""
    """A digest of the program's arguments; "" where unknown."""
    stage: First[str] = ""
    """Of a Trainer; of SGLang's profiles by stage `prefill` or `decode`, as the file's name says; else ""."""
    window: First[int] = 0
    project_root: First[str] = ""
    git_commit: First[str] = ""
    git_dirty: First[bool] = False
    python: First[str] = ""
    torch: First[str] = ""
    lightning: First[str] = ""
    deepscope: First[str] = ""
    line_source: Annotated[LineSource, merged_by(_best)] = "none"
    truncated: Either = False
    warnings: Annotated[list[str], merged_by(distinct)] = []
    recording: First[dict[str, Any]] = {}
    """The recorder's own account (docs/trace-format.md, `lines`)."""
    also_recorded: First[list[str]] = []
    """Other stages of the same run, as found beside the trace when it was loaded; never cached."""

    @property
    def program_module(self) -> str:
        """The program where it is a module's name, which `python -m` takes; else ""."""
        is_module = _MODULE.fullmatch(self.program) and self.program != "notebook" and not self.program.endswith(".py")
        return self.program if is_module else ""


PHASES = ("data", "forward", "backward", "optimizer", "other")
"""The phases of training, in the order of a step."""

Detail = Literal["shapes", "stacks"]
DETAILS: tuple[Detail, ...] = ("shapes", "stacks")
"""Operators by the shapes of their arguments, and by the lines that led to them."""


class View(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of a trace. Each view has a Profile of its own, in the cache too; the plain one is of all."""

    step: First[int | None] = None
    """Only this `ProfilerStep#N`."""
    phase: First[str] = ""
    """Only what was launched in this phase of training."""
    module: First[str] = ""
    """Only what ran in modules whose path this pattern matches, and in modules within them."""
    details: First[tuple[Detail, ...]] = ()
    """Tables that are worked out on demand."""

    @property
    def is_filtered(self) -> bool:
        """Whether it leaves out some of the trace, or of the step."""
        return bool(self.phase or self.module)


WHOLE = View()
"""All of a trace, without further tables."""


class PartOf(msgspec.Struct, kw_only=True):
    """The whole that a filtered Profile is a part of: the trace, or the step."""

    view: Annotated[View, merged_by(record)]
    device_ns: Sum
    self_cpu_ns: Sum
    """Of all lines and of what ran on none."""
    wall_ns: Sum

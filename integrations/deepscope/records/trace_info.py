"""Where a profile comes from."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from deepscope.records.merging import Either, First, Joined, Largest, RankRecords, distinct, merged_by

LineSource = Literal["scopes", "call_stack", "frames", "none"]
"""What tells the lines, the best first."""

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


class SourceFile(msgspec.Struct, kw_only=True):
    """One user file as it was when it ran."""

    sha256: str = ""
    text: str | None = None

"""The critical path of the steps: the chain of what was waited for last, from each step's end back to its beginning."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from deepscope.records.merging import First, RankRecords, Sum, largest_first, merged_by, record, table


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

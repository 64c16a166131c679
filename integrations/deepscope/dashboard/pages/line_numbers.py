"""The columns of numbers beside lines: the same in the margin, in lists and in the file tree."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from deepscope.dashboard.answer import CellKind, Column
from deepscope.records import Metric, Numbers, Profile
from deepscope.report.framework import framework_amounts, without_framework

__all__ = ["LineNumber", "columns_of", "line_numbers", "rest_of", "sums_of", "values_of"]


class LineNumber(NamedTuple):
    """A number of a line: one field of `Numbers`, or the sum of several."""

    key: str
    title: str
    kind: CellKind
    fields: tuple[str, ...]
    help: str
    is_sum: bool = True
    """Whether the numbers of several lines add up; totals overlap."""

    @property
    def rank(self) -> int:
        """As in `Column`."""
        return _ORDER.index(self.key)

    def of(self, row: Numbers) -> int:
        """Its value."""
        return sum(getattr(row, field) for field in self.fields)


_ORDER = (
    "cost", "self", "backward", "idle", "python", "wait", "calls", "cpu", "total", "peak", "launches", "comms",
    "copies", "workers", "flops", "allocated", "cpu_total",
)  # fmt: skip
"""The first one stays longest where there is little room."""


def _all(metric: Metric) -> list[LineNumber]:
    on_device = metric == "device"
    work = "device" if on_device else "operators"
    cost = (
        "Device time, and the device's idle time that the line is blamed for."
        if on_device
        else "Operators' own time and the interpreter's, on the CPU."
    )
    self_help = (
        "Work that this line launched, backward included; each piece belongs to one line."
        if on_device
        else "Own time on the CPU of operators that this line called, backward included."
    )
    python = LineNumber("python", "Python", "time", ("python_ns",), "The interpreter's own time, or its waiting.")
    return [
        LineNumber("cost", "cost", "time", ("cost_ns",), cost),
        LineNumber("self", work, "time", ("self_device_ns",), self_help),
        LineNumber("backward", "backward", "time", ("backward_device_ns",), f"The part of {work} in backward passes."),
        LineNumber(
            "total",
            "total",
            "time",
            ("total_device_ns",),
            f"{work.capitalize()} here and in all that is called.",
            False,
        ),
        LineNumber("idle", "idle", "time", ("idle_ns",), "The device idle while the training thread was on this line."),
        LineNumber("wait", "wait", "time", ("wait_ns",), "CPU time in calls that wait for the device."),
        *([] if on_device else [python]),
        LineNumber("cpu", "CPU", "time", ("self_cpu_ns",), "CPU time on this line, without the lines it calls."),
        LineNumber(
            "cpu_total", "CPU total", "time", ("total_cpu_ns",), "CPU time with the lines that it calls.", False
        ),
        LineNumber("calls", "calls", "count", ("calls",), "How often the line was entered."),
        LineNumber("launches", "launches", "count", ("launches",), "Kernels that were launched here."),
        LineNumber("comms", "comms", "time", ("collective_exposed_ns",), "Collectives that no other kernel hides."),
        LineNumber("copies", "copies", "time", ("h2d_ns", "d2h_ns", "d2d_ns"), "Copies to, from and on the device."),
        LineNumber("allocated", "allocated", "bytes", ("bytes_allocated",), "Memory that was allocated here, in all."),
        LineNumber("peak", "at peak", "bytes", ("peak_bytes",), "What was allocated here and live at the peak."),
        LineNumber("flops", "FLOPs", "flops", ("flops",), "Floating-point operations, from the operators' shapes."),
        LineNumber("workers", "workers", "time", ("worker_ns",), "Time in data-loader worker processes."),
    ]


def line_numbers(profile: Profile) -> list[LineNumber]:
    """Those that say something of any line of a profile; the cost always."""
    rows: list[Numbers] = [*profile.lines, *profile.library_lines, profile.no_line]
    found = _all(profile.metric)
    return [one for at, one in enumerate(found) if not at or any(one.of(row) for row in rows)]


def columns_of(numbers: Iterable[LineNumber]) -> list[Column]:
    """What they are called."""
    return [Column(key=one.key, title=one.title, kind=one.kind, help=one.help, rank=one.rank) for one in numbers]


def values_of(row: Numbers, profile: Profile, numbers: Iterable[LineNumber]) -> list[int]:
    """A row's values, without what is the training framework's own of them."""
    own = without_framework(row, profile)
    return [one.of(own) for one in numbers]


def sums_of(rows: Sequence[Numbers], profile: Profile, numbers: Iterable[LineNumber]) -> list[int | None]:
    """The sums over rows; None for what does not add up."""
    own = [without_framework(row, profile) for row in rows]
    return [sum(one.of(row) for row in own) if one.is_sum else None for one in numbers]


def rest_of(profile: Profile) -> dict[str, Numbers]:
    """What no line has, by what it is called: each framework's own work, and the work of no user line."""
    found = {f"({name})": Numbers(**amounts) for name, amounts in framework_amounts(profile).items()}
    if any(getattr(profile.no_line, name) for name in Numbers.__struct_fields__):
        found["(no user line)"] = profile.no_line
    return found

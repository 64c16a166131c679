"""The numbers of lines, functions and what no line has: one list of columns for all tables of them."""

from __future__ import annotations

from deepscope.records import Costs, Metric, Numbers, Profile, cost_ns
from deepscope.report.table_column import ColumnOf, Unit


def line_columns(profile: Profile) -> list[ColumnOf]:
    """The columns of numbers, of which rows without the framework's own part are asked."""
    costs = Costs.of(profile)
    device = profile.metric == "device"
    has_backward = any(row.backward_device_ns for row in (*profile.lines, profile.no_line))
    in_steps = costs.steps * costs.ranks > 1

    def forward(row: Numbers) -> int:
        return row.self_device_ns - row.backward_device_ns if has_backward else 0

    return [
        *_costs(profile.metric),
        ColumnOf(
            "per_step",
            "/step",
            "time",
            lambda row: costs.per_step_ns(row) if in_steps else 0,
            "The cost in a step of a rank, without work outside the steps.",
            5,
        ),
        _number("total", "total", ("total_device_ns",), "Self time here and in all that is called.", 9, is_sum=False),
        ColumnOf("forward", "forward", "time", forward, "The part of the self time in forward passes.", 6),
        _number("backward", "backward", ("backward_device_ns",), "The part of the self time in backward passes.", 2),
        _number("wait", "wait", ("wait_ns",), "CPU time in calls that wait for the device.", 4),
        _number("idle", "idle", ("idle_ns",), "The device idle while the training thread was on this line.", 2),
        *(
            []
            if device
            else [_number("python", "python", ("python_ns",), "The interpreter's own time, or its waiting.", 2)]
        ),
        _number("cpu", "CPU", ("self_cpu_ns",), "CPU time on this line, without the lines it calls.", 7),
        _number(
            "cpu_total", "CPU total", ("total_cpu_ns",), "CPU time with the lines that it calls.", 17, is_sum=False
        ),
        _number("calls", "calls", ("calls",), "How often the line was entered.", 6, kind="count"),
        _number("launches", "launches", ("launches",), "Kernels that were launched here.", 8, kind="count"),
        _number("comms", "comms", ("collective_exposed_ns",), "Collectives that no other kernel hides.", 10),
        _number("copies", "copies", ("h2d_ns", "d2h_ns", "d2d_ns"), "Copies to, from and on the device.", 14),
        _number("allocated", "memory", ("bytes_allocated",), "Memory allocated here, in all.", 11, kind="bytes"),
        _number("peak", "at peak", ("peak_bytes",), "What was allocated here and live at the peak.", 13, kind="bytes"),
        _number("flops", "FLOPs", ("flops",), "Operations, from the operators' shapes.", 12, kind="flops"),
        _number("workers", "workers", ("worker_ns",), "Time in data-loader worker processes.", 15),
    ]


VERDICT = ColumnOf("verdict", "why", "text", lambda row: getattr(row, "verdict", ""), rank=2)
FUNCTION = ColumnOf("function", "function", "text", lambda row: getattr(row, "function", ""), rank=20, least=12)
"""Of lines; other rows have none."""


def _costs(metric: Metric) -> list[ColumnOf]:
    if metric == "device":
        cost = "Self time, and the device's idle time that the line is blamed for."
        own = "Device work that this line launched, backward included; each piece belongs to one line."
    else:
        cost = "Self time, and Python's own on this line."
        own = "CPU time of the operators that this line called, backward included; each belongs to one line."
    return [ColumnOf("cost", "cost", "time", cost_ns, cost), _number("self", "self", ("self_device_ns",), own, 1)]


def cost_share(profile: Profile) -> ColumnOf:
    """The column of a row's part of what the run costs."""
    costs = Costs.of(profile)
    return ColumnOf("share", "share", "share", costs.share, "Its part of what the run costs.", is_sum=False)


def used_columns(profile: Profile) -> list[ColumnOf]:
    """The columns that say something of any line of a profile; the cost always."""
    rows: list[Numbers] = [*profile.lines, *profile.library_lines, profile.no_line]
    return [one for one in line_columns(profile) if one.key == "cost" or any(map(one.value, rows))]


def _number(
    key: str,
    title: str,
    fields: tuple[str, ...],
    explained: str,
    rank: int,
    *,
    kind: Unit = "time",
    is_sum: bool = True,
) -> ColumnOf:
    def value(row: Numbers) -> int:
        return sum(getattr(row, field) for field in fields)

    return ColumnOf(key, title, kind, value, explained, rank, is_sum)

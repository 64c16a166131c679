"""The operators: by name, by the shapes of their arguments, by the lines that led to them, or by kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from deepscope.dashboard.answer import Answer, Choice, Table
from deepscope.dashboard.library import Library
from deepscope.dashboard.pages.tables import ColumnOf, key_of, share_column, table_of
from deepscope.dashboard.pages.words import word
from deepscope.records import Detail, Operator, OperatorInDetail, Profile
from deepscope.report.event_names import readable
from deepscope.report.operator_columns import flops_missing
from deepscope.report.shapes import shapes_text
from deepscope.report.top import Question as TopQuestion
from deepscope.report.top import TopRow, ranking
from deepscope.trace.operator_kinds import operator_kind

__all__ = [
    "Grouping",
    "Operators",
    "OperatorsAsked",
    "operator_key",
    "operator_profile",
    "operator_rows",
    "operator_table",
    "operators",
    "stack_words",
]

Grouping = Literal["name", "shapes", "stacks", "type"]
_DETAILS: dict[Grouping, tuple[Detail, ...]] = {
    "name": (),
    "shapes": ("shapes",),
    "stacks": ("stacks",),
    "type": ("shapes",),
}
"""What a profile needs for each; `type` takes the sums that count no call twice."""
_STACK = 12
"""Lines of a stack in a table."""


class OperatorsAsked(Choice, kw_only=True, frozen=True):
    """Which operators, and what makes a row."""

    by: Grouping = "name"


class Operators(Answer):
    """A row for each operator, each of its shapes or stacks, or each kind."""

    by: Grouping
    table: Table


def operators(library: Library, question: OperatorsAsked) -> Operators:
    """The operators, those first in which the device works longest."""
    profile = operator_profile(library, question)
    rows = operator_rows(profile, question.by)
    return Operators(by=question.by, table=operator_table(profile, question.by, rows))


def operator_profile(library: Library, question: OperatorsAsked) -> Profile:
    """The profile that has the rows that are asked for.

    Raises:
        NotYetError, TraceError, OptionError: as `Library.profile`.
    """
    return library.profile(question, details=_DETAILS[question.by])


def operator_rows(profile: Profile, by: Grouping) -> Sequence[Operator | TopRow]:
    """The rows, in the order of the report."""
    if by == "type":
        return ranking(profile, TopQuestion(by="type")).rows
    rows: Sequence[Operator] = profile.operators if by == "name" else profile.operators_in_detail
    return sorted(rows, key=lambda row: -row.self_device_ns)


def operator_key(row: Operator | TopRow) -> str:
    """The word of an address for a row."""
    if isinstance(row, OperatorInDetail):
        return key_of(row.name, row.in_shapes, row.stack)
    return key_of(row.name)


def operator_table(profile: Profile, by: Grouping, rows: Sequence[Operator | TopRow]) -> Table:
    """The rows as a table."""
    columns = _kind_columns(profile) if by == "type" else _operator_columns(profile, by)
    return table_of(f"operators_{by}", "Operators", columns, rows, keys=operator_key)


def _operator_columns(profile: Profile, by: Grouping) -> list[ColumnOf]:
    device = profile.metric == "device"
    by_shapes = (
        [
            ColumnOf("in_shapes", "shapes", "text", lambda row: shapes_text(row.in_shapes, row.dtypes)),
            ColumnOf("out_shapes", "to", "text", lambda row: shapes_text(row.out_shapes), rank=10),
        ]
        if by == "shapes"
        else []
    )
    by_stacks = [ColumnOf("stack", "called from", "text", lambda row: stack_words(row.stack))] if by == "stacks" else []
    return [
        ColumnOf("label", "operator", "text", lambda row: readable(row.name)),
        *by_shapes,
        *by_stacks,
        share_column("self_device_ns", profile.totals.device_ns, "Its own part of all device work."),
        *_sums(device, lambda row: row.flops or flops_missing(row) or 0),
        ColumnOf(
            "flops_per_s", "FLOP/s", "rate", lambda row: _rate(row, "flops"), "While work with known FLOPs ran.", 6
        ),
        ColumnOf("moved_bytes", "moves", "bytes", lambda row: row.moved_bytes, "The least that its work must move.", 8),
        ColumnOf(
            "bytes_per_s",
            "B/s",
            "bandwidth",
            lambda row: _rate(row, "moved_bytes"),
            "While work with known bytes ran.",
            6,
        ),
        ColumnOf(
            "allocated_bytes",
            "memory",
            "bytes",
            lambda row: row.allocated_bytes,
            "Taken while it was the innermost operator.",
            9,
        ),
        ColumnOf(
            "tensor_cores",
            "tensor cores",
            "share",
            _tensor_cores if device else lambda _: None,
            "How much of its device time is in kernels that use them; for what can use them.",
            7,
        ),
        ColumnOf("verdict", "why", "text", lambda row: row.verdict, "What holds its work back.", 1),
        ColumnOf("type", "kind", "text", lambda row: operator_kind(row.name), "What it is of, by its name.", 5),
    ]


_FLOPS = (
    "Two for each multiplication with its addition, where known. A causal mask takes off what it hides where the trace "
    "tells of it (record_shapes, torch 2.1 or later); elsewhere attention counts in full."
)


def _sums(device: bool, flops: Callable[[Any], int | str]) -> list[ColumnOf]:
    cpu = [
        ColumnOf("self_cpu_ns", "CPU", "time", lambda row: row.self_cpu_ns, "CPU time less operators called.", 2),
        ColumnOf(
            "total_cpu_ns", "total CPU", "time", lambda row: row.total_cpu_ns, "CPU time with operators called.", 4
        ),
    ]
    what = "Device work" if device else "CPU time"
    return [
        ColumnOf("self_device_ns", "self", "time", lambda row: row.self_device_ns, f"{what} of its own."),
        ColumnOf(
            "total_device_ns",
            "total",
            "time",
            lambda row: row.total_device_ns,
            f"{what} of it and of the operators that it calls.",
            1,
        ),
        *(cpu if device else []),
        ColumnOf("calls", "calls", "count", lambda row: row.calls, "How often it ran.", 3),
        ColumnOf("flops", "FLOPs", "flops", flops, _FLOPS, 5),
    ]


def _kind_columns(profile: Profile) -> list[ColumnOf]:
    return [
        ColumnOf("name", "kind", "text", lambda row: row.name, "What operators are of, by their names."),
        ColumnOf("share", "share", "share", lambda row: row.share, "Of all operators' own time."),
        *_sums(profile.metric == "device", lambda row: row.flops),
        ColumnOf("operators", "operators", "count", lambda row: row.operators, "Different ones of this kind.", 2),
        ColumnOf("flops_per_s", "FLOP/s", "rate", lambda row: row.flops_per_s or None, "While its work ran.", 6),
        ColumnOf("moved_bytes", "moves", "bytes", lambda row: row.moved_bytes, "The least that its work must move.", 8),
        ColumnOf("bytes_per_s", "B/s", "bandwidth", lambda row: row.bytes_per_s or None, "While its work ran.", 6),
        ColumnOf("allocated_bytes", "memory", "bytes", lambda row: row.allocated_bytes, "Taken in its operators.", 9),
    ]


def _rate(row: Operator, field: str) -> float | None:
    """Operations or bytes a second, over the work of which they are known."""
    rates = [rate for rate in row.why.rates if getattr(rate, field)]
    time_ns = sum(rate.device_ns for rate in rates)
    return sum(getattr(rate, field) for rate in rates) / time_ns * 1e9 if time_ns else None


def _tensor_cores(row: Any) -> float | None:
    if not row.tensor_core_eligible or not row.total_device_ns:
        return None
    return row.tensor_core_total_ns / row.total_device_ns  # type: ignore[no-any-return]


def stack_words(stack: str) -> str:
    """`train.py:12 < loop.py:40`, the innermost line first."""
    from deepscope.trace.names import parse_call_stack  # imports NumPy, which no other page needs

    frames = parse_call_stack(stack)
    names = [f"{_last(one.path)}:{one.line}" for one in frames[:_STACK]]
    return word(" < ".join([*names, *(["…"] if len(frames) > _STACK else [])]))


def _last(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2]

"""Operators by name or by kind: sums, means or maxima over their calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Literal, get_args

import msgspec

from deepscope.errors import OptionError
from deepscope.records import OperatorInDetail, Profile, bytes_per_s, flops_per_s
from deepscope.records.tables import CALL_NUMBERS
from deepscope.report.event_names import readable
from deepscope.report.filters import NO_FILTERS, Filters
from deepscope.report.shapes import parsed
from deepscope.trace.operator_kinds import operator_kind

By = Literal["operator", "type"]
Aggregate = Literal["sum", "mean", "max"]
AGGREGATES: tuple[Aggregate, ...] = get_args(Aggregate)

ORDERS = {
    "self": "self_device_ns",
    "total": "total_device_ns",
    "cpu": "self_cpu_ns",
    "total-cpu": "total_cpu_ns",
    "flops": "flops",
    "flops-rate": "flops_per_s",
    "moves": "moved_bytes",
    "bandwidth": "bytes_per_s",
    "allocated": "allocated_bytes",
    "calls": "calls",
    "name": "name",
}
"""The words of `--sort`, and the numbers that they stand for."""


class TopRow(msgspec.Struct, kw_only=True):
    """An operator, or all operators of a kind. Numbers are sums, means or maxima over calls, as was asked."""

    name: str
    type: str
    """Its kind, of `OPERATOR_KINDS`."""
    operators: int
    """How many are summed up in the row."""
    calls: int
    self_device_ns: int
    total_device_ns: int
    self_cpu_ns: int
    total_cpu_ns: int
    flops: int
    moved_bytes: int
    allocated_bytes: int
    flops_per_s: float
    bytes_per_s: float
    share: float
    """Of the device time (CPU only: of the operators' time) of all operators; over all rows it sums to 1."""
    cumulative_share: float = 0.0
    """Of the row and all rows before it."""
    in_shapes: Any = None
    """Those with most device time, as a list; None for a kind, and where the trace has none."""
    out_shapes: Any = None
    dtypes: Any = None
    shapes: int = 0
    """How many different ones there are."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of the operators of a profile."""

    by: By = "operator"
    aggregate: Aggregate = "sum"
    sort: str = "self"
    """A word of `ORDERS`."""
    filters: Filters = NO_FILTERS

    def check(self) -> None:
        """Raises OptionError where rows cannot be sorted by `sort`."""
        if self.sort not in ORDERS:
            problem = f"no such key for the table by {self.by} with --aggregate; there are: {', '.join(ORDERS)}"
            raise OptionError("sort", self.sort, problem)


@dataclass(frozen=True, slots=True)
class Ranking:
    """The rows in their order, and how many there were before any was chosen."""

    rows: list[TopRow]
    of: int


def ranking(profile: Profile, question: Question) -> Ranking:
    """The operators of a profile that was loaded with `details=("shapes",)`, those first that come first in the order.

    Raises:
        OptionError: as `Question.check`.
    """
    question.check()
    groups: dict[str, list[OperatorInDetail]] = {}
    for one in profile.operators_in_detail:
        groups.setdefault(operator_kind(one.name) if question.by == "type" else one.name, []).append(one)
    whole = sum(one.self_device_ns for one in profile.operators_in_detail)
    rows = [_row(name, members, question, whole) for name, members in groups.items()]
    kept = [row for row in rows if _is_wanted(row, question)]
    field = ORDERS[question.sort]
    kept.sort(key=_order(field), reverse=field != "name")
    for row, so_far in zip(kept, accumulate(row.share for row in kept), strict=True):
        row.cumulative_share = min(so_far, 1.0)
    return Ranking(kept, len(rows))


def _order(field: str) -> Callable[[TopRow], Any]:
    if field == "name":
        return lambda row: row.name
    return lambda row: (getattr(row, field), row.self_device_ns, row.self_cpu_ns, row.name)


def _row(name: str, members: Sequence[OperatorInDetail], question: Question, whole: int) -> TopRow:
    of_kind = question.by == "type"
    calls = sum(one.calls for one in members)
    sums = {field: sum(getattr(one, field) for one in members) for field in CALL_NUMBERS}
    if of_kind:  # an operator that another one of its kind calls is in its total already
        sums["total_device_ns"] = sum(one.kind_total_device_ns for one in members)
        sums["total_cpu_ns"] = sum(one.kind_total_cpu_ns for one in members)
    largest = max(members, key=lambda one: (one.self_device_ns, one.self_cpu_ns, one.calls))
    return TopRow(
        name=name,
        type=name if of_kind else operator_kind(name),
        operators=len({one.name for one in members}),
        calls=calls,
        **_aggregated(members, sums, calls, question.aggregate),
        flops_per_s=flops_per_s(*members) or 0.0,
        bytes_per_s=bytes_per_s(*members) or 0.0,
        share=sums["self_device_ns"] / whole if whole else 0.0,
        in_shapes=None if of_kind else parsed(largest.in_shapes),
        out_shapes=None if of_kind else parsed(largest.out_shapes),
        dtypes=None if of_kind else parsed(largest.dtypes),
        shapes=0 if of_kind else len({one.in_shapes for one in members if one.in_shapes}),
    )


def _aggregated(
    members: Sequence[OperatorInDetail], sums: dict[str, int], calls: int, aggregate: Aggregate
) -> dict[str, int]:
    if aggregate == "max":
        return {field: max(getattr(one, f"max_{field}") for one in members) for field in CALL_NUMBERS}
    if aggregate == "mean":
        return {field: round(value / calls) if calls else 0 for field, value in sums.items()}
    return sums


def _is_wanted(row: TopRow, question: Question) -> bool:
    filters = question.filters
    by_cpu = question.sort in {"cpu", "total-cpu"}
    if filters.min_ns and (row.self_cpu_ns if by_cpu else row.self_device_ns) < filters.min_ns:
        return False
    names = [row.name, readable(row.name), row.name.rpartition("::")[2], row.type]
    return filters.keeps_named(names)

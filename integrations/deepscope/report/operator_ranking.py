"""Operators in sums, means or maxima over their calls, as text, JSON and CSV."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import attrgetter
from typing import Any, Literal, get_args

import msgspec

from deepscope.errors import OptionError
from deepscope.quantities import number_text
from deepscope.records import OperatorInDetail, Profile, bytes_per_s, flops_per_s
from deepscope.records.operators import CALL_NUMBERS
from deepscope.report.event_names import measured_words, parsed, readable, shapes_text
from deepscope.report.filters import NO_FILTERS, Filters, event_names
from deepscope.report.json_csv import csv_text, filters_object, plain
from deepscope.report.operator_columns import kind_columns, measured_columns
from deepscope.report.table_column import ColumnOf, field, text_columns
from deepscope.report.terminal import MIN_WIDTH, Styles, TextColumn, entries_text, render, shown_words
from deepscope.report.text_report import header
from deepscope.trace.kinds import operator_kind

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


class RankedRow(msgspec.Struct, kw_only=True):
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
class RankingQuery:
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

    rows: list[RankedRow]
    of: int


def ranking(profile: Profile, question: RankingQuery) -> Ranking:
    """The operators of a profile that was loaded with `details=("shapes",)`, those first that come first in the order.

    Raises:
        OptionError: as `RankingQuery.check`.
    """
    question.check()
    groups: dict[str, list[OperatorInDetail]] = {}
    for one in profile.operators_in_detail:
        groups.setdefault(operator_kind(one.name) if question.by == "type" else one.name, []).append(one)
    whole = sum(one.self_device_ns for one in profile.operators_in_detail)
    rows = [_row(name, members, question, whole) for name, members in groups.items()]
    kept = [row for row in rows if _is_wanted(row, question)]
    field = ORDERS[question.sort]
    if field == "name":
        kept.sort(key=lambda row: row.name)
    else:
        kept.sort(key=attrgetter(field, "self_device_ns", "self_cpu_ns", "name"), reverse=True)
    for row, so_far in zip(kept, accumulate(row.share for row in kept), strict=True):
        row.cumulative_share = min(so_far, 1.0)
    return Ranking(kept, len(rows))


def _row(name: str, members: Sequence[OperatorInDetail], question: RankingQuery, whole: int) -> RankedRow:
    of_kind = question.by == "type"
    calls = sum(one.calls for one in members)
    sums = {field: sum(getattr(one, field) for one in members) for field in CALL_NUMBERS}
    if of_kind:  # an operator that another one of its kind calls is in its total already
        sums["total_device_ns"] = sum(one.kind_total_device_ns for one in members)
        sums["total_cpu_ns"] = sum(one.kind_total_cpu_ns for one in members)
    largest = max(members, key=lambda one: (one.self_device_ns, one.self_cpu_ns, one.calls))
    return RankedRow(
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


def _is_wanted(row: RankedRow, question: RankingQuery) -> bool:
    filters = question.filters
    by_cpu = question.sort in {"cpu", "total-cpu"}
    if filters.min_ns and (row.self_cpu_ns if by_cpu else row.self_device_ns) < filters.min_ns:
        return False
    return filters.keeps_named([*event_names(row.name), row.type])


RANKING_FORMAT = 1
_SHAPES_WIDTH = 20
_OF_CALLS = {
    "sum": "",
    "mean": "; numbers are means of single calls",
    "max": "; numbers are the largest of a single call",
}


def ranking_text(
    profile: Profile, found: Ranking, question: RankingQuery, *, limit: int, width: int, color: bool = False
) -> str:
    """The table for a terminal `width` cells wide, ending in a newline; `limit` 0 shows all rows."""
    styles, width = Styles(color), max(MIN_WIDTH, width)
    shown = found.rows[:limit] if limit else found.rows
    head = [
        entry for entry in header(profile, by="") if entry[0] in {"trace", "run", "device", "time", "metric", "filter"}
    ]
    head.append(("rows", _words(profile, found, question, shown)))
    lines = list(entries_text(head, width, styles))
    table = render(_columns(shown, profile, question, styles), width, title_style=styles.title)
    lines += ["", *(table if len(table) > 1 else ["no operators match" if found.of else "no operators in this trace"])]
    if len(shown) < len(found.rows):
        lines += ["", *entries_text([("more", shown_words(len(shown), len(found.rows)))], width, styles)]
    return "\n".join(lines) + "\n"


def _words(profile: Profile, found: Ranking, question: RankingQuery, shown: Sequence[RankedRow]) -> str:
    noun = "types of operators" if question.by == "type" else "operators"
    order = {"self": "self time"}.get(question.sort, question.sort.replace("-", " "))
    share = number_text(sum(row.share for row in shown), "share")
    text = f"{len(shown):,} of {found.of:,} {noun} by {order}, with {share} of the {measured_words(profile)} of all"
    chosen = question.filters.words()
    return text + (f"; {', '.join(chosen)}" if chosen else "") + _OF_CALLS[question.aggregate]


def _columns(rows: Sequence[RankedRow], profile: Profile, question: RankingQuery, styles: Styles) -> list[TextColumn]:
    by_type = question.by == "type"
    columns = kind_columns(profile) if by_type else _operator_columns(profile)
    so_far = ColumnOf("so_far", "so far", "share", lambda row: row.cumulative_share, "With the rows before.", 8)
    at = next(place for place, one in enumerate(columns) if one.key == "share") + 1
    return text_columns([*columns[:at], so_far, *columns[at:]], rows, styles)


def _operator_columns(profile: Profile) -> list[ColumnOf]:
    return [
        field("share", "share", "share", "Of all operators' self time."),
        *measured_columns(profile.metric == "device"),
        ColumnOf("type", "kind", "text", lambda row: row.type, "What it is of, by its name.", 11),
        ColumnOf("in_shapes", "shapes", "text", _in_shapes, rank=5, least=_SHAPES_WIDTH),
        ColumnOf("out_shapes", "to", "text", lambda row: _text(row.out_shapes), rank=6, least=_SHAPES_WIDTH),
        ColumnOf("label", "operator", "text", lambda row: readable(row.name), least=16),
    ]


def _text(shapes: Any, dtypes: Any = None) -> str:
    return "" if shapes is None else shapes_text(json.dumps(shapes), json.dumps(dtypes) if dtypes else "")


def _in_shapes(row: RankedRow) -> str:
    return _text(row.in_shapes, row.dtypes) + (f" and {row.shapes - 1} more" if row.shapes > 1 else "")


def ranking_json(profile: Profile, found: Ranking, question: RankingQuery, *, limit: int) -> str:
    """The rows as JSON text, in ASCII; docs/report.md describes it."""
    rows = found.rows[:limit] if limit else found.rows
    return json.dumps(
        {
            "format": RANKING_FORMAT,
            "metric": profile.metric,
            "step": profile.step,
            "by": question.by,
            "aggregate": question.aggregate,
            "sort": question.sort,
            "filters": filters_object(profile, question.filters),
            "trace": plain(profile.trace),
            "totals": plain(profile.totals),
            "of": found.of,
            "rows": [msgspec.to_builtins(row) | {"label": readable(row.name)} for row in rows],
        },
        indent=1,
    )


def ranking_csv(found: Ranking, *, limit: int) -> str:
    """The rows as CSV with a header row; shapes and types are JSON texts."""
    rows = found.rows[:limit] if limit else found.rows
    return csv_text(
        (*RankedRow.__struct_fields__, "label"), ([*msgspec.structs.astuple(row), readable(row.name)] for row in rows)
    )

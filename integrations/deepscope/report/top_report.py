"""Operators in sums, means or maxima over their calls, as text, JSON and CSV."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec

from deepscope.quantities import number_text
from deepscope.records import Profile
from deepscope.report.csv_report import csv_text
from deepscope.report.event_names import readable
from deepscope.report.header import header
from deepscope.report.json_report import filters_object, plain
from deepscope.report.layout import Column, render, shown_words
from deepscope.report.operator_columns import kind_columns, measured_columns
from deepscope.report.shapes import shapes_text
from deepscope.report.style import Styles
from deepscope.report.table_column import ColumnOf, field, text_columns
from deepscope.report.text import MIN_WIDTH, entries_text
from deepscope.report.top import Question, Ranking, TopRow

TOP_FORMAT = 1
_SHAPES_WIDTH = 20
_OF_CALLS = {
    "sum": "",
    "mean": "; numbers are means of single calls",
    "max": "; numbers are the largest of a single call",
}


def top_text(
    profile: Profile, found: Ranking, question: Question, *, limit: int, width: int, color: bool = False
) -> str:
    """The table for a terminal `width` cells wide, ending in a newline; `limit` 0 shows all rows."""
    styles, width = Styles(color), max(MIN_WIDTH, width)
    shown = found.rows[:limit] if limit else found.rows
    head = [entry for entry in header(profile) if entry[0] in {"trace", "run", "device", "time", "metric", "filter"}]
    head.append(("rows", _words(profile, found, question, shown)))
    lines = list(entries_text(head, width, styles))
    table = render(_columns(shown, profile, question, styles), width, title_style=styles.title)
    lines += ["", *(table if len(table) > 1 else ["no operators match" if found.of else "no operators in this trace"])]
    if len(shown) < len(found.rows):
        lines += ["", *entries_text([("more", shown_words(len(shown), len(found.rows)))], width, styles)]
    return "\n".join(lines) + "\n"


def _words(profile: Profile, found: Ranking, question: Question, shown: Sequence[TopRow]) -> str:
    noun = "types of operators" if question.by == "type" else "operators"
    order = {"self": "self time"}.get(question.sort, question.sort.replace("-", " "))
    what = "device time" if profile.metric == "device" else "operators' CPU time"
    share = number_text(sum(row.share for row in shown), "share")
    text = f"{len(shown):,} of {found.of:,} {noun} by {order}, with {share} of the {what} of all"
    chosen = question.filters.words()
    return text + (f"; {', '.join(chosen)}" if chosen else "") + _OF_CALLS[question.aggregate]


def _columns(rows: Sequence[TopRow], profile: Profile, question: Question, styles: Styles) -> list[Column]:
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
        ColumnOf(
            "in_shapes",
            "shapes",
            "text",
            lambda row: _text(row.in_shapes, row.dtypes) + _others(row),
            rank=5,
            least=_SHAPES_WIDTH,
        ),
        ColumnOf("out_shapes", "to", "text", lambda row: _text(row.out_shapes), rank=6, least=_SHAPES_WIDTH),
        ColumnOf("label", "operator", "text", lambda row: readable(row.name), least=16),
    ]


def _text(shapes: Any, dtypes: Any = None) -> str:
    return "" if shapes is None else shapes_text(json.dumps(shapes), json.dumps(dtypes) if dtypes else "")


def _others(row: TopRow) -> str:
    return f" and {row.shapes - 1} more" if row.shapes > 1 else ""


def top_json(profile: Profile, found: Ranking, question: Question, *, limit: int) -> str:
    """The rows as JSON text, in ASCII; docs/report.md describes it."""
    rows = found.rows[:limit] if limit else found.rows
    return json.dumps(
        {
            "format": TOP_FORMAT,
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


def top_csv(found: Ranking, *, limit: int) -> str:
    """The rows as CSV with a header row; shapes and types are JSON texts."""
    rows = found.rows[:limit] if limit else found.rows
    return csv_text(
        (*TopRow.__struct_fields__, "label"), ([*msgspec.structs.astuple(row), readable(row.name)] for row in rows)
    )

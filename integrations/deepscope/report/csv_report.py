"""The report as CSV: one table, a header row, whole numbers in nanoseconds and bytes."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec.structs import asdict

from deepscope.printable import printable
from deepscope.records import Line, Profile
from deepscope.report.event_names import readable
from deepscope.report.filters import NO_FILTERS, Filters
from deepscope.report.operator_columns import derived_columns
from deepscope.report.tables import table, table_of_steps

_LABELLED = ("operator", "kernel")
"""Tables with the trace's own names; their last column has the readable names, as `label` in JSON."""
_FORMULA = ("=", "+", "-", "@")


def csv_report(
    profile: Profile, *, by: str = "line", sort: str | None = None, limit: int = 0, filters: Filters = NO_FILTERS
) -> str:
    """One table as CSV; the line table ends with the row of the work that reached no line (`file` empty, `line` 0).

    Raises:
        OptionError: no such `by` or `sort`.
    """
    by = table_of_steps(by, profile)
    chosen = table(by, profile.details)
    rows = filters.rows(by, chosen.rows(profile, sort=sort), profile.trace.project_root)
    rows = chosen.limited(rows, sort, limit)
    if by == "line" and not filters:
        rows = [*rows, Line(file="", line=0, function="", exact=False, **asdict(profile.no_line))]
    more = derived_columns(by, profile)
    label = ["label"] if by in _LABELLED else []
    cells = [
        [
            *(getattr(row, name) for name in chosen.scalars),
            *(one.value(row) for one in more),
            *(readable(row.name) for _ in label),
        ]
        for row in rows
    ]
    return csv_text((*chosen.scalars, *(one.key for one in more), *label), cells)


def csv_text(titles: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """A table as CSV with a header row."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(titles)
    writer.writerows([cell(value) for value in row] for row in rows)
    return stream.getvalue()


def cell(value: Any) -> str | float:
    """Flags as 0 and 1, lists and tables as JSON; a text that a spreadsheet would run as a formula gets an apostrophe.

    https://owasp.org/www-community/attacks/CSV_Injection
    """
    if value is None:
        return ""
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return value
    if isinstance(value, (list, dict)):
        value = json.dumps(msgspec.to_builtins(value))
    text = printable(value)
    return "'" + text if text.lstrip().startswith(_FORMULA) else text

"""The report as CSV: one table, a header row, whole numbers in nanoseconds and bytes."""

from __future__ import annotations

import csv
import io
from typing import Any

from deepscope.printable import printable
from deepscope.records import Profile
from deepscope.report.derived_columns import derived_columns
from deepscope.report.event_names import readable
from deepscope.report.filters import NO_FILTERS, Filters
from deepscope.report.tables import Table, table

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
    chosen = table(by, profile.details)
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    rows = filters.rows(by, chosen.rows(profile, sort=sort), profile.trace.project_root)
    rows = chosen.limited(rows, sort, limit)
    more = derived_columns(by, profile)
    label = ["label"] if by in _LABELLED else []
    writer.writerow((*chosen.scalars, *(one.key for one in more), *label))
    for row in rows:
        derived = [cell(one.value(row)) for one in more]
        writer.writerow([*_cells(row, chosen), *derived, *(cell(readable(row.name)) for _ in label)])
    if by == "line" and not filters:
        blank: dict[str, str | int | None] = {
            "file": "",
            "line": 0,
            "function": "",
            "exact": False,
            "in_compiled_region": False,
            "slowed": False,
            "text": None,
            "verdict": "",
        }
        cells = [getattr(profile.no_line, name, blank.get(name)) for name in chosen.scalars]
        writer.writerow([cell(one) for one in (*cells, *(one.value(profile.no_line) for one in more))])
    return stream.getvalue()


def _cells(row: Any, chosen: Table) -> list[str | float]:
    return [cell(getattr(row, name)) for name in chosen.scalars]


def cell(value: str | float | bool | None) -> str | float:
    """Flags as 0 and 1; a text that a spreadsheet would run as a formula gets an apostrophe in front.

    https://owasp.org/www-community/attacks/CSV_Injection
    """
    if value is None:
        return ""
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return value
    text = printable(value)
    return "'" + text if text.lstrip().startswith(_FORMULA) else text

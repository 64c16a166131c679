"""The report as CSV: one table, a header row, whole numbers in nanoseconds and bytes."""

from __future__ import annotations

import csv
import io

from deepscope.records import Profile
from deepscope.report.tables import table
from deepscope.report.wording import printable

__all__ = ["csv_report"]

_FORMULA = ("=", "+", "-", "@")


def csv_report(profile: Profile, *, by: str = "line", sort: str | None = None, limit: int = 0) -> str:
    """One table as CSV; the line table ends with the row of the work that reached no line (`file` empty, `line` 0).

    Raises:
        OptionError: no such `by` or `sort`.
    """
    chosen = table(by)
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(chosen.scalars)
    for row in chosen.rows(profile, sort=sort, limit=limit):
        writer.writerow([_cell(getattr(row, name)) for name in chosen.scalars])
    if by == "line":
        blank: dict[str, str | int | None] = {
            "file": "",
            "line": 0,
            "function": "",
            "exact": False,
            "in_compiled_region": False,
            "text": None,
        }
        writer.writerow([_cell(getattr(profile.no_line, name, blank.get(name))) for name in chosen.scalars])
    return stream.getvalue()


def _cell(value: str | int | bool | None) -> str | int:
    """Flags as 0 and 1; a text that a spreadsheet would run as a formula gets an apostrophe in front.

    https://owasp.org/www-community/attacks/CSV_Injection
    """
    if value is None:
        return ""
    if isinstance(value, int):
        return int(value)
    text = printable(value)
    return "'" + text if text.lstrip().startswith(_FORMULA) else text

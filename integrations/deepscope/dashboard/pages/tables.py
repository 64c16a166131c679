"""Records of a profile as the rows of a `Table`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from deepscope.dashboard.answer import CellKind, Column, Table
from deepscope.dashboard.pages.words import file_name, word
from deepscope.records import Profile

__all__ = ["LIMIT", "ColumnOf", "table_of", "where"]

LIMIT = 5000
"""Rows of a table, the first; the rest is counted."""


class ColumnOf(NamedTuple):
    """A column, and how a record fills it."""

    key: str
    title: str
    kind: CellKind
    value: Callable[[Any], str | int | float | None]
    help: str = ""


def table_of(
    profile: Profile,
    name: str,
    title: str,
    columns: Sequence[ColumnOf],
    rows: Sequence[Any],
    *,
    parents: Sequence[int] = (),
    limit: int = LIMIT,
) -> Table:
    """The rows as cells; a column that says nothing in any row is left out, but for the first and places."""
    del profile
    shown = rows[:limit]
    cells = [[column.value(row) for column in columns] for row in shown]
    used = [
        number
        for number, column in enumerate(columns)
        if number == 0 or column.kind == "place" or any(row[number] for row in cells)
    ]
    files: dict[str, int] = {}
    places = [
        [files.setdefault(row.file, len(files)), row.line] if getattr(row, "file", "") else [-1, 0] for row in shown
    ]
    return Table(
        id=name,
        title=title,
        columns=[
            Column(key=columns[at].key, title=columns[at].title, kind=columns[at].kind, help=columns[at].help)
            for at in used
        ],
        rows=[[word(one) if isinstance(one := row[at], str) else one for at in used] for row in cells],
        files=list(files),
        places=places,
        parents=list(parents[:limit]),
        left_out=len(rows) - len(shown),
    )


def where(profile: Profile) -> ColumnOf:
    """The column of places: `net.py:42`."""
    root = profile.trace.project_root

    def place(row: Any) -> str:
        return f"{file_name(row.file, root)}:{row.line}" if getattr(row, "file", "") else "(no user line)"

    return ColumnOf("place", "line", "place", place)

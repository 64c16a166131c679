"""Records of a profile as the rows of a `Table`."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from deepscope.dashboard.answer import Column, Table
from deepscope.dashboard.pages.words import place_words, word
from deepscope.records import Profile
from deepscope.report.table_column import ColumnOf

LIMIT = 5000
"""Rows of a table, the first; the rest is counted."""


def key_of(*names: object) -> str:
    """An address's word for a row: short, and the same for the same names at every time."""
    return hashlib.blake2b(repr(names).encode("utf-8", "surrogateescape"), digest_size=6).hexdigest()


def table_of(
    name: str,
    title: str,
    columns: Sequence[ColumnOf],
    rows: Sequence[Any],
    *,
    parents: Sequence[int] = (),
    keys: Callable[[Any], str] | None = None,
    place: Callable[[Any], tuple[str, int]] | None = None,
    limit: int = LIMIT,
) -> Table:
    """The rows as cells; a column that says nothing in any row is left out, but for the first.

    Args:
        name: of the kind of table, which browsers keep chosen columns by.
        title: for readers.
        columns: the first one names the row.
        rows: records, the first of which are shown.
        parents: of a tree, for each row the row that it is below, -1 for none.
        keys: a row's word for addresses, where rows are asked for one by one.
        place: a row's file and line; its own by default.
        limit: how many rows.
    """
    shown = rows[:limit]
    cells = [[column.value(row) for column in columns] for row in shown]
    used = [number for number in range(len(columns)) if number == 0 or any(row[number] for row in cells)]
    files: dict[str, int] = {}
    found = [(place or _own_place)(row) for row in shown]
    places = [[files.setdefault(file, len(files)), line] if file else [-1, 0] for file, line in found]
    return Table(
        id=name,
        title=title,
        columns=described(columns[at] for at in used),
        rows=[[word(one) if isinstance(one := row[at], str) else one for at in used] for row in cells],
        files=list(files),
        places=places,
        parents=list(parents[:limit]),
        keys=[] if keys is None else [keys(row) for row in shown],
        left_out=len(rows) - len(shown),
    )


def described(columns: Iterable[ColumnOf]) -> list[Column]:
    """What columns are called."""
    return [Column(key=one.key, title=one.title, kind=one.kind, help=one.help, rank=one.rank) for one in columns]


def _own_place(row: Any) -> tuple[str, int]:
    return getattr(row, "file", ""), getattr(row, "line", 0)


def share_column(field: str, whole: int, explained: str) -> ColumnOf:
    """The column of a field's part of a whole; the part of nothing is none."""
    return ColumnOf("share", "share", "share", lambda row: getattr(row, field) / whole if whole else None, explained)


def where(profile: Profile, title: str = "line", none: str = "(no user line)", rank: int = 0) -> ColumnOf:
    """The column of places: `net.py:42`."""
    root = profile.trace.project_root

    def place(row: Any) -> str:
        return place_words(row.file, row.line, root) if getattr(row, "file", "") else none

    return ColumnOf("place", title, "place", place, "", rank)

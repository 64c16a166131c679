"""What questions and answers are made of: structs that JSON has in camel case, tables of records, and the pages' words.

`vscode-extension/contract.py` makes TypeScript of every struct that a question (`application.py`) takes or is answered
with, so that the pages and this package cannot differ.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

import msgspec

from deepscope.printable import clipped, printable
from deepscope.quantities import spaced
from deepscope.records import Profile
from deepscope.records.source_files import base_name, short_path
from deepscope.report.table_column import ColumnOf, Unit

CellKind = Unit


class Question(msgspec.Struct, kw_only=True, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What a page asks; each field is a word of the query."""


class PageAnswer(msgspec.Struct, kw_only=True, rename="camel"):
    """An answer, or a part of one."""


class Choice(Question, kw_only=True, frozen=True):
    """Which profile: all else is its training stage, all ranks merged, all steps."""

    run: str = ""
    """As `Run.id` has it; "" for the newest."""
    rank: int | None = None
    stage: str | None = None
    step: int | None = None
    phase: str = ""
    module: str = ""


class AtLine(PageAnswer):
    """Something that is of a line of code; the base of such answers."""

    file: str
    """As recorded; "" where no line is known."""
    line: int
    place: str
    function: str


class Fact(PageAnswer):
    """One thing that is known."""

    label: str
    value: str


class Figure(PageAnswer):
    """A number with its name."""

    label: str
    value: int | float
    kind: CellKind
    help: str = ""
    """What it means, in a sentence."""


class Column(PageAnswer):
    """A column of a table."""

    key: str
    """The same in every version: what addresses and exports call it."""
    title: str
    kind: CellKind
    help: str = ""
    rank: int = 0
    """0 for what is always shown; where there is little room, those with the largest leave first."""


class Table(PageAnswer):
    """Rows of cells."""

    id: str
    title: str
    columns: list[Column]
    rows: list[list[str | int | float | None]]
    files: list[str]
    """Paths as recorded, which `places` counts through."""
    places: list[list[int]]
    """Of each row the file's number and the line; `[-1, 0]` for no line."""
    parents: list[int] = []
    """Of each row the row that it is below, -1 for none, each after its parent; empty where the rows are no tree."""
    keys: list[str] = []
    """Of each row the word by which addresses and questions name it; empty where none is asked for by itself."""
    left_out: int = 0
    """Rows beyond the limit."""


def encoded(answer: Any) -> bytes:
    """An answer as JSON. What is no Unicode (undecodable bytes of a path) is U+FFFD, as in a browser's addresses."""
    try:
        return msgspec.json.encode(answer)
    except UnicodeEncodeError:
        import json

        text = json.dumps(msgspec.to_builtins(answer), ensure_ascii=False, separators=(",", ":"))
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


CounterUnit = Literal["bytes", "percent", "count", "bytesPerSecond", "perSecond", "watts", "megahertz", "celsius"]

_UNITS: dict[str, CounterUnit] = {
    "%": "percent",
    "B": "bytes",
    "B/s": "bytesPerSecond",
    "1/s": "perSecond",
    "W": "watts",
    "MHz": "megahertz",
    "°C": "celsius",
}


def unit_named(unit: str) -> CounterUnit:
    """The unit of a counter of `trace.format.counters`."""
    return _UNITS.get(unit, "count")


_LONGEST = 300
"""Letters of a name that are shown in a table or a list."""
_LONGEST_PATH = 36
"""Letters of a path that is shown whole."""


def word(text: str, longest: int = _LONGEST) -> str:
    """A name as the pages show it."""
    return clipped(text, longest)


def title_of(profile: Profile) -> str:
    """The program that ran; else the trace's own name."""
    info = profile.trace
    return word(info.program or base_name(info.path))


def file_name(path: str, root: str) -> str:
    """A file as people call it: from the project's root."""
    return word(short_path(path, root))


def whole_place(path: str, line: int, root: str) -> str:
    """A line as people call it, its path whole: `models/net.py:42`."""
    return f"{file_name(path, root)}:{line}"


def place_words(path: str, line: int, root: str) -> str:
    """A line as people call it: `net.py:42`; of a long path the end, behind `…`. "" for none."""
    return short_place(f"{short_path(path, root)}:{line}") if path else ""


def short_place(place: str) -> str:
    """A place whose path is cut to its end, behind `…`, where it is long."""
    path, colon, line = place.rpartition(":")
    name = printable(path).replace("\\", "/")
    if len(name) > _LONGEST_PATH:
        last = name.split("/")[-2:]
        ending = "/".join(last) if len(last[0]) + len(last[-1]) < _LONGEST_PATH else last[-1]
        name = f"…/{ending}" if len(ending) <= 2 * _LONGEST_PATH else f"…{ending[-2 * _LONGEST_PATH :]}"
    return f"{name}{colon}{line}"


def in_page_words(text: str) -> str:
    """A sentence of the terminal's as the pages have it: `12.4 ms`, `38 %`."""
    return spaced(printable(text))


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
        columns: the first one names the row; those without a title are for terminals alone.
        rows: records, the first of which are shown.
        parents: of a tree, for each row the row that it is below, -1 for none.
        keys: a row's word for addresses, where rows are asked for one by one.
        place: a row's file and line; its own by default.
        limit: how many rows.
    """
    columns = [one for one in columns if one.title]
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
        rows=[[_shown(columns[at], row[at]) for at in used] for row in cells],
        files=list(files),
        places=places,
        parents=list(parents[:limit]),
        keys=[] if keys is None else [keys(row) for row in shown],
        left_out=len(rows) - len(shown),
    )


def described(columns: Iterable[ColumnOf]) -> list[Column]:
    """What columns are called."""
    return [Column(key=one.key, title=word(one.title), kind=one.kind, help=one.help, rank=one.rank) for one in columns]


def _shown(column: ColumnOf, value: str | float | None) -> str | float | None:
    if not isinstance(value, str):
        return value
    if column.kind == "place" and column.least:
        return short_place(value)
    return in_page_words(value) if column.is_numeric else word(value)


def _own_place(row: Any) -> tuple[str, int]:
    return getattr(row, "file", ""), getattr(row, "line", 0)

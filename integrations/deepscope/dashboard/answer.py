"""What questions and answers are made of: structs that JSON has in camel case, and the units of their numbers.

`vscode-extension/contract.py` makes TypeScript of every struct that a question (`application.py`) takes or is answered
with, so that the pages and this package cannot differ.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from deepscope.report.table_column import Unit

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

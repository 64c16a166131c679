"""Where a recorded line is on this machine, as every answer says it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypedDict

from deepscope.records import Line

Locate = Callable[[str, int], "tuple[str, int] | None"]
"""A recorded file and line → URI and line now; None where the file is not here."""


class PlaceFields(TypedDict):
    """The fields of `answers.SourceLocation`."""

    function: str
    file: str
    line: int
    uri: str | None
    current_line: int | None


def place_fields(line: Line, locate: Locate, *, file: str | None = None, number: int | None = None) -> PlaceFields:
    """A line's place; `file` and `number` where it stands elsewhere than its record says."""
    file, number = line.file if file is None else file, line.line if number is None else number
    uri, current_line = locate(file, number) or (None, None)
    return PlaceFields(function=line.function, file=file, line=number, uri=uri, current_line=current_line)

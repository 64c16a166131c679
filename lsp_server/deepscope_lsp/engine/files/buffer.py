"""The text of an open document, line by line, edited in place."""

from __future__ import annotations

import re
from dataclasses import dataclass

from deepscope.trace.source_lines import source_lines

_END = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class Splice:
    """An edit as whole lines: from line `start` on, `removed` became the `inserted` lines that stand there now."""

    start: int
    removed: list[str]
    inserted: int


class Buffer:
    """Lines of a text; a line counts from 1, a column is a number of code points from 0.

    How each line ends is kept beside it: a `\\r` that comes to stand before a `\\n` makes one end of two characters.
    """

    def __init__(self, text: str) -> None:
        self.lines = source_lines(text)
        self._ends = _ends(text)

    def set_text(self, text: str) -> Splice:
        """Replaces everything; only what differs counts as changed."""
        removed = self.lines[:]
        self.lines[:] = source_lines(text)
        self._ends = _ends(text)
        return Splice(1, removed, len(self.lines))

    def replace(self, start: tuple[int, int], end: tuple[int, int], text: str) -> Splice:
        """Replaces the text between two (line, column) places; places outside the text are taken to its nearest end."""
        first, first_column = self._clamp(*start)
        last, last_column = self._clamp(*end)
        last, last_column = max((last, last_column), (first, first_column))
        last_end = self._ends[last - 1]
        fresh_text = self.lines[first - 1][:first_column] + text + self.lines[last - 1][last_column:] + last_end
        if first > 1 and self._ends[first - 2] == "\r" and fresh_text.startswith("\n"):
            self._ends[first - 2] = "\r\n"
            fresh_text = fresh_text[1:]
        fresh, ends = source_lines(fresh_text), _ends(fresh_text)
        if last_end:  # what follows it is the next line, which stays
            fresh.pop()
            ends.pop()
        removed = self.lines[first - 1 : last]
        self.lines[first - 1 : last] = fresh
        self._ends[first - 1 : last] = ends
        return Splice(first, removed, len(fresh))

    def line(self, number: int) -> str:
        """The text of a line; "" outside the text."""
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""

    def _clamp(self, line: int, column: int) -> tuple[int, int]:
        if line > len(self.lines):
            return len(self.lines), len(self.lines[-1])
        if line < 1:
            return 1, 0
        return line, min(max(column, 0), len(self.lines[line - 1]))


def _ends(text: str) -> list[str]:
    """How each line ends; "" for the last."""
    if "\r" not in text:
        return ["\n"] * text.count("\n") + [""]
    return [*_END.findall(text), ""]

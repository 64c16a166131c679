"""Source files: their URIs, the text of one that is open, and where recorded lines stand in those on disk.

Files on disk may have changed since they ran. Names that are not UTF-8 survive the way to a URI and back.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from deepscope.records.source_files import source_lines
from deepscope.remap import LineMap

READ_LIMIT_BYTES = 16 << 20

Stamp = tuple[int, int]


class UnopenedFiles:
    """Line maps from recorded texts to files on disk, each made anew when its file has changed."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Stamp, LineMap | None]] = {}

    def map_of(self, path: str, recorded: Sequence[str]) -> LineMap | None:
        """The map of the text that ran onto a file as it is now; None where either is not known."""
        stamp = _stamp(path)
        if stamp is None or not recorded:
            return None
        known = self._known.get(path)
        if known is None or known[0] != stamp:
            lines = lines_on_disk(path)
            known = self._known[path] = stamp, None if lines is None else LineMap(recorded, lines)
        return known[1]


def lines_on_disk(path: str | None) -> list[str] | None:
    """The lines of a file; None where it is too large or cannot be read."""
    if path is None:
        return None
    try:
        if os.path.getsize(path) > READ_LIMIT_BYTES:  # noqa: PTH202 - the path may hold what `Path` refuses
            return None
        return source_lines(Path(path).read_bytes().decode("utf-8", "replace"))
    except (OSError, ValueError):
        return None


def _stamp(path: str) -> Stamp | None:
    try:
        status = os.stat(path)  # noqa: PTH116 - as above; asked for every file of a profile at every answer
    except (OSError, ValueError):
        return None
    return (status.st_size, status.st_mtime_ns) if stat.S_ISREG(status.st_mode) else None


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


_DRIVE = re.compile(r"^/[A-Za-z]:")


def to_path(uri: str) -> str | None:
    """The absolute path of a `file:` URI; None for any other (a cell of a notebook, an unsaved text)."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    if parts.scheme != "file":
        return None
    path = unquote(parts.path, errors="surrogateescape")
    if "\0" in path:
        return None
    if parts.netloc and parts.netloc != "localhost":
        path = f"//{parts.netloc}{path}"
    elif _DRIVE.match(path):
        path = path[1:]
    return os.path.normpath(path)


def to_uri(path: str) -> str:
    """The URI of an absolute path."""
    return Path(path).as_uri()

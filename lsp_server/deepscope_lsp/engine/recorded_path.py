"""Paths as some machine wrote them, compared part by part whatever system they come from."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePosixPath, PureWindowsPath
from typing import TypedDict

from deepscope.records import Line

_WINDOWS = re.compile(r"^(?:[A-Za-z]:[\\/]|\\\\)")


@dataclass(frozen=True, slots=True)
class RecordedPath:
    """The parts of a path, the root first; compared without case where Windows wrote it."""

    parts: tuple[str, ...]
    is_windows: bool

    @property
    def folded(self) -> tuple[str, ...]:
        """The parts as they are compared."""
        return tuple(part.casefold() for part in self.parts) if self.is_windows else self.parts

    def below(self, root: RecordedPath) -> tuple[str, ...] | None:
        """The parts after `root`; None if it is not above this path."""
        size = len(root.parts)
        return self.parts[size:] if size and self.folded[:size] == root.folded else None

    def common_suffix(self, other: RecordedPath) -> int:
        """How many parts both end with."""
        if self.is_windows or other.is_windows:
            mine, others = [[part.casefold() for part in path.parts] for path in (self, other)]
        else:
            mine, others = list(self.parts), list(other.parts)
        count = 0
        for one, two in zip(reversed(mine), reversed(others), strict=False):
            if one != two:
                break
            count += 1
        return count


@lru_cache(maxsize=4096)
def parts_of(path: str) -> RecordedPath:
    """A path taken apart: `C:\\…`, `C:/…` and `\\\\host\\…` are Windows's, all others POSIX's."""
    if _WINDOWS.match(path):
        return RecordedPath(PureWindowsPath(path).parts, is_windows=True)
    return RecordedPath(PurePosixPath(path).parts, is_windows=False)


_TOOL_FOLDERS = frozenset(
    {"build", "dist", "site-packages", "dist-packages", "venv", "node_modules", "__pycache__", "egg-info"}
)
"""Folders that tools fill, beside all hidden ones (`.venv`, `.tox`, `.ipynb_checkpoints`)."""


def is_copy(path: str, roots: Iterable[str]) -> bool:
    """Whether a file lies in a folder that a tool has filled; where the workspace itself lies says nothing."""
    file = parts_of(path)
    inside = [rest for root in roots if (rest := file.below(parts_of(root))) is not None]
    folders = min(inside, key=len)[:-1] if inside else file.parts[:-1]
    return any(_is_filled_by_tools(part) for part in folders)


def source_parts(path: str) -> tuple[str, ...]:
    """The parts of the path that a copy shares with its source: what follows `build/lib` or `site-packages`."""
    parts = parts_of(path).parts
    last = max((place for place, part in enumerate(parts[:-1]) if _is_filled_by_tools(part)), default=None)
    if last is None:
        return ()
    rest = parts[last + 1 :]
    return rest[1:] if parts[last] == "build" and len(rest) > 1 and rest[0].partition(".")[0] == "lib" else rest


def _is_filled_by_tools(part: str) -> bool:
    return part in _TOOL_FOLDERS or (part.startswith(".") and part not in {".", ".."})


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

"""Lines of user code by number, as the account of an audit has them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence, Set
from typing import NamedTuple

from deepscope.capture.audit.call_paths import PathEntry
from deepscope.capture.lines import UserCode

Path = tuple[PathEntry, ...]
"""The lines that a call comes through, the outermost first."""
_MOST_OF = 0.8
"""A line stands for what most of some operators were called from."""


class FoundPlace(NamedTuple):
    """A line with the path of its file."""

    file: str
    line: int
    function: str


class Places:
    """The places that were asked for, each once."""

    def __init__(self) -> None:
        self.all: list[FoundPlace] = []
        self._numbers: dict[FoundPlace, int] = {}

    def number_of(self, entry: PathEntry) -> int:
        """The number of the line that an entry of a path is at."""
        code, line = entry
        place = FoundPlace(UserCode.real_path(code.co_filename), line, getattr(code, "co_qualname", code.co_name))
        number = self._numbers.get(place)
        if number is None:
            number = self._numbers[place] = len(self.all)
            self.all.append(place)
        return number


def wholly(calls: Iterable[tuple[Path, bool]]) -> set[Path]:
    """Of call paths, each with whether something holds there: the beginnings below which it holds everywhere."""
    beginnings: dict[Path, bool] = {}
    for path, holds in calls:
        for length in range(1, len(path) + 1):
            beginnings[path[:length]] = holds and beginnings.get(path[:length], True)
    return {path for path, holds in beginnings.items() if holds}


def outermost_of(path: Path, beginnings: Set[Path]) -> Path:
    """The shortest beginning of a path that is one of `beginnings`; the path itself where none is."""
    return next((path[:length] for length in range(1, len(path)) if path[:length] in beginnings), path)


def common_call(paths: Iterable[Sequence[PathEntry]]) -> Path:
    """The longest way, from the outermost line on, that most of some call paths share."""
    left = [tuple(path) for path in paths]
    enough = max(_MOST_OF * len(left), 1)
    found: list[PathEntry] = []
    while left:
        following = Counter(path[len(found)] for path in left if len(path) > len(found))
        if not following:
            break
        entry, count = following.most_common(1)[0]
        if count < enough:
            break
        found.append(entry)
        left = [path for path in left if len(path) >= len(found) and path[len(found) - 1] == entry]
    return tuple(found)

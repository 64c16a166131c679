"""A recorded file as it is here, and where its lines stand in it now."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from deepscope.remap import LineMap
from deepscope_lsp.answers import Standing
from deepscope_lsp.engine.places import Locate

LINE_LIMIT = 2**31 - 1
"""The protocol has no line beyond."""


@dataclass(frozen=True, slots=True)
class FileHere:
    """An open document, or a file on disk."""

    uri: str
    map: LineMap | None
    """None where the text that ran is not known: then lines stand where they were recorded."""

    def near(self, line: int) -> int:
        """Where a recorded line stands now; where it is gone, the line above its place."""
        if self.map is not None:
            return self.map.near(line)
        return min(max(line, 1), LINE_LIMIT)  # torch has frames in line 0, and a trace may name any other

    def standing(self, line: int) -> Standing:
        """Whether that is the line itself."""
        if self.map is None or self.map.line_of(line) is not None:
            return "same"
        return "gone" if self.map.edited_line_of(line) is None else "edited"


def locate_in(files: Callable[[str], FileHere | None]) -> Locate:
    """Where lines of these files stand."""

    def place(recorded: str, line: int) -> tuple[str, int] | None:
        here = files(recorded)
        return None if here is None else (here.uri, here.near(line))

    return place

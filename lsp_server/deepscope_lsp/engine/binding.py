"""A recorded file and the buffer that it is now: which line shows which number."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from pathlib import Path

from deepscope.records import Line, Profile
from deepscope.records.source_files import source_lines
from deepscope.remap import LineMap
from deepscope.remap.diff import is_same_text
from deepscope_lsp.answers import Standing
from deepscope_lsp.engine.path_map import Locate
from deepscope_lsp.engine.profile_index import FileIndex, ProfileIndex
from deepscope_lsp.engine.source_files import Buffer, Splice, lines_on_disk


@dataclass(frozen=True, slots=True)
class ShownLine:
    """One measured line as it stands in the buffer."""

    line: int
    """In the buffer, from 1."""
    record: Line
    mark: Mark


@dataclass(frozen=True, slots=True)
class Binding:
    """A document's place in a profile."""

    index: ProfileIndex
    file: FileIndex
    map: LineMap
    mark: Mark
    """Of all numbers of the file."""
    recorded_lines: tuple[str, ...]

    @property
    def may_be_what_ran(self) -> bool:
        """Whether an edit has given the text the recorded hash since it was bound; then it is to be bound anew."""
        source = self.index.profile.files.get(self.file.path)
        return self.mark is Mark.OTHER_TEXT and source is not None and is_same_text(source, self.map.lines)

    def recorded_line(self, line: int) -> int | None:
        """The recorded line that a current line is, unchanged or edited; None for one that was not there."""
        return self.map.recorded_line(line) or self.map.changed_between(line, line).get(line)

    def spliced(self, splice: Splice) -> None:
        """Follows an edit of the buffer."""
        self.map.spliced(splice.start, splice.removed, splice.inserted)

    def shown_between(self, first: int, last: int, *, with_changed: bool) -> list[ShownLine]:
        """The measured lines from `first` to `last`, in order; those known to have another text only `with_changed`."""
        if self.mark is Mark.OTHER_TEXT and not with_changed:
            return []
        shown = []
        for line in range(first, last + 1):
            home = self.map.recorded_line(line)
            if home is not None and (record := self.file.lines.get(home)) is not None:
                shown.append(ShownLine(line, record, self.mark))
        if with_changed:
            for line, home in self.map.changed_between(first, last).items():
                if (record := self.file.lines.get(home)) is not None:
                    shown.append(ShownLine(line, record, Mark.EDITED))
            shown.sort(key=lambda one: one.line)
        return shown

    def shown_at(self, line: int, *, with_changed: bool) -> ShownLine | None:
        """What is measured of one line."""
        found = self.shown_between(line, line, with_changed=with_changed)
        return found[0] if found else None


def bind(index: ProfileIndex, recorded: str, buffer: Buffer, path: str | None) -> Binding:
    """Joins a buffer to a recorded file.

    Where the trace has no text, the file on disk stands for it (or the buffer, if its hash is the recorded one), unless
    its hash says otherwise or it was written after the trace: then every number is marked.
    """
    lines, mark = _recorded_text(index.profile, recorded, buffer, path)
    return Binding(index, index.files[recorded], LineMap(lines, buffer.lines), mark, tuple(lines))


def _recorded_text(profile: Profile, recorded: str, buffer: Buffer, path: str | None) -> tuple[list[str], Mark]:
    source = profile.files.get(recorded)
    if source is not None and source.text is not None:
        return source_lines(source.text), Mark.NONE
    on_disk = lines_on_disk(path)
    if on_disk is None:
        on_disk, path = list(buffer.lines), None
    if source is None or not source.sha256:
        return on_disk, Mark.NONE if _is_older(path, profile) else Mark.UNVERIFIED
    for lines in (on_disk, buffer.lines):
        if is_same_text(source, lines):
            return list(lines), Mark.NONE
    return on_disk, Mark.OTHER_TEXT


def _is_older(path: str | None, profile: Profile) -> bool:
    """Whether a file was last written before the trace was recorded."""
    recorded_at = _recorded_at(profile)
    if path is None or recorded_at is None:
        return False
    try:
        return Path(path).stat().st_mtime <= recorded_at
    except (OSError, ValueError):
        return False


def _recorded_at(profile: Profile) -> float | None:
    """Seconds since the epoch; the trace's own time, else that of its file."""
    try:
        return datetime.fromisoformat(profile.trace.recorded_at.replace("Z", "+00:00")).timestamp()
    except ValueError:
        pass
    try:
        return os.stat(profile.trace.path).st_mtime  # noqa: PTH116 - may be a URL
    except (OSError, ValueError):
        return None


class Mark(Enum):
    """Why a number may not be the line's own; the value is the word that stands beside it."""

    NONE = ""
    EDITED = "edited"
    """The line was changed since it was measured."""
    UNVERIFIED = "file newer than trace"
    """The trace has no text of the file, and the file was written after it."""
    OTHER_TEXT = "file changed since"
    """The trace has no text of the file, and its hash is not that of the text now."""


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

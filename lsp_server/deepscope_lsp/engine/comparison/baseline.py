"""Another profile to compare with: each line's partner in it, found by the text that ran."""

from __future__ import annotations

from deepscope.records import Function, Line
from deepscope.remap import LineMap
from deepscope.remap.diff import match_indented
from deepscope.trace.source_lines import source_lines
from deepscope_lsp.engine.files.path_map import PathMap
from deepscope_lsp.engine.profile.profile_index import FileIndex, ProfileIndex

__all__ = ["Baseline"]

Partners = tuple[FileIndex, "dict[int, int] | None"]
"""The older file, and current line → its line there (None: the same numbers)."""


class Baseline:
    """An older profile beside the current one."""

    def __init__(self, index: ProfileIndex, current: ProfileIndex) -> None:
        self.index = index
        self._current = current
        root = current.profile.trace.project_root
        self._paths = PathMap(
            files={path: index.profile.files.get(path) for path in index.files},
            project_root=index.profile.trace.project_root,
            roots=[root] if root else [],
        )
        self._partners: dict[str, Partners | None] = {}

    def line(self, file: str, line: int) -> Line | None:
        """The older record of a line of the current profile; None where it was not measured."""
        found = self._file(file)
        if found is None:
            return None
        old_file, lines = found
        return old_file.lines.get(line if lines is None else lines.get(line, 0))

    def function(self, function: Function) -> Function | None:
        """The older record of a function of the current profile, by its file and qualified name."""
        found = self._file(function.file)
        if found is None:
            return None
        return next((one for one in found[0].functions.values() if one.function == function.function), None)

    def own_ns(self, file: str, line: int) -> float:
        """Own device time per step and rank that the line had; 0 where it was not measured."""
        old = self.line(file, line)
        return 0.0 if old is None else self.index.scales.per_step(old.self_device_ns)

    def vanished(self) -> list[Line]:
        """Older lines with device time of their own that no line is today; the largest first."""
        kept: set[tuple[str, int]] = set()
        for file, now in self._current.files.items():
            if (partners := self._file(file)) is not None:
                old_file, lines = partners
                working = (number for number, record in now.lines.items() if record.self_device_ns)
                kept.update((old_file.path, number if lines is None else lines.get(number, 0)) for number in working)
        gone = [
            line
            for file in self.index.files.values()
            for line in file.lines.values()
            if line.self_device_ns and (line.file, line.line) not in kept
        ]
        return sorted(gone, key=lambda line: -line.self_device_ns)

    def place_now(self, line: Line) -> tuple[str, int]:
        """Where an older line would stand in the current profile: file and line as recorded there."""
        for file in self._current.files:
            partners = self._file(file)
            if partners is not None and partners[0].path == line.file:
                old, new = self.index.lines_of_text(line.file), self._current.lines_of_text(file)
                return file, LineMap(old, new).near(line.line) if old and new else line.line
        return line.file, line.line

    def _file(self, file: str) -> Partners | None:
        if file not in self._partners:
            self._partners[file] = self._find_partners(file)
        return self._partners[file]

    def _find_partners(self, file: str) -> Partners | None:
        new = self._current.profile.files.get(file)
        lines = source_lines(new.text) if new is not None and new.text is not None else []
        recorded = self._paths.match(file, lines).recorded
        if recorded is None:
            return None
        old = self.index.profile.files.get(recorded)
        if old is None or old.text is None or not lines:
            return self.index.files[recorded], None
        origin = match_indented(source_lines(old.text), lines)
        return self.index.files[recorded], {place: home + 1 for place, home in enumerate(origin, 1) if home >= 0}

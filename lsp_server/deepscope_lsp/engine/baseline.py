"""Another profile to compare with: each line's partner in it, and whether their difference is more than noise."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from typing import Literal

from deepscope.comparison import Comparison, Difference, compare
from deepscope.comparison.pairing import is_same_code, pair_files, pair_lines, shared_lines
from deepscope.records import Function, Line, cost_ns
from deepscope.remap import LineMap
from deepscope.report.comparison_report import strangers_words
from deepscope_lsp.engine.profile_index import FileIndex, ProfileIndex

Noise = Literal["within", "beyond", "unknown"]
"""What a difference is: no more than what the same code differs by, more, or nothing tells."""


class Baseline:
    """An older profile beside the current one."""

    def __init__(self, index: ProfileIndex, current: ProfileIndex) -> None:
        self.index = index
        self._current = current
        old, new = index.profile.lines, current.profile.lines
        pairs = pair_lines(index.profile, current.profile)
        self._partners = {
            (new[there].file, new[there].line): (old[here].file, old[here].line) for here, there in pairs.items()
        }
        self._kept = {(old[here].file, old[here].line) for here, there in pairs.items() if cost_ns(new[there])}
        self._files = {new: old for old, new in pair_files(index.profile, current.profile).items()}
        self._user_files = {line.file for line in new}
        self._maps: dict[str, LineMap | None] = {}

    @cached_property
    def comparison(self) -> Comparison | None:
        """The lines of both by their cost; None where only one of them has a device."""
        if self.index.profile.metric != self._current.profile.metric:
            return None
        return compare([self.index.profile], [self._current.profile], number="cost")

    @cached_property
    def is_same_code(self) -> bool | None:
        """Whether both runs ran the same code; None where it is not known."""
        return is_same_code(self.index.profile, self._current.profile)

    @cached_property
    def shared_lines(self) -> float | None:
        """The part of their lines that both runs have; None where it is not known."""
        return shared_lines(self.index.profile, self._current.profile)

    @cached_property
    def strangers_words(self) -> str:
        """`these runs share 3% of their lines: …`, as the terminal says it; "" where they share most."""
        return strangers_words(self.index.profile, self._current.profile, self.shared_lines)

    def line(self, file: str, line: int) -> Line | None:
        """The older record of a line of the current profile; None where it was not measured."""
        place = self._partners.get((file, line))
        if place is None and file not in self._user_files:
            place = file, line  # a library's: of these there are no texts
        old = None if place is None else self.index.files.get(place[0])
        return old.lines.get(place[1]) if old is not None and place is not None else None

    def function(self, function: Function) -> Function | None:
        """The older record of a function of the current profile, by its file and qualified name."""
        found = self._file(function.file)
        if found is None:
            return None
        return next((one for one in found.functions.values() if one.function == function.function), None)

    def cost_per_step_ns(self, file: str, line: int) -> float:
        """What the line cost in a step of a rank; 0 where it was not measured."""
        old = self.line(file, line)
        return 0.0 if old is None else self.index.scales.costs.per_step_ns(old)

    def noise(self, file: str, line: int) -> Noise:
        """What the difference of a line of the current profile is."""
        return _noise_of(self._differences.get((file, line), []))

    def function_noise(self, function: Function) -> Noise:
        """What the difference of a function is: more than noise if that of a line of it is."""
        return _noise_of(
            [one for rows in self._differences.values() for one in rows
             if one.name == function.function and one.after is not None and one.after.record.file == function.file]
        )  # fmt: skip

    def vanished(self) -> list[Line]:
        """Older lines with a cost that no line is today; the largest first. What may be noise is not
        among them."""
        rows = self.comparison.rows if self.comparison is not None else []
        noise = {
            (one.before.record.file, one.before.record.line)
            for one in rows
            if one.before is not None and one.interval is not None and one.within_noise
        }
        gone = [
            line
            for file in self.index.files.values()
            for line in file.lines.values()
            if cost_ns(line) and not {(line.file, line.line)} & (self._kept | noise)
        ]
        return self.index.scales.costs.ranked(gone)

    def place_now(self, line: Line) -> tuple[str, int]:
        """Where an older line would stand in the current profile: file and line as recorded there."""
        for file in self._current.files:
            if self._files.get(file, file) == line.file:
                lines = self._map_to(file, line.file)
                return file, line.line if lines is None else lines.near(line.line)
        return line.file, line.line

    def _map_to(self, file: str, old_file: str) -> LineMap | None:
        """From an older file's text onto that of the file today; None where either is not known."""
        if file not in self._maps:
            old, new = self.index.lines_of_text(old_file), self._current.lines_of_text(file)
            self._maps[file] = LineMap(old, new) if old and new else None
        return self._maps[file]

    @cached_property
    def _differences(self) -> dict[tuple[str, int], list[Difference]]:
        """By the line of the current profile, which may have several records."""
        found: dict[tuple[str, int], list[Difference]] = defaultdict(list)
        for one in self.comparison.rows if self.comparison is not None else ():
            if one.after is not None:
                found[one.after.record.file, one.after.record.line].append(one)
        return found

    def _file(self, file: str) -> FileIndex | None:
        return self.index.files.get(self._files.get(file, file))


def _noise_of(differences: list[Difference]) -> Noise:
    if any(not one.within_noise for one in differences):
        return "beyond"
    return "within" if differences and all(one.interval is not None for one in differences) else "unknown"

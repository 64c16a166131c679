"""Which recorded file a local file is, and where a recorded file lies here: the trace may come from another machine.

In this order, the first that answers wins:

1. `deepscope.pathMappings` of the settings, then what was found or picked before.
2. The same path, links resolved.
3. The same place below the recorded project root and below a workspace folder.
4. The same content, whatever the name.
5. The longest common end of the paths, if the texts are alike (or the trace has none).
6. A renamed and edited file: most of the recorded lines stand in it, and of no other file so many.

Two candidates that fare alike are never chosen between: the answer names both. A notebook's cell has no path: it is
known by its content, or as an edited one (IPython itself rewrites magics) by 6, if there is only one such.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import takewhile
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TypedDict

from deepscope.records import Line, SourceFile
from deepscope.remap.diff import is_same_text, shared_ratio
from deepscope_lsp.engine.source_files import lines_on_disk

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
        pairs: Iterable[tuple[str, str]] = zip(reversed(self.parts), reversed(other.parts), strict=False)
        if self.is_windows or other.is_windows:
            pairs = ((mine.casefold(), its.casefold()) for mine, its in pairs)
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


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


def _source_parts(path: str) -> tuple[str, ...]:
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


ALIKE_RATIO = 0.3
"""So many of the recorded lines make a file of the same name the recorded one."""
RENAMED_RATIO = 0.6
"""So many of the recorded lines make a file of another name the recorded one."""
COMMON_NAMES = frozenset({"__init__.py", "__main__.py", "main.py", "setup.py", "conftest.py"})
"""Names that say nothing by themselves."""


@dataclass(frozen=True, slots=True)
class FileMatch:
    """Which recorded file a local one is; `candidates` where only a person can tell."""

    recorded: str | None
    candidates: tuple[str, ...] = ()


NONE = FileMatch(None)


@dataclass
class PathMap:
    """Recorded paths and local ones, for one profile and one set of workspace folders."""

    files: Mapping[str, SourceFile | None]
    """Every file of user code in the profile; None where nothing but its name is known."""
    project_root: str
    """As recorded; "" where unknown."""
    roots: Sequence[str]
    """The workspace folders, absolute."""
    prefixes: dict[str, str] = field(default_factory=dict)
    """Recorded folder or file → local one, from the settings and from before."""
    _known: dict[str, str | None] = field(default_factory=dict)

    def match(self, path: str | None, lines: Sequence[str]) -> FileMatch:
        """The recorded file that an open file is.

        Args:
            path: absolute; None for what is no file (a notebook's cell), which is known by its content alone.
            lines: its text now.
        """
        if path is None:
            match = self._by_content(None, lines)
            return match if match != NONE else FileMatch(self._by_likeness(lines).recorded)
        for recorded in (self._by_prefix(path), self._by_path(path), self._by_root(path)):
            if recorded is not None:
                return FileMatch(recorded)
        for match in (self._by_content(path, lines), self._by_suffix(path, lines), self._by_likeness(lines)):
            if match != NONE:
                return match
        return NONE

    def bind(self, recorded: str, path: str) -> dict[str, str]:
        """Takes a match as true from now on; answers the folders that it teaches (or the file itself), to remember."""
        self._known.clear()
        if self._is_another_file(recorded, path):
            return {}  # a copy of a file that is still where it was: links to that one stay
        self._known[recorded] = path
        left, right = parts_of(recorded), parts_of(path)
        same = left.common_suffix(right)
        if left == right:
            return {}
        if same and len(left.parts) > same and len(right.parts) > same:
            lesson = {_joined(left, len(left.parts) - same): _joined(right, len(right.parts) - same)}
        else:
            lesson = {recorded: path}
        self.prefixes.update(lesson)
        return lesson

    def mapping_to(self, recorded: str, folder: str) -> dict[str, str]:
        """The mapping by which a recorded file is found in a folder: as much of its path as stands there; or none."""
        path = parts_of(recorded)
        for start in range(1, len(path.parts)):
            if _is_file(_below(folder, path.parts[start:])):
                return {_joined(path, start): folder}
        return {}

    def local(self, recorded: str) -> str | None:
        """Where a recorded file lies here; None where it is not found, or found twice."""
        known = self._known.get(recorded)
        if recorded not in self._known or (known is not None and not _is_file(known)):  # moved away since
            self._known[recorded] = self._find_local(recorded)
        return self._known[recorded]

    def _by_prefix(self, path: str) -> str | None:
        local = parts_of(path)
        for recorded_prefix, local_prefix in self._longest_prefixes():
            rest = local.below(parts_of(local_prefix))
            if rest is not None and (found := self._recorded_at(recorded_prefix, rest)) is not None:
                return found
        return None

    def _by_path(self, path: str) -> str | None:
        for candidate in dict.fromkeys([path, os.path.realpath(path)]):
            if (found := self._recorded_at(candidate, ())) is not None:
                return found
        return None

    def _by_root(self, path: str) -> str | None:
        if not self.project_root:
            return None
        for root in self.roots:
            for folder, file in ((root, path), (os.path.realpath(root), os.path.realpath(path))):
                rest = parts_of(file).below(parts_of(folder))
                found = None if rest is None else self._recorded_at(self.project_root, rest)
                if found is not None and not self._is_another_file(found, path):
                    return found
        return None

    def _recorded_at(self, folder: str, rest: tuple[str, ...]) -> str | None:
        base = parts_of(folder)
        wanted = RecordedPath((*base.parts, *rest), base.is_windows).folded
        return next((file for file in self.files if parts_of(file).folded == wanted), None)

    def _by_content(self, path: str | None, lines: Sequence[str]) -> FileMatch:
        if not any(line.strip() for line in lines):
            return NONE  # empty files are all alike
        same = [file for file, source in self.files.items() if source is not None and is_same_text(source, lines)]
        if len(same) > 1 and path is not None:
            same = _longest_suffix(same, parts_of(path))[1]
        return _one_or_all(same)

    def _by_suffix(self, path: str, lines: Sequence[str]) -> FileMatch:
        local = parts_of(path)
        elsewhere = [file for file in self.files if not self._lies_here(file)]
        length, best = _longest_suffix(elsewhere, local)
        if not length or (length == 1 and local.parts[-1].casefold() in COMMON_NAMES):
            return NONE
        texts = {file: source.text for file in best if (source := self.files[file]) is not None}
        alike = [
            file for file in best if texts.get(file) is None or shared_ratio(texts[file] or "", lines) >= ALIKE_RATIO
        ]
        return _one_or_all(alike)

    def _by_likeness(self, lines: Sequence[str]) -> FileMatch:
        alike = [
            file
            for file, source in self.files.items()
            if source is not None and source.text is not None and not self._lies_here(file)
            if shared_ratio(source.text, lines) >= RENAMED_RATIO
        ]
        return _one_or_all(alike)

    def _find_local(self, recorded: str) -> str | None:
        path = parts_of(recorded)
        for recorded_prefix, local_prefix in self._longest_prefixes():
            rest = path.below(parts_of(recorded_prefix))
            if rest is not None and _is_file(found := str(Path(local_prefix, *rest))):
                return found
        if self._lies_here(recorded):
            is_own = self.is_in_workspace(recorded) and not is_copy(recorded, self.roots)
            return recorded if is_own else self._source_of(recorded) or recorded
        below = path.below(parts_of(self.project_root)) if self.project_root else None
        for rest in [below, *(path.parts[start:] for start in range(1, len(path.parts)))]:
            for roots in (self.roots[:1], self.roots[1:]):  # the folder that the trace is of comes first
                found_here = {file for root in roots if rest and _is_file(file := _below(root, rest))}
                if len(found_here) == 1:
                    found = found_here.pop()
                    return self._source_of(recorded) or found if is_copy(found, self.roots) else found
                if found_here:
                    return None
        return None

    def _longest_prefixes(self) -> list[tuple[str, str]]:
        return sorted(self.prefixes.items(), key=lambda pair: -len(pair[0]))

    def _source_of(self, recorded: str) -> str | None:
        """The workspace's own file of what ran elsewhere on this machine, or in a build's or an installation's copy.

        It has the recorded text; None where there is none such, or several.
        """
        below = parts_of(recorded).below(parts_of(self.project_root)) if self.project_root else None
        source = self.files.get(recorded)
        if source is None:
            return None
        after = _source_parts(recorded)
        rests = [rest for rest in (below, after, ("src", *after) if after else None) if rest]
        for rest in rests:
            places = {_below(root, rest) for root in self.roots}
            found = [
                file for file in places if not is_copy(file, self.roots) and _is_file(file) and _has_text(file, source)
            ]
            if found:
                return found[0] if len(found) == 1 else None
        return None

    def is_in_workspace(self, path: str) -> bool:
        """Whether a file really lies below a workspace folder, links resolved."""
        real = os.path.realpath(path)
        return any(parts_of(real).below(parts_of(os.path.realpath(root))) is not None for root in self.roots)

    def _is_another_file(self, recorded: str, path: str) -> bool:
        """Whether the recorded file is known to be another one here, and this is a copy of it."""
        if is_copy(path, self.roots):
            return not _is_same_file(recorded, path)
        if self._lies_here(recorded) and self.is_in_workspace(recorded):
            return not is_copy(recorded, self.roots) and not _is_same_file(recorded, path)
        found = self._find_local(recorded)
        if found is None or _is_same_file(found, path) or not self.is_in_workspace(found):
            return False
        nearness = [parts_of(recorded).common_suffix(parts_of(one)) for one in (found, path)]
        return nearness[0] >= nearness[1] and self._reads_alike(found, recorded)

    def _reads_alike(self, path: str, recorded: str) -> bool:
        source = self.files.get(recorded)
        lines = lines_on_disk(path)
        if source is None or lines is None or (source.text is None and not source.sha256):
            return lines is not None
        return is_same_text(source, lines) or shared_ratio(source.text or "", lines) >= ALIKE_RATIO

    def _lies_here(self, recorded: str) -> bool:
        return os.path.isabs(recorded) and parts_of(recorded).is_windows == (os.sep == "\\") and _is_file(recorded)  # noqa: PTH117


def _has_text(file: str, source: SourceFile) -> bool:
    lines = lines_on_disk(file)
    return lines is not None and is_same_text(source, lines)


def _is_same_file(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)  # noqa: PTH121 - the path may hold what `Path` refuses
    except (OSError, ValueError):
        return False


def _longest_suffix(files: Sequence[str], local: RecordedPath) -> tuple[int, list[str]]:
    lengths = {file: parts_of(file).common_suffix(local) for file in files}
    longest = max(lengths.values(), default=0)
    return longest, [file for file, length in lengths.items() if length == longest]


def _one_or_all(files: Sequence[str]) -> FileMatch:
    if len(files) == 1:
        return FileMatch(files[0])
    return FileMatch(None, tuple(sorted(files)))


def _joined(path: RecordedPath, count: int) -> str:
    kind = PureWindowsPath if path.is_windows else PurePosixPath
    return str(kind(*path.parts[:count]))


def _below(root: str, rest: Sequence[str]) -> str:
    """A path below a root; a recorded `..` does not lead out of it."""
    return "" if ".." in rest else str(Path(root, *rest))


def _is_file(path: str) -> bool:
    """Whether a file is there. A network share that a trace names is never asked: Windows would log in to it."""
    if not path or path.startswith(("\\\\", "//")):
        return False
    try:
        return os.path.isfile(path)  # noqa: PTH113 - the path may hold what `Path` refuses
    except ValueError:  # a NUL
        return False

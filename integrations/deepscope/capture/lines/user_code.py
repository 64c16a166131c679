"""Which files hold the user's own code: the project's, less what is installed in it, and the cells of notebooks."""

from __future__ import annotations

import os
import re
import sys
import sysconfig
from collections.abc import Hashable, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from deepscope.capture.naming import current_folder

ROOT_MARKERS = ("pyproject.toml", "setup.py", ".git")
ENVIRONMENT_MARKERS = ("pyvenv.cfg", "conda-meta")
INSTALLED = frozenset({"site-packages", "dist-packages"})

# ipykernel names each cell like a temporary file that it never creates; IPython in a terminal, Colab, marimo and the
# REPL of 3.13 have names of their own. All of them keep the cell's text in linecache.
CELL = re.compile(
    r"^<(ipython|python)-input-|[/\\]ipykernel_\d+[/\\]|[/\\]ipython-input-[^/\\]*\.py$|[/\\]marimo_\d+[/\\]"
)

GENERATED = re.compile(r"[/\\]c[a-z2-7]{51}\.py$")
"""What torch.compile writes; its cache may lie in the project (`TORCHINDUCTOR_CACHE_DIR`)."""

_OWN_PACKAGE = Path(__file__).resolve().parents[2]
_OWN_PREFIX = f"{_OWN_PACKAGE}{os.sep}"
_START_FOLDER = current_folder()


def find_root(script: str | Path | None = None, folder: str | Path | None = None) -> Path:
    """The project's folder: the nearest one upward from the script (else from `folder`, the current one) with a marker.

    Without a marker upward it is the script's own folder. A script that is itself installed (`pytest`, `torchrun`) says
    nothing about the project, so that the current folder takes its place. One in an archive (`python -m zipapp`) stands
    where the archive does.
    """
    start = Path(folder or current_folder()).resolve()
    script = script or getattr(sys.modules.get("__main__"), "__file__", None)
    if script is not None:
        file = next(place for place in (Path(script), *Path(script).absolute().parents) if place.exists())
        if file.is_file() and not _is_installed_script(file):
            start = file.resolve().parent
    return root_above(start)


def root_above(start: Path) -> Path:
    """The nearest folder with a marker, from `start` upward; `start` itself without one."""
    for candidate in (start, *start.parents):
        if candidate.parent != candidate and any((candidate / marker).exists() for marker in ROOT_MARKERS):
            return candidate
    return start


class UserCode:
    """The user's code of one recording; answers by file name, and remembers each answer.

    `include` opens up what lies outside (`"../shared/*.py"`, `"transformers.models.*"`); `exclude` wins over it.
    A pattern with a path separator or the ending `.py` is a path, relative to the root, and a folder stands for all
    below it; any other pattern is a module's dotted name, and a package stands for all its modules.
    """

    def __init__(self, root: str | Path, include: Iterable[str] = (), exclude: Iterable[str] = ()) -> None:
        self.root = Path(root).resolve()
        self.include: Sequence[str] = tuple(include)
        self.exclude: Sequence[str] = tuple(exclude)
        self._answers: dict[str, bool] = {}
        self._environments: dict[Path, bool] = {}

    @classmethod
    def find(cls, root: str | Path | None = None, include: Iterable[str] = (), exclude: Iterable[str] = ()) -> UserCode:
        """The code below `root`, or below the project's folder where none is given."""
        return cls(root if root is not None else find_root(), include, exclude)

    @property
    def signature(self) -> Hashable:
        """Equal for two selections that give the same answers."""
        return (type(self), self.root, self.include, self.exclude)

    def owns(self, filename: str) -> bool:
        """Whether code compiled from `filename` (a code object's `co_filename`) is the user's."""
        answer = self._answers.get(filename)
        if answer is None:
            answer = self._answers[filename] = self._decide(filename)
        return answer

    def refuses(self, filename: str) -> bool:
        """Whether code compiled from `filename` is never to be recorded: the user excluded it, or it is DeepScope's."""
        return filename.startswith((_OWN_PREFIX, "<")) or self._is_refused(_places_of(filename))

    @staticmethod
    def real_path(filename: str) -> str:
        """The absolute path of `filename` with links resolved; the name of a cell as it is."""
        if CELL.search(filename) or filename.startswith("<"):
            return filename
        return str((_START_FOLDER / filename).resolve())

    def _decide(self, filename: str) -> bool:
        if filename.startswith(_OWN_PREFIX) or GENERATED.search(filename):
            return False
        if CELL.search(filename):
            return not any(fnmatchcase(filename, pattern) for pattern in self.exclude)
        if filename.startswith("<"):
            return False  # exec, eval, dataclasses, torch.fx: text that stands in no file
        places = _places_of(filename)
        if self._is_refused(places):
            return False
        if any(self._matches(pattern, places) for pattern in self.include):
            return True
        return any(self._is_project_file(place, places[1]) for place in places)

    def _is_refused(self, places: tuple[Path, Path]) -> bool:
        return places[1].is_relative_to(_OWN_PACKAGE) or any(self._matches(one, places) for one in self.exclude)

    def _is_project_file(self, place: Path, real: Path) -> bool:
        """Whether a file that stands at `place` and, links resolved, at `real` is the project's own."""
        if not place.is_relative_to(self.root) or _is_installed(place, self.root):
            return False
        if not real.is_relative_to(self.root) and _is_installed(real, None):
            return False
        return not self._is_in_environment(place.parent)

    def _is_in_environment(self, folder: Path) -> bool:
        if folder == self.root:
            return False
        known = self._environments.get(folder)
        if known is None:
            known = _is_environment(folder) or self._is_in_environment(folder.parent)
            self._environments[folder] = known
        return known

    def _matches(self, pattern: str, places: Iterable[Path]) -> bool:
        if "/" in pattern or os.sep in pattern or pattern.endswith(".py"):
            path = os.path.normpath(self.root / Path(pattern).expanduser())
            return any(fnmatchcase(str(place), path) or place.is_relative_to(path) for place in places)
        names = [name for place in places for name in _module_names(place, self.root)]
        return any(fnmatchcase(name, pattern) or name.startswith(f"{pattern}.") for name in names)


def _places_of(filename: str) -> tuple[Path, Path]:
    """Where a file stands as it is named, and with links resolved."""
    written = Path(os.path.normpath(_START_FOLDER / filename))
    return written, written.resolve()


def _is_installed_script(script: Path) -> bool:
    written = Path(os.path.normpath(current_folder() / script))
    return _is_installed(written.resolve(), None) or any(_is_environment(folder) for folder in written.parents)


def _is_installed(path: Path, root: Path | None) -> bool:
    """Whether `path`, as seen from `root`, is part of an installed package, of Python's own library, or generated."""
    parts = path.relative_to(root).parts if root is not None else path.parts
    if not INSTALLED.isdisjoint(parts) or any(part.startswith("torchinductor_") for part in parts):
        return True
    libraries = {Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib")}
    return any(
        path.is_relative_to(library) and not (root is not None and root.is_relative_to(library))
        for library in libraries
    )


def _is_environment(folder: Path) -> bool:
    return any((folder / marker).exists() for marker in ENVIRONMENT_MARKERS)


def _module_names(path: Path, root: Path) -> Iterator[str]:
    """The dotted names by which `path` could be imported: from each entry of `sys.path` above it, and from the root."""
    for entry in {root, *map(Path.absolute, map(Path, sys.path))}:
        if path.is_relative_to(entry):
            parts = path.relative_to(entry).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1:] == ("__init__",) else parts)

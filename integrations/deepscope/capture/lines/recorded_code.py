"""Which code is recorded: the user's own, and of installed packages those whose modules and optimizers run.

The user's is the project's, less what is installed in it, and the cells of notebooks. Of packages no list of names is
kept. When a class of modules is called for the first time, the package that holds its `forward` is opened; when an
optimizer steps, the one that holds its `step`. Of torch's own, `torch.optim` alone: what happens inside torch's modules
is named by their operators.
"""

from __future__ import annotations

import inspect
import os
import re
import sys
import sysconfig
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import torch

from deepscope.capture.dynamo import undisturbed
from deepscope.capture.lines.bytecode import UNKNOWN, lines_before, lines_without_calls
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
        return filename.startswith((_OWN_PREFIX, "<")) or self._is_refused(_paths_of(filename))

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
        places = _paths_of(filename)
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


def _paths_of(filename: str) -> tuple[Path, Path]:
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


_TORCH = "torch"
_OPTIMIZERS = "torch.optim"


class Libraries:
    """The packages that are open, and which files are theirs; kept from one window to the next."""

    def __init__(self, user_code: UserCode) -> None:
        self._user_code = user_code
        self._answers: dict[str, bool] = {}
        self._seen: dict[int, type] = {}
        """By `id`: a metaclass of the user's may not let a class be hashed."""
        self._places: dict[str, tuple[str, ...]] = {_OPTIMIZERS: _places_of(_OPTIMIZERS)}
        self.names = [_OPTIMIZERS]
        """Of the open packages, in the order in which they were opened."""
        self.codes: dict[int, LibraryCode] = {}
        """What is known of their code, by `id` of the code object."""
        self.on_open: Callable[[], None] = lambda: None
        """Called when a package was opened: code that was left alone must be looked at again."""

    def owns(self, filename: str) -> bool:
        """Whether code compiled from `filename` belongs to an open package, and not to the user."""
        answer = self._answers.get(filename)
        if answer is None:
            is_open = any(filename.startswith(places) for places in self._places.values())
            code = self._user_code
            answer = is_open and not code.owns(filename) and not code.refuses(filename)
            self._answers[filename] = answer
        return answer

    def known(self, code: CodeType) -> LibraryCode:
        """What is known of a code object of an open package."""
        found = self.codes.get(id(code))
        if found is None:
            found = self.codes[id(code)] = LibraryCode(code)
        return found

    def meet(self, kind: type, method: str) -> None:
        """Objects of this class run `method`: open the package that it is defined in."""
        if id(kind) not in self._seen:
            self._seen[id(kind)] = kind
            undisturbed(self._meet, kind, method)

    def meet_optimizer(self, frame: FrameType) -> None:
        """`frame` is one of `step_code`: an optimizer steps."""
        arguments = frame.f_locals.get("args")
        if isinstance(arguments, tuple) and arguments:
            self.meet(type(arguments[0]), "step")

    def _meet(self, kind: type, method: str) -> None:
        function = inspect.unwrap(getattr(kind, method, kind))
        code = code_of(function)
        package = str(getattr(function, "__module__", "") or "").partition(".")[0]
        if code is None or package in {"", _TORCH, "__main__"} or package in self._places:
            return
        if self._user_code.owns(code.co_filename) or self._user_code.refuses(code.co_filename):
            return
        places = _places_of(package)
        # A module that says that it is of another package, or of one that is not imported by that name.
        self._places[package] = places if code.co_filename.startswith(places) else (code.co_filename,)
        self.names.append(package)
        self._answers = {name: answer for name, answer in self._answers.items() if answer}
        self.on_open()


def code_of(function: object) -> CodeType | None:
    """The code of a function that is written in Python."""
    code = getattr(function, "__code__", None)
    return code if isinstance(code, CodeType) else None


def step_code() -> CodeType | None:
    """What torch puts around the `step` of every class of optimizers; None where this torch has another way."""
    around = code_of(getattr(torch.optim.Optimizer, "profile_hook_step", None))
    constants: tuple[Any, ...] = around.co_consts if around is not None else ()
    return next((one for one in constants if isinstance(one, CodeType) and one.co_name == "wrapper"), None)


def _places_of(name: str) -> tuple[str, ...]:
    """What the file names of an imported package, or module, begin with, as it was imported and with links resolved."""
    module = sys.modules.get(name)
    folders = [str(folder) for folder in getattr(module, "__path__", None) or ()]
    if folders:
        both = [real for folder in folders for real in (folder, str(Path(folder).resolve()))]
        return tuple(dict.fromkeys(f"{folder.rstrip(os.sep)}{os.sep}" for folder in both))
    file = getattr(module, "__file__", None)
    return tuple({str(file): None, str(Path(file).resolve()): None}) if file else ()


_ANY = frozenset({UNKNOWN})
_TELLS_LINES_APART = sys.version_info >= (3, 12)


class Trial(NamedTuple):
    """How far a line's first trial has come; the fields are those of a `Slot`."""

    judged: int
    long: int


class LibraryCode:
    """One code object of a library; keeps it alive, so that its `id` stays its own."""

    __slots__ = ("_before", "code", "idle", "is_left_alone", "on_trial", "verdicts")

    def __init__(self, code: CodeType) -> None:
        self.code = code
        self.idle = lines_without_calls(code)
        """Lines in which no operator can run, whatever their values."""
        self.verdicts: dict[int, bool] = {}
        """By line, whether it holds operators. That it does is kept only where it is certain: a first step's lines all
        take long."""
        self.on_trial: dict[int, Trial] = {}
        """By line, of those of which that is not known yet."""
        self.is_left_alone = False
        """Whether no operator was seen in it for long enough."""
        self._before: Mapping[int, frozenset[int]] | None = None

    def before(self, line: int) -> frozenset[int]:
        """The lines that may run right before `line` in its frame; `UNKNOWN` among them where that may be any."""
        if self._before is None:
            self._before = lines_before(self.code) if _TELLS_LINES_APART else {}
        return self._before.get(line, _ANY)

    def holds_nothing(self, line: int) -> bool:
        """Whether it is known that no operator runs in `line`."""
        return line in self.idle or self.verdicts.get(line) is False

"""Where operators are called: the paths of frames that lead there, by number, and the lines that an account names."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from enum import Enum, auto
from pathlib import Path
from types import CodeType, FrameType
from typing import NamedTuple

from torch import nn

from deepscope.capture.audit import hooks
from deepscope.capture.lines import UserCode

PathEntry = tuple[CodeType, int]
"""A running function of the user's, and its line."""


class _Kind(Enum):
    USER = auto()
    MODULE = auto()
    """`Module._call_impl`, through which each call of a module passes."""
    CLIPPING = auto()
    LOADING = auto()
    BENEATH = auto()
    """What torch runs between a line and its operator, and `copy.deepcopy` of a tensor or a container."""
    OTHER = auto()


_CLIPPING = str(Path("torch", "nn", "utils", "clip_grad.py"))
_LOADING = str(Path("torch", "utils", "data", "_utils"))
_BENEATH = {
    hooks.__file__: {"__torch_dispatch__"},
    str(Path("torch", "_compile.py")): {"inner"},
    str(Path("torch", "_dynamo", "eval_frame.py")): {"_fn"},
    str(Path("torch", "utils", "_device.py")): {"__torch_function__"},
    str(Path("torch", "_tensor.py")): {"__deepcopy__"},
    str(Path("torch", "storage.py")): {"__deepcopy__", "_deepcopy", "clone"},
    copy.__file__: {"deepcopy", "_deepcopy_dict", "_deepcopy_list", "_deepcopy_tuple"},
}
"""Functions by how the path of their file ends."""


class CallSite(NamedTuple):
    """From where an operator is called."""

    path: int
    """Index into `CallPaths.paths`."""
    modules: tuple[str, ...]
    """The classes of the modules around it, outermost first."""
    instances: tuple[int, ...]
    """The `id` of each."""
    depths: tuple[int, ...]
    """How many lines of the path are outside of each module."""
    is_clipping: bool
    """Whether gradients are being clipped."""
    is_loading: bool
    """Whether a data loader gets a batch."""
    is_direct: bool
    """Whether a line of the user's calls it, and no library in between; `copy.deepcopy` counts as the line's."""
    is_within_module: bool
    """Whether a module calls it, and no line of the user's in between."""


class CallPaths:
    """The paths that were met, each once; a path has the outermost line first."""

    def __init__(self, code: UserCode) -> None:
        self.paths: list[tuple[PathEntry, ...]] = [()]
        self._numbers: dict[tuple[PathEntry, ...], int] = {(): 0}
        self._code = code
        self._kinds: dict[CodeType, _Kind] = {}
        call = getattr(nn.Module, "_call_impl", None)
        self._module_call: CodeType | None = getattr(call, "__code__", None)

    def call_from(self, frame: FrameType | None) -> CallSite:
        """The call that runs in `frame` and those around it."""
        entries: list[PathEntry] = []
        modules: list[tuple[str, int, int]] = []
        is_clipping = is_loading = is_direct = False
        is_beneath = True
        while frame is not None:
            code = frame.f_code
            kind = self._kinds.get(code) or self._kind_of(code)
            if kind is _Kind.USER:
                entries.append((code, frame.f_lineno))
            elif kind is _Kind.MODULE:
                module = frame.f_locals.get("self")
                modules.append((type(module).__name__, id(module), len(entries)))
            elif kind is _Kind.CLIPPING:
                is_clipping = True
            elif kind is _Kind.LOADING:
                is_loading = True
            if is_beneath and kind is not _Kind.BENEATH:
                is_beneath, is_direct = False, kind is _Kind.USER
            frame = frame.f_back
        depth = len(entries)
        path = tuple(reversed(entries))
        number = self._numbers.get(path)
        if number is None:
            number = self._numbers[path] = len(self.paths)
            self.paths.append(path)
        is_within_module = bool(modules) and modules[0][2] == 0
        modules.reverse()
        names, instances = tuple(name for name, _, _ in modules), tuple(module for _, module, _ in modules)
        depths = tuple(depth - inner for _, _, inner in modules)
        return CallSite(number, names, instances, depths, is_clipping, is_loading, is_direct, is_within_module)

    def _kind_of(self, code: CodeType) -> _Kind:
        if code is self._module_call:
            kind = _Kind.MODULE
        elif code.co_filename.endswith(_CLIPPING):
            kind = _Kind.CLIPPING
        elif _LOADING in code.co_filename:
            kind = _Kind.LOADING
        elif any(code.co_filename.endswith(end) and code.co_name in names for end, names in _BENEATH.items()):
            kind = _Kind.BENEATH
        else:
            kind = _Kind.USER if self._code.owns(code.co_filename) else _Kind.OTHER
        self._kinds[code] = kind
        return kind


CallPath = tuple[PathEntry, ...]
"""The lines that a call comes through, the outermost first."""
_MOST_OF = 0.8
"""A line stands for what most of some operators were called from."""


class FoundPlace(NamedTuple):
    """A line with the path of its file."""

    file: str
    line: int
    function: str


class NumberedPlaces:
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


def wholly(calls: Iterable[tuple[CallPath, bool]]) -> set[CallPath]:
    """Of call paths, each with whether something holds there: the beginnings below which it holds everywhere."""
    beginnings: dict[CallPath, bool] = {}
    for path, holds in calls:
        for length in range(1, len(path) + 1):
            beginnings[path[:length]] = holds and beginnings.get(path[:length], True)
    return {path for path, holds in beginnings.items() if holds}


def outermost_of(path: CallPath, beginnings: Set[CallPath]) -> CallPath:
    """The shortest beginning of a path that is one of `beginnings`; the path itself where none is."""
    return next((path[:length] for length in range(1, len(path)) if path[:length] in beginnings), path)


def common_call(paths: Iterable[Sequence[PathEntry]]) -> CallPath:
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

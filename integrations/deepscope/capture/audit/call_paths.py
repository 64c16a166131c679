"""Where an operator is called from: the running lines of user code, and the module around it."""

from __future__ import annotations

from enum import Enum, auto
from pathlib import Path
from types import CodeType, FrameType
from typing import NamedTuple

from torch import nn

from deepscope.capture.lines import UserCode

PathEntry = tuple[CodeType, int]
"""A running function of the user's, and its line."""


class _Kind(Enum):
    USER = auto()
    MODULE = auto()
    """`Module._call_impl`, through which each call of a module passes."""
    CLIPPING = auto()
    LOADING = auto()
    OTHER = auto()


_CLIPPING = str(Path("torch", "nn", "utils", "clip_grad.py"))
_LOADING = str(Path("torch", "utils", "data", "_utils"))


class Call(NamedTuple):
    """From where an operator is called."""

    path: int
    """Index into `CallPaths.paths`."""
    modules: tuple[str, ...]
    """The classes of the modules around it, outermost first."""
    depths: tuple[int, ...]
    """How many lines of the path are outside of each module."""
    is_clipping: bool
    """Whether gradients are being clipped."""
    is_loading: bool
    """Whether a data loader gets a batch."""


class CallPaths:
    """The paths that were met, each once; a path has the outermost line first."""

    def __init__(self, code: UserCode) -> None:
        self.paths: list[tuple[PathEntry, ...]] = [()]
        self._numbers: dict[tuple[PathEntry, ...], int] = {(): 0}
        self._code = code
        self._kinds: dict[CodeType, _Kind] = {}
        call = getattr(nn.Module, "_call_impl", None)
        self._module_call: CodeType | None = getattr(call, "__code__", None)

    def call_from(self, frame: FrameType | None) -> Call:
        """The call that runs in `frame` and those around it."""
        entries: list[PathEntry] = []
        modules: list[tuple[str, int]] = []
        is_clipping = is_loading = False
        while frame is not None:
            code = frame.f_code
            kind = self._kinds.get(code) or self._kind_of(code)
            if kind is _Kind.USER:
                entries.append((code, frame.f_lineno))
            elif kind is _Kind.MODULE:
                modules.append((type(frame.f_locals.get("self")).__name__, len(entries)))
            elif kind is _Kind.CLIPPING:
                is_clipping = True
            elif kind is _Kind.LOADING:
                is_loading = True
            frame = frame.f_back
        depth = len(entries)
        path = tuple(reversed(entries))
        number = self._numbers.get(path)
        if number is None:
            number = self._numbers[path] = len(self.paths)
            self.paths.append(path)
        modules.reverse()
        names, depths = tuple(name for name, _ in modules), tuple(depth - inner for _, inner in modules)
        return Call(number, names, depths, is_clipping, is_loading)

    def _kind_of(self, code: CodeType) -> _Kind:
        if code is self._module_call:
            kind = _Kind.MODULE
        elif code.co_filename.endswith(_CLIPPING):
            kind = _Kind.CLIPPING
        elif _LOADING in code.co_filename:
            kind = _Kind.LOADING
        else:
            kind = _Kind.USER if self._code.owns(code.co_filename) else _Kind.OTHER
        self._kinds[code] = kind
        return kind

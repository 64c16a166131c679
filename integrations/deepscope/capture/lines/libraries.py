"""The installed packages whose lines are recorded: those that own the modules and optimizers that run.

No list of names is kept. When a class of modules is called for the first time, the package that holds its `forward` is
opened; when an optimizer steps, the one that holds its `step`. Of torch's own, `torch.optim` alone: what happens inside
torch's modules is named by their operators.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import torch

from deepscope.capture.dynamo import undisturbed
from deepscope.capture.lines.code_facts import UNKNOWN, lines_before, lines_without_calls
from deepscope.capture.lines.user_code import UserCode

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

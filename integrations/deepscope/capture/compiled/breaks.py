"""Where dynamo broke graphs, and what it compiled once more in a window, by its own records."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

_UTILS = "torch._dynamo.utils"
_MOST = 200
"""Breaks that are told, the first."""
_LONGEST = 200
"""Letters of a reason."""


class PythonFrame(NamedTuple):
    """A frame of a stack, with the file's name as Python has it."""

    file: str
    line: int
    function: str


class Broken(NamedTuple):
    """A graph break, in whichever compilation it was met."""

    frames: tuple[PythonFrame, ...]
    """Outermost first."""
    reason: str


class Recompiled(NamedTuple):
    """A function that was compiled though it had been compiled before."""

    function: PythonFrame
    """Its first line."""
    reason: str
    duration_ns: int


def graph_breaks() -> list[Broken]:
    """The breaks that dynamo has met in this process, each place once."""
    found: dict[tuple[PythonFrame, ...], Broken] = {}
    for one in list(getattr(sys.modules.get(_UTILS), "graph_break_reasons", ())):
        with suppress(Exception):  # dynamo's own classes, which change
            frames = tuple(PythonFrame(frame.filename, int(frame.lineno), frame.name) for frame in one.user_stack)
            if frames and len(found) < _MOST:
                found.setdefault(frames, Broken(frames, _short(one.reason)))
    return list(found.values())


def recompilations(since_ns: int) -> list[Recompiled]:
    """What was compiled once more since a moment of the epoch."""
    return list(_recompilations(since_ns // 1000))


def _recompilations(since_us: int) -> Iterator[Recompiled]:
    for one in list(getattr(sys.modules.get(_UTILS), "_compilation_metrics", ())):
        with suppress(Exception):
            if not one.recompile_reason or (one.start_time_us or 0) < since_us:
                continue
            function = PythonFrame(str(one.co_filename), int(one.co_firstlineno), str(one.co_name))
            yield Recompiled(function, _short(one.recompile_reason), int(one.duration_us or 0) * 1000)


def _short(reason: Any) -> str:
    """The first line that says something."""
    return next((line.strip() for line in str(reason).splitlines() if line.strip()), "")[:_LONGEST]

"""Where dynamo broke graphs, and what it compiled, by its own records."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from deepscope.trace.format.run_account import CompiledAccount

_UTILS = "torch._dynamo.utils"
_MOST = 200
"""Breaks that are reported, the first."""
_MOST_FUNCTIONS = 20
_LONGEST = 200
"""Letters of a reason."""
_BESIDE_REASON = re.compile(r"^\d+/\d+: |\s{2,}# .*")
"""The number of the compilation whose guard failed, and the text of the line that the guard is for."""


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


class Compiled(NamedTuple):
    """A compilation of a function, or of its backward pass."""

    function: PythonFrame
    """Its first line."""
    reason: str
    """Why it was compiled again; "" the first time."""
    duration_ns: int
    is_backward: bool = False
    began_ns: int = 0
    """Since the epoch; 0 where dynamo does not tell."""


def graph_breaks() -> list[Broken]:
    """The breaks that dynamo has met in this process, each place once."""
    found: dict[tuple[PythonFrame, ...], Broken] = {}
    for one in list(getattr(sys.modules.get(_UTILS), "graph_break_reasons", ())):
        with suppress(Exception):  # dynamo's own classes, which change
            frames = tuple(PythonFrame(frame.filename, int(frame.lineno), frame.name) for frame in one.user_stack)
            if frames and len(found) < _MOST:
                found.setdefault(frames, Broken(frames, _short(one.reason)))
    return list(found.values())


def recompilations() -> list[Compiled]:
    """What was compiled once more in this process; dynamo keeps the last 64 compilations."""
    return [one for one in _compilations() if one.reason]


def compiled_functions(since_ns: int) -> list[CompiledAccount]:
    """What was compiled since a moment of the epoch, as far as dynamo keeps it; what took longest first."""
    found: dict[PythonFrame, list[Compiled]] = {}
    for one in _compilations():
        if not one.began_ns or one.began_ns >= since_ns:
            found.setdefault(one.function, []).append(one)
    accounts = [
        CompiledAccount(
            *function,
            times=sum(not one.is_backward for one in compiled),
            time_ns=sum(one.duration_ns for one in compiled),
            reason=next((one.reason for one in reversed(compiled) if one.reason), ""),
        )
        for function, compiled in found.items()
    ]
    return sorted(accounts, key=lambda one: -one.time_ns)[:_MOST_FUNCTIONS]


def _compilations() -> Iterator[Compiled]:
    """A backward pass is compiled when it runs first, under the number of its forward pass."""
    functions: dict[str, PythonFrame] = {}
    for one in list(getattr(sys.modules.get(_UTILS), "_compilation_metrics", ())):
        with suppress(Exception):
            number = str(getattr(one, "compile_id", ""))
            is_backward = getattr(one, "is_forward", None) is False
            if not is_backward:
                functions[number] = PythonFrame(str(one.co_filename), int(one.co_firstlineno), str(one.co_name))
            if number in functions:
                began_us = getattr(one, "start_time_us", None) or 1e6 * (getattr(one, "start_time", None) or 0)
                took_us = getattr(one, "duration_us", None) or 1e6 * (one.entire_frame_compile_time_s or 0)
                reason = _BESIDE_REASON.sub("", _short(getattr(one, "recompile_reason", None) or ""))
                yield Compiled(functions[number], reason, int(1000 * took_us), is_backward, int(1000 * began_us))


def _short(reason: Any) -> str:
    """The first line that says something."""
    return next((line.strip() for line in str(reason).splitlines() if line.strip()), "")[:_LONGEST]

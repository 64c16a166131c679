"""Beside `torch.compile`: dynamo must not compile the hooks, and what it compiled has no lines of its own.

While a compiled function runs eager parts, dynamo looks at every Python function that is called, the hooks among them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from types import CodeType, ModuleType
from typing import Any, NamedTuple, TypeVar

import torch

from deepscope.trace.format.run_account import CompiledAccount

Result = TypeVar("Result")

_hidden: set[str] = set()

# torch/_dynamo/resume_execution.py
_CONTINUATION = re.compile(r"^(.*\.)?torch_dynamo_resume_in_(.+)_at_\d+$", re.DOTALL)
_OLD_CONTINUATION = re.compile(r"^(.*\.)?resume_in_(.+)$", re.DOTALL)  # before 2.3; a user's function may be named so


def _eval_frame() -> Any:
    return getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None)


def hide_modules(modules: Iterable[ModuleType]) -> None:
    """Have dynamo run all functions of these modules and of this one as they are, nested ones too; once a module."""
    skip = _skip_function()
    if skip is None:
        return
    for module in (sys.modules[__name__], *modules):
        if module.__name__ not in _hidden:
            _hidden.add(module.__name__)
            for code in _codes_of(module):
                skip(code)


def _skip_function() -> Callable[[CodeType], object] | None:
    """What tells dynamo to leave a code object alone, without importing dynamo, which takes seconds."""
    eval_frame = _eval_frame()
    try:
        skip = eval_frame._FrameAction.SKIP
        strategy = eval_frame._FrameExecStrategy(skip, skip)
        set_strategy = eval_frame.set_code_exec_strategy
    except AttributeError:  # before 2.8
        old: Callable[[CodeType], object] | None = getattr(eval_frame, "skip_code", None)
        return old
    return lambda code: set_strategy(code, strategy)


def _codes_of(module: ModuleType) -> Iterable[CodeType]:
    todo: list[Any] = [thing for thing in vars(module).values() if getattr(thing, "__module__", "") == module.__name__]
    while todo:
        thing = todo.pop()
        if isinstance(thing, CodeType):
            yield thing
            todo += [constant for constant in thing.co_consts if isinstance(constant, CodeType)]
        elif isinstance(thing, type):
            todo += vars(thing).values()
        else:
            functions = (getattr(thing, name, None) for name in ("__func__", "fget", "fset", "__wrapped__", "__code__"))
            todo += [function for function in functions if function is not None]


def undisturbed(function: Callable[..., Result], *arguments: Any) -> Result:
    """Call `function` with dynamo looking away, for what calls into Python's own library."""
    swap = getattr(_eval_frame(), "set_eval_frame", None)
    if swap is None:
        return function(*arguments)
    before = swap(None)
    try:
        return function(*arguments)
    finally:
        swap(before)


def is_compiled(code: CodeType) -> bool:
    """Whether dynamo wrote this code object; most of it then stands at the line that the function is defined on."""
    convert = sys.modules.get("torch._dynamo.convert_frame")
    outputs = getattr(convert, "output_codes", None)
    return outputs is not None and hasattr(outputs, "__contains__") and code in outputs


def continued_name(name: str) -> str:
    """The function that one of this name goes on with after a graph break; "" for a name that is no continuation's."""
    match = _CONTINUATION.match(name)
    return f"{match[1] or ''}{match[2]}" if match else ""


def continued_function(code: CodeType) -> str:
    """The function that this code, which dynamo wrote, goes on with after a graph break; "" for any other code."""
    name: str = getattr(code, "co_qualname", code.co_name)  # co_qualname came with 3.11
    match = _CONTINUATION.match(name) or (_OLD_CONTINUATION.match(name) if is_compiled(code) else None)
    return f"{match[1] or ''}{match[2]}" if match else ""


def is_in_use(living: Callable[[Sequence[type]], list[list[Any]]]) -> bool:
    """Whether this process has asked for a function to be compiled, whether that has been called or not.

    `living` finds the objects of some classes that are alive.
    """
    eval_frame = sys.modules.get("torch._dynamo.eval_frame")
    convert = sys.modules.get("torch._dynamo.convert_frame")
    if eval_frame is None:
        return False
    backends = getattr(eval_frame, "cached_backends", {})
    if any(one is not None for one in backends.values()):
        return True
    if getattr(getattr(convert, "output_codes", None), "seen", None):
        return True
    kinds = [kind for name in ("OptimizeContext", "OptimizedModule") if (kind := getattr(eval_frame, name, None))]
    return any(living(kinds))


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

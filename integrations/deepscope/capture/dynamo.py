"""Beside `torch.compile`: dynamo must not compile the hooks, and what it compiled has no lines of its own.

While a compiled function runs eager parts, dynamo looks at every Python function that is called, the hooks among them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from types import CodeType, ModuleType
from typing import Any, TypeVar

import torch

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
            functions = (getattr(thing, name, None) for name in ("__func__", "fget", "fset", "__code__"))
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

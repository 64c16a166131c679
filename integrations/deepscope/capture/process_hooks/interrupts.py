"""Signals of the program's: held back while torch's recording is switched on or off, and never swallowed.

Half-way, what their handlers raise would leave hooks behind. Elsewhere it may arrive in any function of ours, since
Python calls handlers between any two instructions of the main thread.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import functools
import inspect
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import CodeType, FrameType
from typing import Any

# `signal` makes a member of an enumeration of each number and handler: with it, holding signals back takes five times
# as long, which surveys of the memory do several times a step.
_MARK = "__deepscope_from_handler__"
_SIGNALS = sorted(signal.valid_signals())
_later: Callable[[int], None] | None = None


@contextmanager
def held_back() -> Iterator[None]:
    """Signals with a handler in Python arrive at the block's end; on other threads than the main one none arrives."""
    if not is_main_thread():
        yield
        return
    handlers = _handlers()
    arrived: dict[int, tuple[Any, ...]] = {}

    def note(number: int, frame: FrameType | None) -> None:
        arrived[number] = (number, frame)

    try:
        for number in handlers:
            _signal.signal(number, note)
        yield
    finally:
        for number, handler in handlers.items():
            _signal.signal(number, handler)
        with ExitStack() as calls:  # each is made, whatever others raise; SIGTERM's (15) before SIGINT's (2)
            for number, call in sorted(arrived.items()):
                calls.callback(_call, handlers[number], call) if _later is None else _later(number)


@contextmanager
def put_off(later: Callable[[int], None]) -> Iterator[None]:
    """On the main thread, where nothing may be raised: `later` is told of signals that arrive in the block."""
    global _later
    before, _later = _later, later
    try:
        with held_back():
            yield
    finally:
        _later = before


def comes_from_handler(error: BaseException) -> bool:
    """Whether a signal's handler raised it; then it is the program's, and no failure of ours."""
    if _MARK in error.__dict__:
        return True
    codes = {code for handler in _handlers().values() if (code := _code(handler)) is not None}
    traceback = error.__traceback__
    while traceback is not None:
        frame = traceback.tb_frame
        if frame.f_code in codes or (not _is_own(frame) and _is_given_its_caller(frame)):
            return True
        traceback = traceback.tb_next
    return False


def _is_own(frame: FrameType) -> bool:
    """Whether it is of this package, whose trace functions are given the frame that they are called from, too."""
    return str(frame.f_globals.get("__name__", "")).startswith("deepscope.")


def _is_given_its_caller(frame: FrameType) -> bool:
    """Whether an argument is the frame that was interrupted: so Python calls handlers, also one that is set no more."""
    code = frame.f_code
    count = code.co_argcount + bool(code.co_flags & inspect.CO_VARARGS)
    given: list[Any] = [frame.f_locals.get(name) for name in code.co_varnames[: code.co_argcount]]
    if count > code.co_argcount:
        given += frame.f_locals.get(code.co_varnames[code.co_argcount + code.co_kwonlyargcount], ())
    return frame.f_back is not None and any(one is frame.f_back for one in given)


def _handlers() -> dict[int, Any]:
    """By signal, the handlers that Python calls."""
    return {number: handler for number in _SIGNALS if callable(handler := _signal.getsignal(number))}


def _call(handler: Any, arguments: tuple[Any, ...]) -> None:
    try:
        handler(*arguments)
    except Exception as error:
        error.__dict__[_MARK] = True
        raise


def _code(handler: Any) -> CodeType | None:
    """The code that a call of `handler` runs first; None where that is not Python's."""
    while isinstance(handler, functools.partial):
        handler = handler.func
    if not hasattr(handler, "__code__") and not hasattr(handler, "__func__"):
        handler = type(handler).__call__
    code = getattr(getattr(handler, "__func__", handler), "__code__", None)
    return code if isinstance(code, CodeType) else None


_local = threading.local()


def is_main_thread() -> bool:
    """Whether this is the main thread, by its number: `current_thread()` makes a new object for a thread that ends."""
    return threading.get_ident() == threading.main_thread().ident


def at_thread_end(call: Callable[[], None]) -> Callable[[], None]:
    """Have `call` made as this thread ends, unless what is returned is called before.

    Whoever joins the thread waits for it. Nothing is done for the main thread, whose end is that of the interpreter
    (`atexit`), nor for daemon threads that the interpreter's end cuts off.
    """
    if is_main_thread():
        return lambda: None
    calls = [call]
    name = f"guard{id(calls)}"
    setattr(_local, name, _Guard(calls))

    def forget() -> None:  # it holds no guard: the thread alone does
        calls.clear()
        _local.__dict__.pop(name, None)

    return forget


class _Guard:
    """Local to a thread, and freed as that ends."""

    def __init__(self, calls: list[Callable[[], None]]) -> None:
        self._calls = calls

    def __del__(self) -> None:
        if self._calls:
            self._calls.pop()()

"""Signals of the program's: held back while torch's recording is switched on or off, never swallowed; SIGTERM saves.

Half-way, what their handlers raise would leave hooks behind. Elsewhere it may arrive in any function of ours, since
Python calls handlers between any two instructions of the main thread.

A scheduler ends a job by SIGTERM. On the main thread, where nobody else has a handler, the window is saved as with
Ctrl-C, and the process then ends by the signal as it would have.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import functools
import inspect
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
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


def is_main_thread() -> bool:
    """Whether this is the main thread, by its number: `current_thread()` makes a new object for a thread that ends."""
    return threading.get_ident() == threading.main_thread().ident


_saves: list[tuple[object, Callable[[], None]]] = []
_pid = 0
_is_ending = False


def save_at_sigterm(recorder: object, save: Callable[[], None]) -> None:
    """Call `save` when SIGTERM arrives, until `save_no_more`; does nothing where somebody else handles it.

    Several may be kept for one recorder; `save_no_more` ends them all.
    """
    global _pid
    if _is_ending or not is_main_thread():
        return
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        with suppress(ValueError, OSError):  # an interpreter that lets no handler be set
            signal.signal(signal.SIGTERM, _on_sigterm)
    if signal.getsignal(signal.SIGTERM) is _on_sigterm:
        _pid = os.getpid()
        _saves.append((recorder, save))


def save_no_more(recorder: object) -> None:
    """The recorder has ended; after the last one the signal does again what it did before."""
    _saves[:] = [entry for entry in _saves if entry[0] is not recorder]
    if _saves or _is_ending or signal.getsignal(signal.SIGTERM) is not _on_sigterm:
        return
    if is_main_thread():
        _give_back()
    else:
        _give_back_on_main_thread()


def _give_back_on_main_thread() -> None:
    """Python lets no other thread set handlers; the main one does so as soon as it runs Python again."""
    import ctypes

    ctypes.pythonapi.Py_AddPendingCall(_pending_call(), None)


@functools.cache  # it must live until it is called
def _pending_call() -> object:
    import ctypes

    def call(_: object) -> int:
        _give_back()
        return 0

    return ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(call)


def _give_back() -> None:
    if not _saves and signal.getsignal(signal.SIGTERM) is _on_sigterm:
        with suppress(ValueError, OSError):
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _on_sigterm(number: int, _frame: FrameType | None) -> None:
    global _is_ending
    # Else a handler that was set later has called this one, and goes on.
    is_last = signal.getsignal(number) is _on_sigterm
    if is_last:  # at first: a second signal ends the process at once, whatever the saving does
        signal.signal(number, signal.SIG_DFL)
    _is_ending = is_last
    saves = list(_saves) if os.getpid() == _pid else []
    _saves.clear()
    for _, save in reversed(saves):
        with suppress(Exception):  # the process ends in any case
            save()
    if is_last:
        os.kill(os.getpid(), number)


def _after_fork() -> None:
    """A child that is told to end does so at once, also from within C where no Python handler would run."""
    global _is_ending
    _is_ending = False
    _saves.clear()
    if is_main_thread():
        _give_back()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)

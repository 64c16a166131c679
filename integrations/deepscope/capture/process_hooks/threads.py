"""Calls on another thread: on the main one soon, between two lines of any, or as this one ends.

Python has such calls for signals and for C (`Py_AddPendingCall`); a signal would interrupt the program's own waiting.
A main thread that is busy in C, or waits there, makes the call when it is back in Python.
"""

from __future__ import annotations

import ctypes
import signal
import sys
import traceback
from _thread import get_ident
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Lock, local
from types import FrameType
from typing import Any

from deepscope.capture.process_hooks.signals import is_main_thread, put_off

_Pending = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
_add: Any = getattr(ctypes.pythonapi, "Py_AddPendingCall", None)
_interrupt: Any = getattr(ctypes.pythonapi, "PyErr_SetInterruptEx", None)
_waiting: dict[int, Callable[[], None]] = {}
_numbers = iter(range(1, 1 << 62))


def call_soon(action: Callable[[], None]) -> bool:
    """Has the main thread call `action`, which must catch what it raises; False where Python takes no such call."""
    number = next(_numbers)
    _waiting[number] = action
    for _ in range(3):  # its queue has 32 places
        if _add is not None and _add(_called, ctypes.c_void_p(number)) == 0:
            return True
    _waiting.pop(number, None)
    return False


def _call(number: int | None) -> int:
    action = _waiting.pop(number or 0, None)
    if action is None:
        return 0
    arrived: list[int] = []
    try:
        with put_off(arrived.append):
            action()
    except KeyboardInterrupt:
        arrived.append(signal.SIGINT)
    except SystemExit:  # what a handler of SIGTERM raises
        arrived.append(signal.SIGTERM)
    except BaseException:  # noqa: BLE001  it would reach the program, as a SystemError
        pass
    # Signals arrive once more behind this call, which no exception can leave. Last of all, and without a function of
    # Python's: while a call is waiting, 3.11 hangs in any function that begins here and is traced.
    for one in arrived:
        if _interrupt is not None:
            _add(_interrupt, ctypes.c_void_p(one))
    return 0


_called = _Pending(_call)


class MainThreadLock:
    """A lock, and an `action` of the main thread's that takes it.

    While somebody holds it, maybe that very thread, which would wait for itself, the action is put off.
    """

    def __init__(self, action: Callable[[], None]) -> None:
        self._action = action
        self._lock = Lock()
        self._is_put_off = False

    @contextmanager
    def held(self) -> Iterator[None]:
        """Holds the lock, as the action does."""
        try:
            with self._lock:
                yield
        finally:
            if self._is_put_off:
                self._is_put_off = False
                self.call_soon()

    def call_soon(self) -> bool:
        """Has the main thread call the action; False where Python takes no such call."""
        return call_soon(self._call)

    def _call(self) -> None:
        self._is_put_off = True
        if not self._lock.locked():
            self._is_put_off = False
            self._action()


_STACK_LINES = 40


def stack_of(thread: int) -> list[str]:
    """Where a thread stands, innermost last; empty for one that has ended."""
    frame = sys._current_frames().get(thread)
    summary = traceback.extract_stack(frame) if frame is not None else []
    return [f"{one.filename}:{one.lineno} {one.name}"[:500] for one in summary[-_STACK_LINES:]]


_monitoring: Any = getattr(sys, "monitoring", None)  # from Python 3.12 on
_TOOL_IDS = (4, 3, 2, 1)  # those of `lines/monitoring.py`


def call_between_lines(thread: int, call: Callable[[], None], *, within_s: float) -> bool:
    """Have `call` made on another thread where its next line of Python begins, and return once it has been made.

    Returns whether it has: the thread may begin no line within that time. Before Python 3.12 a line tells only where
    the thread has a trace function already. `call` must not raise.
    """
    turn = _Turn(thread, call)
    take_out = _monitor(turn) if _monitoring is not None else _trace(turn)
    turn.begun.wait(within_s)
    is_made = turn.close()
    take_out()
    if is_made:
        turn.ended.wait()
    return is_made


class _Turn:
    """The one time that the call is made."""

    def __init__(self, thread: int, call: Callable[[], None]) -> None:
        self.begun, self.ended = Event(), Event()
        self.thread = thread
        self._calls = [call]

    def take(self) -> None:
        if get_ident() != self.thread or not self._calls:
            return
        with suppress(IndexError):  # the other thread has closed it just now
            call = self._calls.pop()
            self.begun.set()
            try:
                call()
            finally:
                self.ended.set()

    def close(self) -> bool:
        """Let the call be made no more; returns whether it has begun."""
        with suppress(IndexError):
            self._calls.pop()
            return False
        return True


def _monitor(turn: _Turn) -> Callable[[], None]:
    tool = next((number for number in _TOOL_IDS if _monitoring.get_tool(number) is None), None)
    if tool is None:
        return lambda: None
    events = _monitoring.events.LINE, _monitoring.events.JUMP  # a loop on one line begins that line once
    _monitoring.use_tool_id(tool, "deepscope")
    for event in events:
        _monitoring.register_callback(tool, event, lambda *_: turn.take())
    _monitoring.set_events(tool, sum(events))

    def take_out() -> None:
        _monitoring.set_events(tool, 0)
        for event in events:
            _monitoring.register_callback(tool, event, None)
        _monitoring.free_tool_id(tool)

    return take_out


def _trace(turn: _Turn) -> Callable[[], None]:
    def on_line(_frame: FrameType, _event: str, _arg: Any) -> None:
        turn.take()

    frame = sys._current_frames().get(turn.thread)
    while frame is not None:
        frame.f_trace, frame.f_trace_lines = on_line, True
        frame = frame.f_back
    return lambda: None  # the thread ends with the process


_local = local()


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

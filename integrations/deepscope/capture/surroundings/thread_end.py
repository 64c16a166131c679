"""Calls at the end of a thread, on that thread: Python offers none, but it frees what is local to a thread there."""

from __future__ import annotations

import threading
from collections.abc import Callable

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

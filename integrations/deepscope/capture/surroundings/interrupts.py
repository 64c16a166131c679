"""Ctrl-C and SIGTERM wait while torch's recording is switched on or off: half-way they would leave hooks behind."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

__all__ = ["comes_from_handler", "held_back", "put_off"]

_MARK = "__deepscope_from_handler__"
_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_later: Callable[[int], None] | None = None


@contextmanager
def held_back() -> Iterator[None]:
    """Ctrl-C and SIGTERM within the block arrive at its end; on other threads than the main one they never arrive."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers: dict[int, Any] = {number: handler for number in _SIGNALS if callable(handler := signal.getsignal(number))}
    arrived: dict[int, tuple[Any, ...]] = {}

    def note(number: int, frame: FrameType | None) -> None:
        arrived[number] = (number, frame)

    try:
        for number in handlers:
            signal.signal(number, note)
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for number, call in sorted(arrived.items(), reverse=True):  # SIGTERM (15) before SIGINT (2)
            if _later is not None:
                _later(number)
                continue
            try:
                handlers[number](*call)
            except Exception as error:
                error.__dict__[_MARK] = True
                raise


@contextmanager
def put_off(later: Callable[[int], None]) -> Iterator[None]:
    """On the main thread, where nothing may be raised: `later` is told of signals that were held back in the block."""
    global _later
    before, _later = _later, later
    try:
        yield
    finally:
        _later = before


def comes_from_handler(error: BaseException) -> bool:
    """Whether a signal handler raised it at the end of a `held_back`; then it is no failure of ours."""
    return _MARK in error.__dict__

"""Ctrl-C waits while torch's recording is being switched: half-way, hooks or scopes would be left behind."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["held_back"]


@contextmanager
def held_back() -> Iterator[None]:
    """Ctrl-C within the block arrives at its end; on other threads than the main one it never arrives at all."""
    handler: Any = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    arrived: list[tuple[Any, ...]] = []
    try:
        signal.signal(signal.SIGINT, lambda *call: arrived.append(call))
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if arrived:
            handler(*arrived[-1])

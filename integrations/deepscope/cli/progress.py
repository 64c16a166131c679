"""A bar on the terminal while a trace is read: shown when it takes long, gone when it is done."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import TextIO

__all__ = ["Bar"]

PATIENCE_SECONDS = 0.5
REDRAW_SECONDS = 0.1
WIDTH = 30


class Bar:
    """A context manager that is called with bytes done and bytes in all; silent where the stream is no terminal."""

    def __init__(self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream or sys.stderr
        self._clock = clock
        self._next = clock() + PATIENCE_SECONDS
        self._is_drawn = False

    def __enter__(self) -> Callable[[int, int], None] | None:
        return self._draw if self._stream.isatty() else None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_drawn:
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    def _draw(self, done: int, total: int) -> None:
        now = self._clock()
        if now < self._next or not total:
            return
        self._next = now + REDRAW_SECONDS
        self._is_drawn = True
        ratio = min(1.0, done / total)
        filled = round(ratio * WIDTH)
        what = "reading" if done < total else "analysing"
        self._stream.write(f"\r{what} [{'#' * filled}{'.' * (WIDTH - filled)}] {ratio:4.0%}\x1b[K")
        self._stream.flush()

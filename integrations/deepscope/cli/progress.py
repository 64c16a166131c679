"""A bar on the terminal while a trace is read: shown when it takes long, gone when it is done."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import TextIO

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
        self._files = ""

    def __enter__(self) -> Bar | None:
        return self if self._stream.isatty() else None

    def files_done(self, done: int, total: int) -> None:
        """So many of several files are done; shown when the bar is drawn next."""
        self._files = f" {done:,} of {total:,} ranks"

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_drawn:
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    def __call__(self, done: int, total: int) -> None:
        """So many bytes are done."""
        now = self._clock()
        is_last = self._is_drawn and done >= total  # what follows may take long
        if not total or (now < self._next and not is_last):
            return
        self._next = now + REDRAW_SECONDS
        self._is_drawn = True
        ratio = min(1.0, done / total)
        filled = round(ratio * WIDTH)
        what = "reading" if done < total else "analysing"
        self._stream.write(f"\r{what} [{'#' * filled}{'.' * (WIDTH - filled)}] {ratio:4.0%}{self._files}\x1b[K")
        self._stream.flush()

"""Whether memory suffices for a window's end: torch keeps a window whole, and takes several times as much to end it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from deepscope.capture.counters.container import available_bytes, unmapped_bytes
from deepscope.capture.process_hooks.interrupts import is_main_thread
from deepscope.capture.process_hooks.threads import call_soon

_TIMES_THE_GROWTH = 10
"""Measured with torch 2.13: 5 times what a window has added to the process, 8 to 11 times with `profile_memory`."""
_SHARE = 2
"""Half of what is free is left to others, and to the processes that rewrite the trace."""
_EVERY_S = 1.0


class EndMemory:
    """What the end of a window that begins now will take, as this process grows; on Linux alone, elsewhere no limit.

    `processes`: so many of this host's record the same, and end their windows at once.
    """

    def __init__(
        self,
        processes: int = 1,
        *,
        root: Path = Path("/"),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._processes = processes
        self._root = root
        self._clock = clock
        self._looked_s = clock()
        self._began_bytes = unmapped_bytes(root)

    def shortage(self) -> tuple[int, int] | None:
        """The bytes that the end may take and those that are free, where these are too few; looks once a second."""
        now = self._clock()
        if now - self._looked_s < _EVERY_S:
            return None
        self._looked_s = now
        needed = _TIMES_THE_GROWTH * (unmapped_bytes(self._root) - self._began_bytes)
        if needed <= 0:
            return None
        free = available_bytes(self._root) // self._processes
        return (needed, free) if _SHARE * needed > free else None


class EndMemoryWatch:
    """Looks at the memory of a window in which no step does: on a thread of its own, until `stop`.

    Where `shortage` finds too little, the main thread calls `end` with it, between two of its instructions. A window
    that another thread opened is not watched, since no call reaches that thread.
    """

    def __init__(self, shortage: Callable[[], tuple[int, int] | None], end: Callable[[tuple[int, int]], None]) -> None:
        self._shortage = shortage
        self._end = end
        self._is_over = threading.Event()
        if is_main_thread():
            threading.Thread(target=self._run, name="deepscope-end-memory", daemon=True).start()

    def stop(self) -> None:
        """Call `end` no more."""
        self._is_over.set()

    def _run(self) -> None:
        while not self._is_over.wait(_EVERY_S):
            if short := self._shortage():
                call_soon(partial(self._end_once, short))
                return

    def _end_once(self, short: tuple[int, int]) -> None:
        if not self._is_over.is_set():
            self._is_over.set()
            self._end(short)

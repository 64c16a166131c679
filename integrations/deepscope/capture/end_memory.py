"""Whether memory suffices for a window's end: torch keeps a window whole, and takes several times as much to end it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from deepscope.capture.counters.process_memory import available_bytes, unmapped_bytes

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

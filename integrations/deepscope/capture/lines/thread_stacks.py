"""Which stack is the current thread's: one of the thread that opened the window, and one of each that torch records."""

from __future__ import annotations

import threading
from _thread import get_ident

from deepscope.capture.lines.emit import profiler_enabled
from deepscope.capture.lines.running_frame import Stack


class ThreadStacks:
    """The stacks of one window by thread; made on the thread that opens it, its owner."""

    def __init__(self, *, only_owner: bool) -> None:
        self.owner = get_ident()
        self.own: Stack = []
        """The owner's stack."""
        self.is_open = True
        """Until the window ends."""
        self._only_owner = only_owner
        self._local = threading.local()
        self._foreign: list[Stack] = []
        self._unrecorded: list[int] = []
        # A recording of all threads is no thread's own: torch then says "not enabled" even where the window was opened.
        self._records_all_threads = not profiler_enabled()

    @property
    def recorded(self) -> int:
        """Threads that torch recorded while user code ran on them."""
        return 1 + len(self._foreign)

    @property
    def unrecorded(self) -> int:
        """Threads on which user code ran and torch did not record."""
        return len(self._unrecorded)

    @property
    def is_owner(self) -> bool:
        """Whether the current thread is the owner."""
        return get_ident() == self.owner

    @property
    def all(self) -> list[Stack]:
        """The owner's stack and those of the other threads."""
        return [self.own, *self._foreign]

    def miss(self) -> None:
        """Note that user code runs on the current thread while torch does not record there; once a thread."""
        if self.is_open and not hasattr(self._local, "stack") and not hasattr(self._local, "is_missed"):
            self._local.is_missed = True
            self._unrecorded.append(get_ident())

    def foreign(self) -> Stack | None:
        """The current thread's stack, for a thread other than the owner; None while torch does not record there.

        Torch may record on a thread for a while only (autograd's device threads: within a backward pass), so an empty
        stack is a reason to ask again.
        """
        stack: Stack | None = getattr(self._local, "stack", None)
        if stack:
            return stack
        if not self.is_open or self._only_owner or not (self._records_all_threads or profiler_enabled()):
            return None
        if stack is None:
            stack = self._local.stack = []
            self._foreign.append(stack)
        return stack

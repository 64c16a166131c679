"""What the writing of a trace waits for: something that steps behind its window tell."""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic

_EVERY_S = 0.05


class AwaitedSteps:
    """Made on the thread that makes the steps; `wait` is for the one that writes the trace."""

    def __init__(self) -> None:
        self._training = threading.current_thread()
        self._threads = {self._training, threading.main_thread()}  # the interpreter ends after the main one
        self._over = threading.Event()

    @property
    def is_over(self) -> bool:
        """Whether nobody waits any longer."""
        return self._over.is_set()

    @property
    def is_training_thread(self) -> bool:
        """Whether the caller makes the steps itself; it never waits for them."""
        return threading.current_thread() is self._training

    def end(self) -> None:
        """What was waited for is there, or will not come."""
        self._over.set()

    def wait(self, longest_s: float, is_hopeful: Callable[[], bool] = lambda: True) -> None:
        """Return after `end`, after so many seconds, as the thread of the steps ends, or where there is no hope."""
        if self.is_training_thread:
            return
        until = monotonic() + longest_s
        while monotonic() < until and is_hopeful() and all(one.is_alive() for one in self._threads):
            if self._over.wait(_EVERY_S):
                return

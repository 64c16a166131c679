"""Traces that are being written when a recording ends: SIGTERM has the process wait for them."""

from __future__ import annotations

from collections.abc import Callable

from deepscope.capture.surroundings import termination


class Pending:
    """One of them."""

    def __init__(self) -> None:
        self._is_over = False

    def keep(self, save: Callable[[], None]) -> bool:
        """Have SIGTERM call `save` until this is over; returns whether it is not."""
        if not self._is_over:
            termination.keep_at_end(self, save)
        if self._is_over:  # since then, on its own thread
            termination.forget(self)
        return not self._is_over

    def end(self) -> None:
        """It is written."""
        self._is_over = True
        termination.forget(self)

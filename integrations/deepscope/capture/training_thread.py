"""The thread that trains, and whether something goes on there that others may be part of."""

from __future__ import annotations

import threading
from _thread import get_ident


class TrainingThread:
    """The thread that tells of steps first; until then the one that this is made on.

    Of things within each other only the outermost counts: a data set may have loaders of its own.
    """

    def __init__(self) -> None:
        self._number = get_ident()
        self._is_known = False
        self._depth = 0

    @property
    def is_here(self) -> bool:
        """Whether it is the current thread."""
        return get_ident() == self._number

    @property
    def is_free(self) -> bool:
        """Whether it is the current thread, and nothing goes on there."""
        return not self._depth and get_ident() == self._number

    def adopt(self) -> bool:
        """A step is reported here; whether this is the thread that trains, as also one is that comes after it."""
        if not self.is_here and not (self._is_known and _is_alive(self._number)):
            self._number, self._depth = get_ident(), 0
        is_here = self.is_here
        self._is_known = self._is_known or is_here
        return is_here

    def begin(self) -> bool:
        """Whether what begins here counts."""
        if get_ident() != self._number:
            return False
        self._depth += 1
        return self._depth == 1

    def ends(self) -> bool:
        """Whether what ends here counts; it goes on until `end` then."""
        if get_ident() != self._number or not self._depth:
            return False
        if self._depth == 1:
            return True
        self._depth -= 1
        return False

    def end(self) -> None:
        """What counts has ended."""
        self._depth = 0


def _is_alive(thread: int) -> bool:
    return any(one.ident == thread for one in threading.enumerate())

"""Room on Python's stack for the hooks: near the recursion limit they would end code that runs well without them.

A hook is a function that Python calls in the user's place. So while hooks are in, the limit is raised by what they
need; code that would have gone past its own limit meets the raised one a few frames later.
"""

from __future__ import annotations

import sys
from contextlib import suppress

_FRAMES = 100
"""The deepest hook, one that gives up and warns, takes some thirty."""


class RecursionHeadroom:
    """Raises the recursion limit from `take` until `give_back`, which may be called twice."""

    def __init__(self) -> None:
        self._before = 0
        self._raised = 0

    def take(self) -> None:
        """Raise the limit."""
        self._before = sys.getrecursionlimit()
        self._raised = self._before + _FRAMES
        sys.setrecursionlimit(self._raised)

    def give_back(self) -> None:
        """Set the limit back, unless somebody has set another one meanwhile."""
        raised, self._raised = self._raised, 0
        if raised and sys.getrecursionlimit() == raised:
            with suppress(RecursionError):  # called from deeper than that: the next window does not add to it
                sys.setrecursionlimit(self._before)

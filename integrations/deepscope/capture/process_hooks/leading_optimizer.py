"""The optimizer whose steps are the program's: the first one, and one that goes on where that one has ended."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

_FOLLOWERS = 64
"""After so many steps of other optimizers, and none of the leading one, another one leads."""


class LeadingOptimizer:
    """Held weakly: a program may train one model after the other."""

    def __init__(self) -> None:
        self._leader: Callable[[], Any] = lambda: None
        self._others = 0
        self._most_others = 0
        """Between two steps of the one that leads."""
        self.missed = 0
        """Steps before this one that were the program's, too, as is known since another one leads."""

    def leads(self, optimizer: Any, *, may_change: bool = True) -> bool:
        """Whether the step that `optimizer` has made is one of the program's."""
        if self._leader() is optimizer:
            self._most_others = max(self._most_others, self._others)
            self._others = self.missed = 0
            return True
        self._others += 1
        if self._leader() is None or (self._others >= _FOLLOWERS and may_change):
            self._leader = weakref.ref(optimizer)
            self.missed, self._others, self._most_others = self._others - 1, 0, 0
            return True
        return False

    @property
    def missed_at_end(self) -> int:
        """Steps behind the last one of the leader, if they are more than those of others that come between its own."""
        return self._others if self._others > 2 * self._most_others + 1 else 0

"""Recordings in a forked child: they stay with the parent, and the child abandons them."""

from __future__ import annotations

import os
import weakref
from typing import Protocol, TypeVar


class Abandoned(Protocol):
    """Something with hooks, which a forked child inherits."""

    def abandon(self) -> None:
        """In a forked child, where nobody records: take the hooks out and end nothing."""


Open = TypeVar("Open", bound=Abandoned)


def abandoned_in_children() -> weakref.WeakSet[Open]:
    """A set for what is open; a forked child abandons all that is in it, and begins with an empty one."""
    opened: weakref.WeakSet[Open] = weakref.WeakSet()

    def after_fork() -> None:
        for one in list(opened):
            one.abandon()
        opened.clear()

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=after_fork)
    return opened

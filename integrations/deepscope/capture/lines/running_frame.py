"""One running frame on a thread's stack, and the scopes that must outlive every recording."""

from __future__ import annotations

import sys
from contextlib import suppress
from types import CodeType

from deepscope.capture.lines.emit import Pair
from deepscope.capture.lines.table import FunctionState, Slot

_kept_forever: list[object] = []


def keep_forever(thing: object) -> None:
    """Keep for ever what may hold an open scope: freed during a later window it corrupts torch's heap."""
    _kept_forever.append(thing)


class StackEntry:
    """A running frame of user code, or a module's call, with the scope that it has open.

    Entries are used again, and the hooks set these by hand: a constructor would cost as much as all the rest of a call.
    """

    __slots__ = ("code", "function", "is_special", "is_stale", "line", "pair", "pool", "quiet", "sequence", "since")

    code: CodeType
    function: FunctionState
    line: int
    """The line that runs; 0 before the first, and for a module's call."""
    pair: Pair | None
    """The open scope; None where there is none."""
    pool: list[Pair]
    """Where `pair` goes when it closes."""
    is_special: bool
    """This frame, or one below it on the stack, is at a line past its budget or stale: the rules are in `stacks.py`."""
    is_stale: bool
    """The detail of its function was lowered: it gets another scope when it goes on. It is then `is_special`, too."""
    quiet: Slot | None
    """The line past its budget; where it has its scope it is on trial. Meaningful only where `is_special`."""
    since: int
    """`perf_counter_ns` from when on this frame has been at work in that line."""
    sequence: int
    """Autograd's sequence number at that moment, for a library's line on trial."""


Stack = list[StackEntry]
"""The frames of one thread, outermost first."""


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

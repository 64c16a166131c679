"""The profiler's own scopes, the running frames that have one open, and each thread's stack of those frames."""

from __future__ import annotations

import sys
import threading
from _thread import get_ident
from collections.abc import Callable
from contextlib import suppress
from types import CodeType
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from deepscope.capture.lines.table import FunctionState, Slot

Enter = Callable[[], Any]
Exit = Callable[[], Any]
Pair = tuple[Enter, Exit]
"""Opens and closes one reusable scope; never opened twice without being closed in between."""


def make_pair(name: str) -> Pair:
    """A scope of that name (ASCII, no quotes: Kineto's writer breaks on both).

    Torch's fast scope costs 0.4 µs a run; where a torch has none, `record_function` stands in at ten times that.
    """
    fast = getattr(getattr(torch._C, "_profiler", None), "_RecordFunctionFast", None)
    if fast is not None:
        scope = fast(name)
        return scope.__enter__, scope.__exit__
    slow = torch.profiler.record_function(name)
    return slow.__enter__, lambda: slow.__exit__(None, None, None)


sequence_number: Callable[[], int] = getattr(torch.autograd, "_get_sequence_nr", int)
"""What autograd has counted on this thread: each operator that it must know of for a backward pass. 0 where torch does
not tell."""


def profiler_enabled() -> bool:
    """Whether this thread has a recording of its own; one of all threads (`profile_all_threads`) does not count.

    True where torch cannot tell: entering is then torch's own affair, and without a recording it does nothing.
    """
    enabled = getattr(torch.autograd, "_profiler_enabled", None)
    return bool(enabled()) if enabled is not None else True


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

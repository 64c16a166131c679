"""The functions of the code that is recorded, their running frames, and the stack of those on each thread."""

from __future__ import annotations

import sys
import threading
from _thread import get_ident
from collections.abc import Callable
from contextlib import suppress
from types import CodeType, FrameType

from deepscope.capture.dynamo import continued_function, is_compiled
from deepscope.capture.lines.bytecode import (
    CodeLoop,
    Detail,
    line_starts,
    only_line,
    opens_at_start,
    resume_offset,
    users_line_starts,
)
from deepscope.capture.lines.recorded_code import LibraryCode
from deepscope.capture.lines.scopes import SILENT, Pair, Slot, profiler_enabled

HIDDEN = -1
"""In place of a line: the instruction is none of the user's."""


class FunctionState:
    """What the hooks need to know of a code object; keeps it alive, so that its `id` stays its own."""

    __slots__ = (
        "calls",
        "code",
        "detail",
        "first_line",
        "hidden_line",
        "holds",
        "is_continuation",
        "is_library",
        "is_lowered",
        "known",
        "line_starts",
        "lines",
        "loops",
        "meet",
        "name",
        "only_line",
        "opens_at_start",
        "resume_offset",
        "seen",
        "silent_lines",
        "whole",
    )

    def __init__(self, code: CodeType) -> None:
        self.code = code
        self.lines: dict[int, Slot] = {}
        name = getattr(code, "co_qualname", code.co_name)  # co_qualname came with 3.11
        continued = continued_function(code)
        self.name: str = continued or name
        self.first_line = code.co_firstlineno
        self.is_continuation = bool(continued)
        """Whether dynamo made it of what comes after a graph break: its caller is the function that it goes on with."""
        self.resume_offset = resume_offset(code)
        self.opens_at_start = self.is_continuation or opens_at_start(code)
        self.only_line = only_line(code)
        """As `bytecode.only_line`, as long as it runs from that line alone and calls no function of the user's."""
        is_written = self.is_continuation or is_compiled(code)
        users_own = users_line_starts(code) if is_written else None
        self.line_starts = users_own or line_starts(code)
        """The offsets of its lines, for a long function, a compiled one and one with silent loops."""
        self.hidden_line = HIDDEN if users_own else code.co_firstlineno if is_written else 0
        """A line that never has a scope: in compiled code the definition, where all that has no line stands."""
        self.calls = 0
        self.seen = 0
        """Entries of its lines up to when the costs were last looked at."""
        self.detail = Detail.LINES
        self.whole: Slot | None = None
        """The scope of all its lines together, from `Detail.FUNCTION` on."""
        self.loops: list[CodeLoop] = []
        """Those whose lines have no scopes of their own."""
        self.silent_lines: frozenset[int] = frozenset()
        """The lines that run in such loops alone."""
        self.is_library = False
        self.known: LibraryCode | None = None
        """Of a library's function: what its code says, and earlier windows."""
        self.holds = False
        """Of a library's function: whether an operator has been seen in it."""
        self.is_lowered = False
        """Of a library's function: whether it is left alone because it was too expensive."""
        self.meet: Callable[[FrameType], None] | None = None
        """Is told of a frame that starts."""

    @property
    def silent_runs(self) -> int:
        """Runs of its lines that got no scope because they hold no operator."""
        return sum(slot.silent_runs for slot in self.lines.values())

    def begins_silent(self, line: int) -> bool:
        """Of a library's function: whether no scope of its frame can be open when `line` begins, nor opens then."""
        known = self.known
        return known is not None and all(map(self._is_silent, (line, *known.before(line))))

    def _is_silent(self, line: int) -> bool:
        slot = self.lines.get(line)
        if slot is not None:
            return slot.left <= SILENT
        return self.known is not None and self.known.holds_nothing(line)

    def loop_at(self, offset: int) -> CodeLoop | None:
        """The silent loop that the instruction at `offset` is a part of."""
        return next((loop for loop in self.loops if offset in loop.offsets), None) if self.loops else None

    def place(self, frame: FrameType) -> int | None:
        """The line whose scope is to be open while the frame is where it is."""
        if self.meet is not None:
            self.meet(frame)
        if (loop := self.loop_at(frame.f_lasti)) is not None:
            return loop.line
        if self.hidden_line == HIDDEN and self.line_starts and frame.f_lasti < min(self.line_starts):
            return HIDDEN
        return frame.f_lineno


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

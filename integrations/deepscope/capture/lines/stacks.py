"""The open scopes of each thread: one stack a thread, one entry a running frame of user code, closed last in first out.

What is here is the whole of the rules and not fast. The hooks repeat its commonest paths inline: the next line of a
frame, a call and a return, where no line past its budget is near.
"""

from __future__ import annotations

import threading
from _thread import get_ident
from collections.abc import Callable
from time import perf_counter_ns
from types import CodeType, FrameType
from typing import TYPE_CHECKING

from deepscope.capture.lines.emit import Pair, profiler_enabled
from deepscope.capture.lines.entry import Entry, Stack, bury
from deepscope.capture.lines.quiet import QuietLines, Verdict
from deepscope.capture.lines.table import Function, ScopeTable, Slot

if TYPE_CHECKING:
    from deepscope.capture.lines.modules import ModuleCalls

__all__ = ["Adopt", "Stacks"]

Adopt = Callable[[CodeType], "Function | None"]
"""The facts of a code object that was not seen before; None for code that gets no scopes."""


class Stacks:
    """The stacks of one window. `owner` is the thread that the window was opened on; `own` its stack."""

    def __init__(
        self, table: ScopeTable, modules: ModuleCalls | None, dispatch_ns: int = 0, *, only_owner: bool = False
    ) -> None:
        self._only_owner = only_owner
        self._table = table
        self._modules = modules
        self._quiet = QuietLines(table.budget, dispatch_ns)
        self.owner = get_ident()
        self.own: Stack = []
        self.spare: list[Entry] = []
        """Entries to use again."""
        self.adopt: Adopt = lambda _code: None
        self._local = threading.local()
        self._foreign: list[Stack] = []
        self._is_open = True
        # A recording of all threads is no thread's own: torch then says "not enabled" even where the window was opened.
        self._records_all_threads = not profiler_enabled()

    @property
    def threads(self) -> int:
        """Threads that torch recorded while user code ran on them."""
        return 1 + len(self._foreign)

    def foreign(self) -> Stack | None:
        """The current thread's stack, for a thread other than the owner; None while torch does not record there.

        Torch may record on a thread for a while only (autograd's device threads: within a backward pass), so an empty
        stack is a reason to ask again.
        """
        stack: Stack | None = getattr(self._local, "stack", None)
        if stack:
            return stack
        if not self._is_open or self._only_owner or not (self._records_all_threads or profiler_enabled()):
            return None
        if stack is None:
            stack = self._local.stack = []
            self._foreign.append(stack)
        return stack

    def enter(self, stack: Stack, function: Function) -> Entry:
        """Put a frame that starts (or goes on) on the stack, with no scope yet."""
        is_special = bool(stack) and stack[-1].is_special
        if is_special:
            self._quiet.settle(stack)
        entry = self.spare.pop() if self.spare else Entry()
        entry.code = function.code
        entry.function = function
        entry.line = 0
        entry.pair = None
        entry.is_special = is_special
        entry.quiet = None
        stack.append(entry)
        return entry

    def set_line(self, stack: Stack, line: int | None) -> None:
        """The top frame is at `line` now (None: at code of no line); its scope takes the place of the last."""
        entry = stack[-1]
        if line is not None and entry.line != line:
            slot = entry.function.lines.get(line) or self._table.line(entry.function, line)
            if slot is None:
                self._go_without(stack, line)
            else:
                slot.left -= 1
                self.run(stack, slot, line)

    def run(self, stack: Stack, slot: Slot, line: int) -> None:
        """A run of `slot`, already counted, begins in the top frame at `line`."""
        entry = stack[-1]
        if entry.is_special:
            self._quiet.settle(stack)
        verdict = self._quiet.judge(slot) if slot.left < 0 else Verdict.NORMAL
        if verdict is not Verdict.QUIET and entry.is_special:
            entry.quiet = None
            self._reveal(stack)
        self._close(entry)
        entry.line = line
        if verdict is Verdict.NORMAL:
            self._take(entry, slot)[0]()
            return
        if verdict is Verdict.TRIAL:
            self._quiet.open_on_trial(self._take(entry, slot))
        entry.is_special = True
        entry.quiet = slot
        entry.since = perf_counter_ns()

    def _go_without(self, stack: Stack, line: int) -> None:
        entry = stack[-1]
        if entry.is_special:
            self._quiet.settle(stack)
            entry.quiet = None
        self._close(entry)
        entry.line = line

    def leave(self, stack: Stack) -> None:
        """The top frame ends or suspends itself."""
        entry = stack[-1]
        if entry.is_special:
            self._quiet.settle(stack)
        self._close(entry)
        stack.pop()
        self.spare.append(entry)
        if stack and stack[-1].is_special:
            stack[-1].since = perf_counter_ns()

    def leave_to(self, stack: Stack, code: CodeType) -> None:
        """The innermost frame of `code` ends, and with it what lies above it: the end of that was not seen."""
        for depth in range(len(stack) - 1, -1, -1):
            if stack[depth].code is code:
                self._cut(stack, depth)
                return

    def align(self, stack: Stack, frame: FrameType | None) -> None:
        """Make the stack that of the frames which run now, `frame` being the innermost.

        For frames that were running before the hooks went in, and after an event was lost.
        """
        functions, adopt = self._table.functions, self.adopt
        running: list[tuple[Function, FrameType]] = []
        while frame is not None:
            function = functions.get(id(frame.f_code)) or adopt(frame.f_code)
            if function is not None:
                running.append((function, frame))
            frame = frame.f_back
        running.reverse()
        common = 0
        while common < min(len(stack), len(running)) and stack[common].code is running[common][0].code:
            common += 1
        self._cut(stack, common)
        if common and common == len(running):
            self._set_frame(stack, running[-1][1])
        for function, outer in running[common:]:
            if self._modules is not None and function.code is self._modules.code:
                self._modules.enter(stack, function, outer)
            else:
                self.enter(stack, function)
                self._set_frame(stack, outer)

    def end(self) -> bool:
        """Close the scopes of this thread, if it is the owner; what other threads have open stays open for ever.

        Returns whether it is. Called when no hook is in place any more, while torch still records.
        """
        is_owner = get_ident() == self.owner
        if is_owner:
            self._cut(self.own, 0)
        self.abandon()
        return is_owner

    def abandon(self) -> None:
        """Forget all that is open without closing it."""
        self._is_open = False
        stacks = [stack for stack in (self.own, *self._foreign) if stack]
        if stacks:
            bury((self._table.slots, [list(stack) for stack in stacks]))
        for stack in stacks:
            stack.clear()

    def _set_frame(self, stack: Stack, frame: FrameType) -> None:
        if self._modules is None or frame.f_code is not self._modules.code:
            self.set_line(stack, frame.f_lineno)

    def _cut(self, stack: Stack, depth: int) -> None:
        while len(stack) > depth:
            self.leave(stack)

    def _reveal(self, stack: Stack) -> None:
        """Give all frames of the stack their scopes, since one is about to open above them."""
        for entry in stack:
            if not entry.is_special:
                continue
            slot = entry.quiet
            is_on_trial = slot is not None and entry.pair is not None
            if slot is not None and not is_on_trial:
                slot.granted += 1
                slot.missed -= 1
                slot.long += 1
                self._take(entry, slot)[0]()
                entry.quiet = None
            entry.is_special = is_on_trial

    def _take(self, entry: Entry, slot: Slot) -> Pair:
        """Give the entry an idle scope of `slot`, for the caller to open."""
        entry.pair = pair = slot.pool.pop() if slot.pool else slot.pair()
        entry.pool = slot.pool
        return pair

    def _close(self, entry: Entry) -> None:
        """Close the entry's scope, if it has one; one that Ctrl-C left closed already says so, which is no matter."""
        pair = entry.pair
        if pair is None:
            return
        entry.pair = None
        try:
            pair[1]()
        except RuntimeError:
            bury(pair)
        else:
            entry.pool.append(pair)

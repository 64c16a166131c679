"""The open scopes of each thread: one stack a thread, one entry a running frame of user code, closed last in first out.

All the rules are here, and they are not fast. So the hooks repeat the commonest paths inline: the next line of a frame,
a call and a return, where no line past its budget is near.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import perf_counter_ns, thread_time_ns
from types import CodeType, FrameType

from deepscope.capture.lines.bytecode import Detail
from deepscope.capture.lines.calibration import HookWork
from deepscope.capture.lines.frames import FunctionState, Stack, StackEntry, ThreadStacks
from deepscope.capture.lines.modules import ModuleCalls
from deepscope.capture.lines.overhead_budget import TRIAL_RUNS, LineDetail, OverheadBudget, QuietLines
from deepscope.capture.lines.scopes import SILENT, Pair, Slot, keep_forever, sequence_number
from deepscope.capture.lines.table import ScopeTable
from deepscope.capture.lines.time_marks import UNPAID, TimeMarks

_SILENT_CALLS, _SILENT_RUNS = 8, 256
"""Calls of a library's function without an operator, or runs of its lines, after which it is left alone."""
_OWN_CALLS, _OWN_TRIALS = 256, 4
"""Calls of a function of one line after which it is tried out whether it holds anything, and how often it is."""
_LOOK_MASK = 7
"""At a silent line's first run, and at two of so many and one more, its function is looked at."""

Adopt = Callable[[CodeType], "FunctionState | None"]
"""The facts of a code object that was not seen before; None for code that gets no scopes."""


class Stacks:
    """The stacks of one window, and what becomes of their scopes."""

    def __init__(
        self,
        table: ScopeTable,
        modules: ModuleCalls,
        overhead_budget: OverheadBudget,
        dispatch_ns: int = 0,
        *,
        only_owner: bool = False,
    ) -> None:
        self.threads = ThreadStacks(only_owner=only_owner)
        self.marks = TimeMarks(self.threads, overhead_budget, are_wanted=not only_owner)
        self._table = table
        self._modules = modules
        self.module_code = modules.code
        """Of a module's call; None where these have no scopes."""
        self._overhead_budget = overhead_budget
        self._costs = overhead_budget.costs
        self._quiet = QuietLines(table.budget, dispatch_ns, overhead_budget)
        self.spare: list[StackEntry] = []
        """Entries to use again."""
        self.adopt: Adopt = lambda _code: None
        self.look: Callable[[Stack], None] | None = None
        """Called when the overhead_budget says that a look is due."""
        self.drop: Callable[[FunctionState, Stack], None] = lambda _function, _stack: None
        """Called for a function that gets no scopes any more."""
        self._is_aligning = False
        self._has_lines = True

    def new_line(self, function: FunctionState, line: int) -> Slot | None:
        """The slot of a line that runs for the first time."""
        started = thread_time_ns()
        slot = self._table.line(function, line)
        if slot is not None and not slot.pool and slot.left > SILENT:
            slot.pool.append(slot.pair())
        self._overhead_budget.add_set_up(thread_time_ns() - started)
        if self._overhead_budget.unpaid >= UNPAID and self.threads.is_owner:
            self.marks.pay(self.threads.own)
        return slot

    def needs_no_events(self, stack: Stack, function: FunctionState) -> bool:
        """Whether a function of one line, about to run, has been left alone: it runs from that line and holds nothing.

        All that it does then stands at its line anyway. What holds an operator or calls the user's functions keeps its
        place among the callers.
        """
        caller = stack[-1] if stack else None
        line = function.only_line
        if caller is None or caller.line != line or caller.code.co_filename != function.code.co_filename:
            function.only_line = 0
            return False
        slot = function.lines.get(line)
        if slot is None or function.calls < _OWN_CALLS:
            return False
        if function.calls % _OWN_CALLS == 0 and function.calls <= _OWN_TRIALS * _OWN_CALLS:
            slot.try_again()
        if slot.judged <= TRIAL_RUNS or slot.seems_to_hold:
            return False
        self.drop(function, stack)
        return function.detail is Detail.CALLER

    def enter(self, stack: Stack, function: FunctionState) -> StackEntry:
        """Put a frame that starts (or goes on) on the stack, with no scope yet."""
        is_special = bool(stack) and stack[-1].is_special
        if is_special:
            if not function.only_line:
                stack[-1].function.only_line = 0
            self._quiet.settle(stack)
            if not self._has_lines and any(entry.code is not self.module_code for entry in stack):
                self.cut(stack, 0)
                is_special = False
        entry = self.spare.pop() if self.spare else StackEntry()
        function.calls += 1
        self._overhead_budget.started += 1
        self._overhead_budget.unpaid += 1
        entry.code = function.code
        entry.function = function
        entry.line = 0
        entry.pair = None
        entry.is_special = is_special
        entry.is_stale = False
        entry.quiet = None
        stack.append(entry)
        return entry

    def enter_module(self, stack: Stack, function: FunctionState, frame: FrameType) -> None:
        """A frame of `module_code` starts: open the scope of the module that it calls."""
        costs, modules, spare = self._costs, self._modules, self.spare
        started = 0 if costs.is_complete or modules.is_new(frame) else perf_counter_ns()
        slot = modules.slot_of(stack, frame)
        slot.left -= 1
        self._overhead_budget.modules += 1
        if not spare or (stack and stack[-1].is_special):
            self.enter(stack, function)
            self.run(stack, slot, 0)
        else:
            entry = spare.pop()
            function.calls += 1
            entry.code = function.code
            entry.function = function
            entry.line = 0
            entry.is_special = False
            entry.pair = pair = slot.pool.pop() if slot.pool else slot.pair()
            entry.pool = slot.pool
            stack.append(entry)
            pair[0]()
        if started:
            costs.add(HookWork.MODULE, perf_counter_ns() - started)

    def set_line(self, stack: Stack, line: int | None) -> None:
        """The top frame is at `line` now (None: at code of no line); its scope takes the place of the last."""
        entry = stack[-1]
        slot = entry.function.whole
        if slot is not None:
            line = entry.code.co_firstlineno
        if line is not None and entry.line != line:
            slot = slot or entry.function.lines.get(line) or self.new_line(entry.function, line)
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
        elif slot.left < SILENT:
            self.pass_over(stack, slot, line)
            return
        verdict = self._quiet.judge(slot) if slot.left < 0 else LineDetail.NORMAL
        if verdict is LineDetail.SILENT:
            entry.quiet = None
            entry.is_special = entry.is_stale or (len(stack) > 1 and stack[-2].is_special)
            self.pass_over(stack, slot, line)
            return
        is_holding = verdict is LineDetail.NORMAL and not slot.is_unproven
        if is_holding:
            entry.function.holds = True
        if verdict is not LineDetail.QUIET and entry.is_special:
            entry.quiet = None
            if is_holding:
                self._quiet.prove(stack)
            self._reveal(stack)
        self._close(entry)
        entry.line = line
        if verdict is LineDetail.NORMAL:
            self._take(entry, slot)[0]()
        else:
            if verdict is LineDetail.TRIAL:
                self._quiet.open_on_trial(self._take(entry, slot))
            entry.is_special = True
            entry.quiet = slot
            entry.sequence = sequence_number() if slot.is_unproven else 0
            entry.since = perf_counter_ns()
        if self._overhead_budget.is_due and self.look is not None and not self._is_aligning:
            self.look(stack)
        if self._overhead_budget.unpaid >= UNPAID:
            self.marks.pay(stack)

    def pass_over(self, stack: Stack, slot: Slot, line: int) -> bool:
        """The top frame is at a library's line without operators; whether its events need not be heard any more."""
        self._overhead_budget.silent += 1
        entry = stack[-1]
        pair = entry.pair
        if pair is not None:
            entry.pair = None
            pair[1]()
            entry.pool.append(pair)
        entry.line = line
        return (slot.left + 1) & _LOOK_MASK < 2 and self.look_at_silent(stack, line)

    def look_at_silent(self, stack: Stack, line: int) -> bool:
        """The top frame, of a library, is at a silent line; whether its events need not be heard any more."""
        function = stack[-1].function
        if function.holds:
            return function.begins_silent(line)
        self._drop_silent(stack, function)
        return False

    def _drop_silent(self, stack: Stack, function: FunctionState) -> None:
        """Leave a library's function alone, the current frame's, if no operator was seen in it for long enough."""
        if function.calls < 2 or function.holds:
            return
        if any(slot.trials and slot.left > SILENT for slot in function.lines.values()):
            return
        if function.calls >= _SILENT_CALLS or function.silent_runs > _SILENT_RUNS:
            self.drop(function, stack)

    def _go_without(self, stack: Stack, line: int) -> None:
        entry = stack[-1]
        if entry.is_special:
            self._quiet.settle(stack)
            entry.quiet = None
        self._close(entry)
        if entry.function.is_continuation and not entry.line and len(stack) > 1:
            self._end_continued(entry.function, stack[-2])
        entry.line = line

    def _end_continued(self, function: FunctionState, entry: StackEntry) -> None:
        """A frame starts that goes on for the one below it, in which the line of the graph break has come to its end.

        What is compiled of the rest then belongs to the line that called the compiled function.
        """
        if entry.function.name == function.name:
            function.first_line = entry.function.first_line
            if not entry.is_special:
                self._close(entry)
                entry.line = 0

    def leave(self, stack: Stack) -> None:
        """The top frame ends or suspends itself."""
        self._take_off(stack)
        self.refresh(stack)

    def _take_off(self, stack: Stack) -> None:
        entry = stack[-1]
        if entry.is_special:
            self._quiet.settle(stack)
        self._close(entry)
        stack.pop()
        self.spare.append(entry)
        if stack and stack[-1].is_special:
            stack[-1].sequence = sequence_number()
            stack[-1].since = perf_counter_ns()

    def leave_to(self, stack: Stack, code: CodeType) -> None:
        """The innermost frame of `code` ends, and with it the frames above it, whose ends were not seen."""
        for depth in range(len(stack) - 1, -1, -1):
            if stack[depth].code is code:
                self.cut(stack, depth)
                self.refresh(stack)
                return

    def align(self, stack: Stack, frame: FrameType | None) -> None:
        """Make the stack that of the frames which run now, `frame` being the innermost.

        For frames that were running before the hooks went in, and after an event was lost.
        """
        self._is_aligning = True
        try:
            self._align(stack, frame)
        finally:
            self._is_aligning = False

    def _align(self, stack: Stack, frame: FrameType | None) -> None:
        functions, adopt = self._table.functions, self.adopt
        running: list[tuple[FunctionState, FrameType]] = []
        while frame is not None:
            function = functions.get(id(frame.f_code)) or adopt(frame.f_code)
            if function is not None:
                running.append((function, frame))
            frame = frame.f_back
        running.reverse()
        common = 0
        while common < min(len(stack), len(running)) and stack[common].code is running[common][0].code:
            common += 1
        self.cut(stack, common)
        if common and common == len(running):
            self._set_frame(stack, running[-1][1])
        for function, outer in running[common:]:
            if function.code is self.module_code:
                self.enter_module(stack, function, outer)
            else:
                self.enter(stack, function)
                self._set_frame(stack, outer)

    def refresh(self, stack: Stack) -> None:
        """The top frame of the current thread's stack is at work (again): if it is stale, open its new scope."""
        if not stack or not stack[-1].is_stale:
            return
        entry = stack[-1]
        entry.is_stale = False
        entry.is_special = len(stack) > 1 and stack[-2].is_special
        entry.quiet = None
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code is not entry.code:
            frame = frame.f_back
        if frame is not None:
            self.set_line(stack, entry.function.place(frame))

    def end_lines(self, stack: Stack) -> None:
        """Close all scopes of the current thread's `stack`; other threads close theirs when they enter a module."""
        self.cut(stack, 0)
        self._has_lines = False
        for other in self.threads.all:
            for entry in list(other):
                entry.quiet = None
                entry.is_special = True

    def close_own(self) -> None:
        """Close the scopes of this thread, if it is the owner; `end` must follow, once no hook is in place any more."""
        if self.threads.is_owner:
            self.cut(self.threads.own, 0)

    def end(self) -> None:
        """Close the scopes of this thread, if it is the owner; what other threads have open stays open for ever.

        Called when no hook is in place any more, while torch still records.
        """
        self.close_own()
        self.abandon()

    def abandon(self) -> None:
        """Forget all that is open without closing it."""
        self.threads.is_open = False
        stacks = [stack for stack in self.threads.all if stack]
        if stacks:
            keep_forever((self._table.slots, [list(stack) for stack in stacks]))
        for stack in stacks:
            stack.clear()

    def _set_frame(self, stack: Stack, frame: FrameType) -> None:
        if frame.f_code is not self.module_code:
            self.set_line(stack, stack[-1].function.place(frame))

    def cut(self, stack: Stack, depth: int) -> None:
        """The frames above `depth` on the current thread's stack are over."""
        while len(stack) > depth:
            self._take_off(stack)

    def _reveal(self, stack: Stack) -> None:
        """Give all frames of the stack their scopes, since one is about to open above them."""
        is_stale = False
        for entry in stack:
            if not entry.is_special:
                continue
            is_stale = is_stale or entry.is_stale
            slot = entry.quiet
            is_on_trial = slot is not None and entry.pair is not None
            if slot is not None and not is_on_trial:
                slot.granted += 1
                slot.missed -= 1
                slot.long += 1
                self._take(entry, slot)[0]()
                entry.quiet = None
            entry.is_special = is_on_trial or is_stale

    def _take(self, entry: StackEntry, slot: Slot) -> Pair:
        """Give the entry an idle scope of `slot`, for the caller to open."""
        entry.pair = pair = slot.pool.pop() if slot.pool else slot.pair()
        entry.pool = slot.pool
        return pair

    def _close(self, entry: StackEntry) -> None:
        """Close the entry's scope, if it has one; a scope that Ctrl-C left closed raises, which is no matter."""
        pair = entry.pair
        if pair is None:
            return
        entry.pair = None
        try:
            pair[1]()
        except RuntimeError:
            keep_forever(pair)
        else:
            entry.pool.append(pair)

"""One thread's side of `sys.settrace`: the functions that Python calls for calls, lines and returns of user code.

Python sends no event where a loop ends. So a frame whose loop is silent sends no lines until it calls a function of
Python from elsewhere, or an exception arrives; what it does in C up to then stands at the loop.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import perf_counter_ns, thread_time_ns
from types import CodeType, FrameType
from typing import Any, Protocol

from deepscope.capture.lines.bytecode import CodeLoop, is_resumed
from deepscope.capture.lines.calibration import HookWork
from deepscope.capture.lines.frames import HIDDEN, FunctionState, Stack
from deepscope.capture.lines.overhead_budget import OverheadBudget
from deepscope.capture.lines.stacks import Stacks
from deepscope.capture.lines.table import ScopeTable
from deepscope.capture.lines.time_marks import UNPAID, Pulse, begin_stretch

_MANY_ALONE = 1023
"""A mark tells what calls of code without scopes cost, at each of so many and one more."""

Trace = Callable[[FrameType, str, Any], Any]


class TracedWindow(Protocol):
    """The hooks of a window, over all its threads."""

    table: ScopeTable
    stacks: Stacks
    overhead_budget: OverheadBudget
    fail: Callable[[Exception], None]
    in_place: list[Trace]
    """The trace functions of all threads."""
    is_on: bool

    def adopt(self, code: CodeType) -> FunctionState | None:
        """The facts of a code object that is seen for the first time; None for code that gets no scopes."""

    def let_go(self, frame: FrameType) -> None:
        """Leave a frame alone that had a trace function."""


class TracedThread:
    """The trace functions of one thread, closures over its stack."""

    def __init__(self, hooks: TracedWindow, stack: Stack) -> None:
        self._hooks = hooks
        self._table = hooks.table
        self._stacks = hooks.stacks
        self._overhead_budget = hooks.overhead_budget
        self._stack = stack
        self.files: dict[str, bool] = {}
        """Whether a file has code that gets scopes: Python keeps the hash of a name, and not that of a code object."""
        self.muted: dict[int, CodeLoop] = {}
        """Frames that send no lines, by `id`, and the loop in which that is so."""
        self._pulse = self._stacks.marks.pulse if stack is self._stacks.threads.own else Pulse()
        self.forget_files()
        self.on_local, self.on_module = self._local_functions()
        self.on_local_timed = self._timed_local_function()
        self.on_call = self._call_function()
        hooks.in_place += (self.on_local, self.on_module, self.on_local_timed, self.on_call)

    def forget_files(self) -> None:
        """Which files are of interest has changed."""
        self.files.clear()
        if self._stacks.module_code is not None:
            self.files[self._stacks.module_code.co_filename] = True

    def _call_function(self) -> Trace:  # noqa: PLR0915 - all inline, for speed
        stack, muted, files, pulse = self._stack, self.muted, self.files, self._pulse
        on_local, on_first, on_module = self.on_local, self.on_local_timed, self.on_module
        fail, adopt, stacks, costs = self._hooks.fail, self._hooks.adopt, self._stacks, self._overhead_budget.costs
        functions, dropped, look_at = self._table.functions, self._table.dropped, self._look_at
        spare, enter, set_line, module_code = stacks.spare, stacks.enter, stacks.set_line, stacks.module_code
        enter_module = stacks.enter_module
        long_ns, clock = stacks.marks.long_ns, perf_counter_ns

        overhead_budget, pay, needs_no_events = self._overhead_budget, stacks.marks.pay, stacks.needs_no_events
        end_loop = self._end_loop
        left_alone = 0
        self._overhead_budget.alone.append(lambda: left_alone)

        def on_call(frame: FrameType, _event: str, _arg: Any) -> Any:  # noqa: PLR0912, PLR0915 - as above
            nonlocal left_alone
            try:
                if muted and (caller := frame.f_back) is not None:
                    loop = muted.get(id(caller))
                    if loop is not None and caller.f_lasti not in loop.offsets:
                        end_loop(caller)
                code = frame.f_code
                wanted = id(code) not in dropped and files.get(code.co_filename)
                if wanted is None and (wanted := look_at(code)) is None:
                    return None
                function = (functions.get(id(code)) or adopt(code)) if wanted else None
                if function is None:
                    left_alone += 1
                    if not left_alone & _MANY_ALONE:
                        pay(stack)
                    return None
                if overhead_budget.unpaid >= UNPAID:
                    pay(stack)
                if function.only_line and needs_no_events(stack, function):
                    left_alone += 1
                    return None
                now = clock()
                if now - pulse.last >= long_ns:
                    pulse.long(now)
                pulse.last = now
                if code is module_code:
                    frame.f_trace_lines = False
                    enter_module(stack, function, frame)
                    return on_module
                if not spare or (stack and stack[-1].is_special):
                    enter(stack, function)
                else:
                    entry = spare.pop()
                    function.calls += 1
                    overhead_budget.started += 1
                    overhead_budget.unpaid += 1
                    entry.code = code
                    entry.function = function
                    entry.line = 0
                    entry.pair = None
                    entry.is_special = False
                    stack.append(entry)
                if function.whole is not None:
                    frame.f_trace_lines = False
                    set_line(stack, None)
                elif function.hidden_line == HIDDEN:
                    frame.f_trace_lines, frame.f_trace_opcodes = False, True
                    set_line(stack, HIDDEN)
                elif function.only_line:
                    frame.f_trace_lines = False
                    set_line(stack, function.only_line)
                elif function.meet is not None or is_resumed(frame, function.resume_offset):
                    set_line(stack, function.place(frame))
            except Exception as error:  # noqa: BLE001 - it would reach the user's code
                fail(error)
                return None
            return on_local if costs.is_complete else on_first

        return on_call

    def _look_at(self, code: CodeType) -> bool | None:
        """Whether a file that `files` does not know yet has code that gets scopes; None where the hooks are out."""
        if not self._hooks.is_on:
            sys.settrace(None)
            return None
        started = thread_time_ns()
        wanted = self.files[code.co_filename] = self._table.owns(code)
        self._overhead_budget.add_set_up(thread_time_ns() - started)
        return wanted

    def _timed_local_function(self) -> Trace:
        """`on_local` for as long as samples of what it costs are wanted."""
        stack, on_local, overhead_budget = self._stack, self.on_local, self._overhead_budget
        costs, clock = overhead_budget.costs, overhead_budget.costs.clock

        def on_local_timed(frame: FrameType, event: str, arg: Any) -> Any:
            before = overhead_budget.mark()
            started = clock()
            on_local(frame, event, arg)
            taken = clock() - started
            if costs.is_complete:
                return on_local
            if event in ("line", "return") and (work := overhead_budget.work_since(before)) is not None:
                costs.add(work if event == "line" else HookWork.CALL, taken)
            begin_stretch(stack, perf_counter_ns())
            return on_local_timed

        return on_local_timed

    def _local_functions(self) -> tuple[Trace, Trace]:  # noqa: PLR0915 - all inline, for speed
        stack, muted, pulse = self._stack, self.muted, self._pulse
        fail, new_slot, stacks = self._hooks.fail, self._stacks.new_line, self._stacks
        run, set_line, leave = stacks.run, stacks.set_line, self._leave_function()
        go_on, follow_loop, lost = self._go_on_in_compiled, self._follow_loop, self._lost
        long_ns, clock = stacks.marks.long_ns, perf_counter_ns

        def on_local(frame: FrameType, event: str, _arg: Any) -> Any:  # noqa: PLR0912 - as above
            try:
                now = clock()
                if now - pulse.last >= long_ns:
                    pulse.long(now)
                pulse.last = now
                if event == "line":
                    entry = stack[-1] if stack else None
                    if entry is None or entry.code is not frame.f_code:
                        lost(frame)
                        return
                    line = frame.f_lineno
                    if entry.line == line:
                        if entry.function.loops:
                            follow_loop(frame)
                        return
                    slot = entry.function.lines.get(line) or new_slot(entry.function, line)
                    if slot is None:
                        if follow_loop(frame):
                            return
                        set_line(stack, line)
                        frame.f_trace_lines = entry.function.whole is None
                        return
                    slot.left = left = slot.left - 1
                    if left < 0 or entry.is_special:
                        run(stack, slot, line)
                        return
                    pool = slot.pool
                    pair = pool.pop() if pool else slot.pair()
                    old = entry.pair
                    # Side by side, so that the cost of an entry falls into the line before it.
                    if old is not None:
                        old[1]()
                        entry.pool.append(old)
                    entry.pair = pair
                    entry.pool = pool
                    entry.line = line
                    pair[0]()
                elif event == "return":
                    leave(frame)
                elif event == "opcode":
                    go_on(frame)
                elif muted and muted.pop(id(frame), None) is not None:
                    frame.f_trace_lines = True
            except Exception as error:  # noqa: BLE001 - it would reach the user's code
                fail(error)

        def on_module(frame: FrameType, event: str, _arg: Any) -> Any:
            try:
                if event == "return":
                    now = clock()
                    if now - pulse.last >= long_ns:
                        pulse.long(now)
                    pulse.last = now
                    leave(frame)
            except Exception as error:  # noqa: BLE001 - it would reach the user's code
                fail(error)

        return on_local, on_module

    def _follow_loop(self, frame: FrameType) -> bool:
        """The top frame is at a line: send no more where that is in a silent loop. Tells whether it is."""
        stack = self._stack
        loop = stack[-1].function.loop_at(frame.f_lasti)
        if loop is None:
            return False
        self._stacks.set_line(stack, loop.line)
        frame.f_trace_lines = False
        self.muted[id(frame)] = loop
        return True

    def _end_loop(self, frame: FrameType) -> None:
        """A frame without lines is seen to be behind its loop, and has them again."""
        stack = self._stack
        del self.muted[id(frame)]
        frame.f_trace_lines = True
        entry = stack[-1] if stack else None
        if entry is not None and entry.code is frame.f_code:
            self._stacks.marks.note_event(stack)
            loop = entry.function.loop_at(frame.f_lasti)
            self._stacks.set_line(stack, frame.f_lineno if loop is None else loop.line)

    def _go_on_in_compiled(self, frame: FrameType) -> None:
        """The next instruction of code whose line events do not tell the user's lines from what dynamo added."""
        stack = self._stack
        entry = stack[-1] if stack else None
        starts = entry.function.line_starts if entry is not None and entry.code is frame.f_code else None
        if starts is not None and frame.f_lasti in starts:
            self._stacks.set_line(stack, starts[frame.f_lasti])

    def _leave_function(self) -> Callable[[FrameType], None]:
        stack, muted = self._stack, self.muted
        spare, leave_top, leave_to = self._stacks.spare, self._stacks.leave, self._stacks.leave_to

        def leave(frame: FrameType) -> None:
            if muted:
                muted.pop(id(frame), None)
            entry = stack[-1] if stack else None
            if entry is None:
                return
            if entry.code is not frame.f_code:
                leave_to(stack, frame.f_code)
                return
            if entry.is_special:
                leave_top(stack)
                return
            pair = entry.pair
            if pair is not None:
                pair[1]()
                entry.pool.append(pair)
                entry.pair = None
            stack.pop()
            spare.append(entry)

        return leave

    def _lost(self, frame: FrameType) -> None:
        """The frame is not the top of its stack: an event was lost, or the frame has outlived the window."""
        if self._hooks.is_on and id(frame.f_code) not in self._table.dropped:
            self._stacks.align(self._stack, frame)
        else:
            self._hooks.let_go(frame)
            if not self._hooks.is_on and sys.gettrace() in self._hooks.in_place:
                sys.settrace(None)

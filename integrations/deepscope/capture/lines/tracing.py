"""Line scopes from `sys.settrace` (Python 3.10 and 3.11): a local trace function in frames of user code alone.

Library code still pays for its calls, since Python calls the global trace function for each. Threads that torch starts
itself (autograd's device threads) cannot be reached: what runs there goes to the forward line.

Python sends no event where a loop ends. So a frame whose loop is silent sends no lines until it calls a function of
Python from elsewhere, or an exception arrives; what it does in C up to then stands at the loop.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from time import perf_counter_ns, thread_time_ns
from types import CodeType, FrameType
from typing import Any

from deepscope.capture.lines.bytecode import CodeLoop, Detail, is_resumed
from deepscope.capture.lines.calibration import HookWork
from deepscope.capture.lines.frames import HIDDEN, FunctionState, RecursionHeadroom, Stack
from deepscope.capture.lines.overhead_budget import OverheadBudget
from deepscope.capture.lines.stacks import Stacks
from deepscope.capture.lines.table import ScopeTable
from deepscope.capture.lines.time_marks import UNPAID, Pulse, begin_stretch

_MANY_ALONE = 1023
"""A mark tells what calls of code without scopes cost, at each of so many and one more."""

Trace = Callable[[FrameType, str, Any], Any]


class TracingHooks:
    """The hooks of one window; `install` and `remove` on the training thread."""

    backend = "settrace"

    def __init__(
        self,
        table: ScopeTable,
        stacks: Stacks,
        overhead_budget: OverheadBudget,
        fail: Callable[[Exception], None],
    ) -> None:
        self._table = table
        self._stacks = stacks
        self._costs = overhead_budget.costs
        self._overhead_budget = overhead_budget
        self._fail = fail
        self._module_code = stacks.module_code
        self._all: list[Trace] = []
        """Every trace function that is in place somewhere."""
        self._timed: dict[Any, Trace] = {}
        """By local trace function, the one that times it."""
        self._files: list[dict[str, bool]] = []
        self._muted: list[dict[int, CodeLoop]] = []
        """A dictionary a thread: frames that send no lines, by `id`, and the loop in which that is so."""
        self._thread_hook: Trace | None = None
        self._own: tuple[Trace, Trace, Trace] | None = None
        """The trace functions of the thread of `install`: global, local, and local for module calls."""
        self._is_on = self._is_paused = False
        self._headroom = RecursionHeadroom()

    def install(self, frame: FrameType | None) -> str | None:
        """Hook in; `frame` is the innermost one that runs already. Returns why not, or None."""
        holder = sys.gettrace()
        if holder is not None:
            name = f"{getattr(holder, '__module__', '')}.{getattr(holder, '__qualname__', type(holder).__qualname__)}"
            return (
                f"a debugger or coverage tool holds sys.settrace ({name.strip('.')}); record without it, "
                "or with Python 3.12 or later"
            )
        self._is_on = True
        if self._table.libraries is not None:
            self._table.libraries.on_open = self._look_again
        self._headroom.take()
        self._own = self._functions(self._stacks.threads.own)
        if threading.gettrace() is None:
            self._thread_hook = self._start_thread
            threading.settrace(self._thread_hook)
        self._hook_in(frame)
        return None

    def go_on(self) -> bool:
        """On the thread of `install`: hook in again if Python took the hooks out, as where one raises."""
        if not self._is_on or self._is_paused or sys.gettrace() is not None:
            return False
        self._hook_in(sys._getframe(1))
        return True

    def _hook_in(self, frame: FrameType | None) -> None:
        assert self._own is not None
        on_call, on_local, on_module = self._own
        self._stacks.align(self._stacks.threads.own, frame)
        self._follow_running(frame, on_local, on_module)
        sys.settrace(on_call)

    def pause(self) -> None:
        """On the thread of `install`: see nothing until `resume`. Each call would meet the hook, and pay for it."""
        if self._is_on and sys.gettrace() in self._all:
            self._is_paused = True
            sys.settrace(None)

    def resume(self) -> None:
        """Go on, unless `remove` was called, or somebody else has come."""
        if self._is_paused and self._own is not None and sys.gettrace() is None:
            sys.settrace(self._own[0])
        self._is_paused = False

    def remove(self) -> None:
        """Leave nothing behind here; other threads take their hook off at their next event. Safe to call twice."""
        self._is_on = self._is_paused = False
        self._headroom.give_back()
        for files in self._files:  # threads then ask again, and learn that there is nothing to do any more
            files.clear()
        if sys.gettrace() in self._all:
            sys.settrace(None)
        if self._thread_hook is not None and threading.gettrace() == self._thread_hook:
            threading.settrace(None)
        self._thread_hook = None
        for innermost in sys._current_frames().values():
            outer: FrameType | None = innermost
            while outer is not None:
                if outer.f_trace is not None and outer.f_trace in self._all:
                    self._let_go(outer)
                outer = outer.f_back

    @property
    def is_in_place(self) -> bool:
        """Whether nobody else has taken the hooks of this thread out; Python does, too, where one of them raises."""
        return self._is_paused or sys.gettrace() in self._all

    def adopt(self, code: CodeType) -> FunctionState | None:
        """The facts of a code object that is seen for the first time; None for code that gets no scopes."""
        started = thread_time_ns()
        try:
            return self._table.function(code) if code is self._module_code or self._table.owns(code) else None
        finally:
            self._overhead_budget.add_set_up(thread_time_ns() - started)

    def silences_loops(self, function: FunctionState) -> bool:
        """Whether the loops of `function` can be left alone, and the rest of it not."""
        return not function.hidden_line

    def follow_detail(self, function: FunctionState) -> None:
        """Leave the frames of a function alone that gets no scopes any more; others learn of it as they go on."""
        if function.detail is Detail.CALLER:
            self._leave_alone(lambda code: code is function.code)

    def _look_again(self) -> None:
        """Which files are of interest has changed."""
        if self._is_on:
            for files in self._files:
                files.clear()
                if self._module_code is not None:
                    files[self._module_code.co_filename] = True

    def end_lines(self) -> None:
        """Leave all of the user's code alone."""
        self._look_again()
        self._leave_alone(lambda code: code is not self._module_code)

    def take_samples(self) -> None:
        """Time the innermost frame, too: functions that are called while samples are wanted are timed by themselves."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_trace is None:
            frame = frame.f_back
        if frame is not None and (timed := self._timed.get(frame.f_trace)) is not None:
            frame.f_trace = timed

    def _leave_alone(self, is_meant: Callable[[CodeType], object]) -> None:
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if frame.f_trace is not None and frame.f_trace in self._all and is_meant(frame.f_code):
                self._let_go(frame)
            frame = frame.f_back

    def _follow_running(self, frame: FrameType | None, on_local: Trace, on_module: Trace) -> None:
        while frame is not None:
            is_muted = self._forget_loop(frame)
            if id(frame.f_code) in self._table.functions and (frame.f_trace is None or is_muted):
                is_module = frame.f_code is self._module_code
                frame.f_trace = on_module if is_module else on_local
                frame.f_trace_lines = not is_module
            frame = frame.f_back

    def _start_thread(self, frame: FrameType, event: str, arg: Any) -> Any:
        """First call in a thread that was started in the window: give it functions of its own, or leave it alone."""
        try:
            stack = self._stacks.threads.foreign() if self._is_on else None
            if stack is None:
                sys.settrace(self._look_for_user_code if self._is_on else None)
                return None
            on_call, _, _ = self._functions(stack)
            sys.settrace(on_call)
            return on_call(frame, event, arg)
        except Exception as error:  # noqa: BLE001 - it would reach the user's code
            self._fail(error)
            return None

    def _look_for_user_code(self, frame: FrameType, _event: str, _arg: Any) -> None:
        """On a thread that torch does not record: note it if user code comes to run there."""
        try:
            is_users = self._is_on and (frame.f_code is self._module_code or self._table.owns(frame.f_code))
            if is_users:
                self._stacks.threads.miss()
            if is_users or not self._is_on:
                sys.settrace(None)
        except Exception as error:  # noqa: BLE001 - it would reach the user's code
            self._fail(error)

    def _functions(self, stack: Stack) -> tuple[Trace, Trace, Trace]:
        """The trace functions of one thread, closures over its stack: global, local, and local for module calls."""
        pulse = self._stacks.marks.pulse if stack is self._stacks.threads.own else Pulse()
        muted: dict[int, CodeLoop] = {}
        self._muted.append(muted)
        on_local, on_module = self._local_functions(stack, pulse, muted)
        timed = self._timed[on_local] = self._sampled(on_local, stack)
        on_call = self._call_function(stack, pulse, timed, on_local, on_module, muted=muted)
        self._all.append(on_call)
        return on_call, on_local, on_module

    def _call_function(  # noqa: PLR0915 - all inline, for speed
        self,
        stack: Stack,
        pulse: Pulse,
        on_first: Trace,
        on_local: Trace,
        on_module: Trace,
        *,
        muted: dict[int, CodeLoop],
    ) -> Trace:
        fail, adopt, stacks, costs = self._fail, self.adopt, self._stacks, self._costs
        functions, dropped, look_at = self._table.functions, self._table.dropped, self._look_at
        spare, enter, set_line, module_code = stacks.spare, stacks.enter, stacks.set_line, stacks.module_code
        enter_module = stacks.enter_module
        # Whether a file has code that gets scopes: the hash of a name is kept by Python, that of a code object is not.
        files: dict[str, bool] = {} if module_code is None else {module_code.co_filename: True}
        self._files.append(files)
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
                        end_loop(stack, muted, caller)
                code = frame.f_code
                wanted = id(code) not in dropped and files.get(code.co_filename)
                if wanted is None and (wanted := look_at(code, files)) is None:
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

    def _look_at(self, code: CodeType, files: dict[str, bool]) -> bool | None:
        """Whether a file that `files` does not know yet has code that gets scopes; None where the hooks are out."""
        if not self._is_on:
            sys.settrace(None)
            return None
        started = thread_time_ns()
        wanted = files[code.co_filename] = self._table.owns(code)
        self._overhead_budget.add_set_up(thread_time_ns() - started)
        return wanted

    def _sampled(self, on_local: Trace, stack: Stack) -> Trace:
        """`on_local` for as long as samples of what it costs are wanted."""
        costs, overhead_budget, clock = self._costs, self._overhead_budget, self._costs.clock

        def on_local_sampled(frame: FrameType, event: str, arg: Any) -> Any:
            before = overhead_budget.mark()
            started = clock()
            on_local(frame, event, arg)
            taken = clock() - started
            if costs.is_complete:
                return on_local
            if event in ("line", "return") and (work := overhead_budget.work_since(before)) is not None:
                costs.add(work if event == "line" else HookWork.CALL, taken)
            begin_stretch(stack, perf_counter_ns())
            return on_local_sampled

        self._all.append(on_local_sampled)
        return on_local_sampled

    def _local_functions(  # noqa: PLR0915 - all inline, for speed
        self, stack: Stack, pulse: Pulse, muted: dict[int, CodeLoop]
    ) -> tuple[Trace, Trace]:
        fail, new_slot, stacks = self._fail, self._stacks.new_line, self._stacks
        run, set_line, leave = stacks.run, stacks.set_line, self._leave_function(stack, muted)
        go_on, follow_loop = self._go_on_in_compiled, self._follow_loop
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
                        self._lost(stack, frame)
                        return
                    line = frame.f_lineno
                    if entry.line == line:
                        if entry.function.loops:
                            follow_loop(stack, muted, frame)
                        return
                    slot = entry.function.lines.get(line) or new_slot(entry.function, line)
                    if slot is None:
                        if follow_loop(stack, muted, frame):
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
                    go_on(stack, frame)
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

        self._all += (on_local, on_module)
        return on_local, on_module

    def _follow_loop(self, stack: Stack, muted: dict[int, CodeLoop], frame: FrameType) -> bool:
        """The top frame is at a line: send no more where that is in a silent loop. Tells whether it is."""
        loop = stack[-1].function.loop_at(frame.f_lasti)
        if loop is None:
            return False
        self._stacks.set_line(stack, loop.line)
        frame.f_trace_lines = False
        muted[id(frame)] = loop
        return True

    def _end_loop(self, stack: Stack, muted: dict[int, CodeLoop], frame: FrameType) -> None:
        """A frame without lines is seen to be behind its loop, and has them again."""
        del muted[id(frame)]
        frame.f_trace_lines = True
        entry = stack[-1] if stack else None
        if entry is not None and entry.code is frame.f_code:
            self._stacks.marks.note_event(stack)
            loop = entry.function.loop_at(frame.f_lasti)
            self._stacks.set_line(stack, frame.f_lineno if loop is None else loop.line)

    def _go_on_in_compiled(self, stack: Stack, frame: FrameType) -> None:
        """The next instruction of code whose line events do not tell the user's lines from what dynamo added."""
        entry = stack[-1] if stack else None
        starts = entry.function.line_starts if entry is not None and entry.code is frame.f_code else None
        if starts is not None and frame.f_lasti in starts:
            self._stacks.set_line(stack, starts[frame.f_lasti])

    def _leave_function(self, stack: Stack, muted: dict[int, CodeLoop]) -> Callable[[FrameType], None]:
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

    def _lost(self, stack: Stack, frame: FrameType) -> None:
        """The frame is not the top of its stack: an event was lost, or the frame has outlived the window."""
        if self._is_on and id(frame.f_code) not in self._table.dropped:
            self._stacks.align(stack, frame)
        else:
            self._let_go(frame)
            if not self._is_on and sys.gettrace() in self._all:
                sys.settrace(None)

    def _let_go(self, frame: FrameType) -> None:
        self._forget_loop(frame)
        frame.f_trace = None
        frame.f_trace_lines, frame.f_trace_opcodes = True, False

    def _forget_loop(self, frame: FrameType) -> bool:
        """Whether the frame sent no lines, which the caller changes."""
        found = [muted.pop(id(frame), None) for muted in self._muted]
        return any(loop is not None for loop in found)

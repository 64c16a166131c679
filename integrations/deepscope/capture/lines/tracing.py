"""Line scopes from `sys.settrace` (Python 3.10 and 3.11): a local trace function in frames of user code alone.

Library code still pays for its calls, since Python calls the global trace function for each. Threads that torch starts
itself (autograd's device threads) cannot be reached: what runs there goes to the forward line.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from time import thread_time_ns
from types import CodeType, FrameType
from typing import Any

from deepscope.capture.lines.bytecode import Detail
from deepscope.capture.lines.frames import FunctionState, RecursionHeadroom, Stack
from deepscope.capture.lines.overhead_budget import OverheadBudget
from deepscope.capture.lines.stacks import Stacks
from deepscope.capture.lines.table import ScopeTable
from deepscope.capture.lines.traced_thread import Trace, TracedThread


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
        self.table = table
        self.stacks = stacks
        self.overhead_budget = overhead_budget
        self.fail = fail
        self._module_code = stacks.module_code
        self._threads: list[TracedThread] = []
        self.in_place: list[Trace] = []
        """The trace functions of all threads."""
        self._thread_hook: Trace | None = None
        self._own: TracedThread | None = None
        """That of `install`."""
        self.is_on = self._is_paused = False
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
        self.is_on = True
        if self.table.libraries is not None:
            self.table.libraries.on_open = self._look_again
        self._headroom.take()
        self._own = self._follow_thread(self.stacks.threads.own)
        if threading.gettrace() is None:
            self._thread_hook = self._start_thread
            threading.settrace(self._thread_hook)
        self._hook_in(frame)
        return None

    def go_on(self) -> bool:
        """On the thread of `install`: hook in again if Python took the hooks out, as where one raises."""
        if not self.is_on or self._is_paused or sys.gettrace() is not None:
            return False
        self._hook_in(sys._getframe(1))
        return True

    def _hook_in(self, frame: FrameType | None) -> None:
        assert self._own is not None
        self.stacks.align(self.stacks.threads.own, frame)
        self._follow_running(frame, self._own)
        sys.settrace(self._own.on_call)

    def pause(self) -> None:
        """On the thread of `install`: see nothing until `resume`. Each call would meet the hook, and pay for it."""
        if self.is_on and sys.gettrace() in self.in_place:
            self._is_paused = True
            sys.settrace(None)

    def resume(self) -> None:
        """Go on, unless `remove` was called, or somebody else has come."""
        if self._is_paused and self._own is not None and sys.gettrace() is None:
            sys.settrace(self._own.on_call)
        self._is_paused = False

    def remove(self) -> None:
        """Leave nothing behind here; other threads take their hook off at their next event. Safe to call twice."""
        self.is_on = self._is_paused = False
        self._headroom.give_back()
        for thread in self._threads:  # they then ask again, and learn that there is nothing to do any more
            thread.files.clear()
        if sys.gettrace() in self.in_place:
            sys.settrace(None)
        if self._thread_hook is not None and threading.gettrace() == self._thread_hook:
            threading.settrace(None)
        self._thread_hook = None
        for innermost in sys._current_frames().values():
            outer: FrameType | None = innermost
            while outer is not None:
                if outer.f_trace is not None and outer.f_trace in self.in_place:
                    self.let_go(outer)
                outer = outer.f_back

    @property
    def is_in_place(self) -> bool:
        """Whether nobody else has taken the hooks of this thread out; Python does, too, where one of them raises."""
        return self._is_paused or sys.gettrace() in self.in_place

    def adopt(self, code: CodeType) -> FunctionState | None:
        """The facts of a code object that is seen for the first time; None for code that gets no scopes."""
        started = thread_time_ns()
        try:
            return self.table.function(code) if code is self._module_code or self.table.owns(code) else None
        finally:
            self.overhead_budget.add_set_up(thread_time_ns() - started)

    def silences_loops(self, function: FunctionState) -> bool:
        """Whether the loops of `function` can be left alone, and the rest of it not."""
        return not function.hidden_line

    def follow_detail(self, function: FunctionState) -> None:
        """Leave the frames of a function alone that gets no scopes any more; others learn of it as they go on."""
        if function.detail is Detail.CALLER:
            self._leave_alone(lambda code: code is function.code)

    def _look_again(self) -> None:
        """Which files are of interest has changed."""
        if self.is_on:
            for thread in self._threads:
                thread.forget_files()

    def end_lines(self) -> None:
        """Leave all of the user's code alone."""
        self._look_again()
        self._leave_alone(lambda code: code is not self._module_code)

    def take_samples(self) -> None:
        """Time the innermost frame, too: functions that are called while samples are wanted are timed by themselves."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_trace is None:
            frame = frame.f_back
        for thread in self._threads:
            if frame is not None and frame.f_trace is thread.on_local:
                frame.f_trace = thread.on_local_timed

    def _leave_alone(self, is_meant: Callable[[CodeType], object]) -> None:
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if frame.f_trace is not None and frame.f_trace in self.in_place and is_meant(frame.f_code):
                self.let_go(frame)
            frame = frame.f_back

    def _follow_running(self, frame: FrameType | None, thread: TracedThread) -> None:
        while frame is not None:
            is_muted = self._forget_loop(frame)
            if id(frame.f_code) in self.table.functions and (frame.f_trace is None or is_muted):
                is_module = frame.f_code is self._module_code
                frame.f_trace = thread.on_module if is_module else thread.on_local
                frame.f_trace_lines = not is_module
            frame = frame.f_back

    def _start_thread(self, frame: FrameType, event: str, arg: Any) -> Any:
        """First call in a thread that was started in the window: give it functions of its own, or leave it alone."""
        try:
            stack = self.stacks.threads.foreign() if self.is_on else None
            if stack is None:
                sys.settrace(self._look_for_user_code if self.is_on else None)
                return None
            on_call = self._follow_thread(stack).on_call
            sys.settrace(on_call)
            return on_call(frame, event, arg)
        except Exception as error:  # noqa: BLE001 - it would reach the user's code
            self.fail(error)
            return None

    def _look_for_user_code(self, frame: FrameType, _event: str, _arg: Any) -> None:
        """On a thread that torch does not record: note it if user code comes to run there."""
        try:
            is_users = self.is_on and (frame.f_code is self._module_code or self.table.owns(frame.f_code))
            if is_users:
                self.stacks.threads.miss()
            if is_users or not self.is_on:
                sys.settrace(None)
        except Exception as error:  # noqa: BLE001 - it would reach the user's code
            self.fail(error)

    def _follow_thread(self, stack: Stack) -> TracedThread:
        thread = TracedThread(self, stack)
        self._threads.append(thread)
        return thread

    def let_go(self, frame: FrameType) -> None:
        """Leave a frame alone that had a trace function."""
        self._forget_loop(frame)
        frame.f_trace = None
        frame.f_trace_lines, frame.f_trace_opcodes = True, False

    def _forget_loop(self, frame: FrameType) -> bool:
        """Whether the frame sent no lines, which the caller changes."""
        found = [thread.muted.pop(id(frame), None) for thread in self._threads]
        return any(loop is not None for loop in found)

"""Line scopes from `sys.monitoring` (Python 3.12 and later): every thread, and no cost in code that is not the user's.

The rules that keep it safe; without each of them there was a crash or a wrong line:

- Only code that is not the user's is disabled, from PY_START and PY_RESUME, instructions that begin no line, and lines
  of libraries that have no scope and before which none can be open. Disabling holds for the process, past the window
  and past the tool's id. It would blind whoever gets the id next, so it is undone before a window and after it. From
  PY_UNWIND it would replace the user's exception.
- A LINE event takes longer the further down in a function it is: 40 µs at line 2,000. So a long function's lines are
  learned from its instructions; those that begin no line are disabled.
- A frame's first scope may have to come from PY_START: one-line lambdas and generator expressions send no LINE then.
- An exception in a callback reaches the user's code, so each catches everything; what is left is Ctrl-C, which must.
- An event may be lost (Ctrl-C arrives in a callback), so each checks that the top of the stack is its own frame's.
"""

from __future__ import annotations

import sys
from _thread import get_ident
from collections.abc import Callable
from time import perf_counter_ns, thread_time_ns
from types import CodeType, FrameType
from typing import Any

from deepscope.capture.lines.bytecode import Detail
from deepscope.capture.lines.calibration import HookWork
from deepscope.capture.lines.frames import FunctionState, RecursionHeadroom
from deepscope.capture.lines.overhead_budget import OverheadBudget
from deepscope.capture.lines.scopes import SILENT
from deepscope.capture.lines.stacks import Stacks
from deepscope.capture.lines.table import ScopeTable
from deepscope.capture.lines.time_marks import UNPAID, begin_stretch

monitoring: Any = getattr(sys, "monitoring", None)
"""None before Python 3.12."""

_IDS = (4, 3, 2, 1)
"""Tool ids to try. 0, 1, 2 and 5 have names (debugger, coverage, profiler, optimizer); 3 and 4 are for all."""

Callback = Callable[..., Any]


class MonitoringHooks:
    """The hooks of one window; `install` on the training thread, `remove` on any."""

    backend = "monitoring"

    def __init__(
        self,
        table: ScopeTable,
        stacks: Stacks,
        overhead_budget: OverheadBudget,
        fail: Callable[[Exception], None],
    ) -> None:
        self._table = table
        self._stacks = stacks
        self._threads = stacks.threads
        self._costs = overhead_budget.costs
        self._overhead_budget = overhead_budget
        self._fail = fail
        self._tool: int | None = None
        self._local: list[CodeType] = []
        self._headroom = RecursionHeadroom()
        self._raw: dict[int, Callback] = {}
        """By event, without the clock around it."""
        self._is_sampling = False

    def install(self, frame: FrameType | None) -> str | None:
        """Hook in; `frame` is the innermost one that runs already. Returns why not, or None."""
        self._tool = next((number for number in _IDS if monitoring.get_tool(number) is None), None)
        if self._tool is None:
            return "all tool ids of sys.monitoring are taken by other tools"
        monitoring.use_tool_id(self._tool, "deepscope")
        self._headroom.take()
        monitoring.restart_events()
        self._raw = self._callbacks()
        for event, callback in self._raw.items():
            monitoring.register_callback(self._tool, event, callback)
        if self._table.libraries is not None:
            self._table.libraries.on_open = self._look_again
        self.take_samples()
        events = monitoring.events
        monitoring.set_events(self._tool, events.PY_START | events.PY_RESUME | events.PY_THROW | events.PY_UNWIND)
        self._stacks.align(self._threads.own, frame)
        return None

    def go_on(self) -> bool:
        """Python leaves these hooks in place, whatever they raise."""
        return False

    def pause(self) -> None:
        """What is no user's code sends one event, and then no more."""

    def resume(self) -> None:
        """As `pause`."""

    def remove(self) -> None:
        """Leave nothing behind; safe to call twice, from any thread, and in a forked child."""
        tool, self._tool = self._tool, None
        if tool is None:
            return
        try:
            monitoring.set_events(tool, 0)
            while self._local:
                monitoring.set_local_events(tool, self._local.pop(), 0)
            for event in self._raw:
                monitoring.register_callback(tool, event, None)
        finally:
            monitoring.free_tool_id(tool)
            monitoring.restart_events()
            self._headroom.give_back()

    @property
    def is_in_place(self) -> bool:
        """Whether nobody else has taken the hooks of this thread out."""
        return self._tool is not None and bool(monitoring.get_tool(self._tool) == "deepscope")

    def adopt(self, code: CodeType) -> FunctionState | None:
        """The facts of a code object that is seen for the first time; None for code that gets no scopes."""
        started = thread_time_ns()
        try:
            if code is not self._stacks.module_code and not self._table.owns(code):
                return None
            function = self._table.function(code)
            if self._tool is not None:
                self._local.append(code)
                self.follow_detail(function)
            return function
        finally:
            self._overhead_budget.add_set_up(thread_time_ns() - started)

    def silences_loops(self, function: FunctionState) -> bool:  # noqa: ARG002 - those of all functions
        """Whether the loops of `function` can be left alone, and the rest of it not."""
        return True

    def follow_detail(self, function: FunctionState) -> None:
        """Have events come from `function` as its detail says."""
        events = monitoring.events
        ends = events.PY_RETURN | events.PY_YIELD
        if function.code is self._stacks.module_code:
            wanted = events.PY_RETURN
        elif function.detail is Detail.CALLER:
            wanted = 0
        elif function.detail is Detail.FUNCTION:
            wanted = ends
        elif function.line_starts is not None:
            wanted = events.INSTRUCTION | ends
        else:
            wanted = events.LINE | ends
        if self._tool is not None:
            monitoring.set_local_events(self._tool, function.code, wanted)

    def end_lines(self) -> None:
        """No events from functions of the user's any more."""
        if self._tool is not None:
            for code in self._local:
                if code is not self._stacks.module_code:
                    monitoring.set_local_events(self._tool, code, 0)

    def _look_again(self) -> None:
        """A package was opened: its code has been left alone until here."""
        if self._tool is not None:
            monitoring.restart_events()

    def _callbacks(self) -> dict[int, Callback]:
        """The callbacks, as closures: a name from the enclosing scope is the cheapest that Python has."""
        events = monitoring.events
        on_line = self._line_callback()
        on_start = self._start_callback()
        on_resume, on_throw = self._resume_callbacks()
        on_leave, on_unwind = self._end_callbacks()
        return {
            events.LINE: on_line,
            events.INSTRUCTION: self._instruction_callback(on_line),
            events.PY_START: on_start,
            events.PY_RESUME: on_resume,
            events.PY_THROW: on_throw,
            events.PY_RETURN: on_leave,
            events.PY_YIELD: on_leave,
            events.PY_UNWIND: on_unwind,
        }

    def take_samples(self) -> None:
        """Time the callbacks for as long as samples are wanted."""
        if self._tool is None or self._is_sampling:
            return
        self._is_sampling = True
        events = monitoring.events
        # Not PY_START: its callback asks for the frame that called it. What it does takes as long as PY_RETURN's.
        for event in (events.LINE, events.INSTRUCTION, events.PY_RETURN, events.PY_YIELD):
            timed = self._timed(self._raw[event], is_line=event in (events.LINE, events.INSTRUCTION))
            monitoring.register_callback(self._tool, event, timed)

    def _timed(self, callback: Callback, *, is_line: bool) -> Callback:
        costs, overhead_budget, clock = self._costs, self._overhead_budget, self._costs.clock
        own, owner = self._threads.own, self._threads.owner

        def on_timed(code: CodeType, place: Any, *value: Any) -> Any:
            before = overhead_budget.mark()
            started = clock()
            answer = callback(code, place, *value)
            taken = clock() - started
            if answer is None and (work := overhead_budget.work_since(before)) is not None:
                costs.add(work if is_line else HookWork.CALL, taken)
            if costs.is_complete:
                self._stop_sampling()
            if get_ident() == owner:
                begin_stretch(own, perf_counter_ns())
            return answer

        return on_timed

    def _stop_sampling(self) -> None:
        if self._is_sampling and self._tool is not None:
            self._is_sampling = False
            for event, callback in self._raw.items():
                monitoring.register_callback(self._tool, event, callback)

    def _line_callback(self) -> Callback:
        fail, new_slot, stacks = self._fail, self._stacks.new_line, self._stacks
        own, owner, foreign = self._threads.own, self._threads.owner, self._threads.foreign
        pulse, long_ns, clock = stacks.marks.pulse, stacks.marks.long_ns, perf_counter_ns
        align, run, set_line, getframe = stacks.align, stacks.run, stacks.set_line, sys._getframe
        pass_over, disable = stacks.pass_over, monitoring.DISABLE

        def on_line(code: CodeType, line: int) -> Any:  # noqa: PLR0911 - the commonest ways out come first
            try:
                stack = own if get_ident() == owner else foreign()
                if stack is None:
                    return None
                if stack is own:
                    now = clock()
                    if now - pulse.last >= long_ns:
                        pulse.long(now)
                    pulse.last = now
                entry = stack[-1] if stack else None
                if entry is None or entry.code is not code:
                    align(stack, getframe(1))
                    return None
                if entry.line == line:
                    return None
                slot = entry.function.lines.get(line) or new_slot(entry.function, line)
                if slot is None:
                    set_line(stack, line)
                    return None
                slot.left = left = slot.left - 1
                if left < 0 or entry.is_special:
                    if left < SILENT and not entry.is_special:
                        return disable if pass_over(stack, slot, line) else None
                    run(stack, slot, line)
                    return None
                pool = slot.pool
                pair = pool.pop() if pool else slot.pair()
                old = entry.pair
                # Closing and opening stand side by side, so that the cost of an entry falls into the line before it
                # and next to nothing of it into the line that called.
                if old is not None:
                    old[1]()
                    entry.pool.append(old)
                entry.pair = pair
                entry.pool = pool
                entry.line = line
                pair[0]()
            except Exception as error:  # noqa: BLE001 - it would reach the user's code
                fail(error)
            return None

        return on_line

    def _instruction_callback(self, on_line: Callback) -> Callback:
        functions, disable = self._table.functions, monitoring.DISABLE
        switched_off = 0
        self._overhead_budget.switched_off = lambda: switched_off

        def on_instruction(code: CodeType, offset: int) -> Any:
            nonlocal switched_off
            function = functions.get(id(code))
            starts = function.line_starts if function is not None else None
            line = starts.get(offset) if starts is not None else None
            if line is not None:
                return on_line(code, line)
            switched_off += 1
            return disable

        return on_instruction

    def _start_callback(self) -> Callback:
        fail, adopt, functions, stacks = self._fail, self.adopt, self._table.functions, self._stacks
        own, owner, foreign = self._threads.own, self._threads.owner, self._threads.foreign
        pulse, long_ns, clock = stacks.marks.pulse, stacks.marks.long_ns, perf_counter_ns
        enter, set_line, miss, getframe = stacks.enter, stacks.set_line, self._threads.miss, sys._getframe
        disable = monitoring.DISABLE
        module_code, enter_module, spare = stacks.module_code, stacks.enter_module, stacks.spare
        overhead_budget, pay, needs_no_events = self._overhead_budget, stacks.marks.pay, stacks.needs_no_events

        def on_start(code: CodeType, _offset: int) -> Any:
            try:
                function = functions.get(id(code)) or adopt(code)
                if function is None:
                    return disable
                stack = own if get_ident() == owner else foreign()
                if stack is None:
                    miss()
                    return None
                if stack is own:
                    now = clock()
                    if now - pulse.last >= long_ns:
                        pulse.long(now)
                    pulse.last = now
                if overhead_budget.unpaid >= UNPAID:
                    pay(stack)
                if function.only_line and needs_no_events(stack, function):
                    return disable
                if code is module_code:
                    enter_module(stack, function, getframe(1))
                    return None
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
                if function.opens_at_start:
                    set_line(stack, function.place(getframe(1)))
            except Exception as error:  # noqa: BLE001 - it would reach the user's code
                fail(error)
            return None

        return on_start

    def _resume_callbacks(self) -> tuple[Callback, Callback]:
        fail, adopt, functions, stacks = self._fail, self.adopt, self._table.functions, self._stacks
        own, owner, foreign = self._threads.own, self._threads.owner, self._threads.foreign
        enter, set_line, getframe, disable = stacks.enter, stacks.set_line, sys._getframe, monitoring.DISABLE
        overhead_budget, pay, note_event = self._overhead_budget, stacks.marks.pay, stacks.marks.note_event

        def go_on(function: FunctionState, frame: FrameType) -> Any:
            stack = own if get_ident() == owner else foreign()
            if stack is not None:
                note_event(stack)
                if overhead_budget.unpaid >= UNPAID:
                    pay(stack)
                if function.only_line and stacks.needs_no_events(stack, function):
                    return disable
                enter(stack, function)
                set_line(stack, frame.f_lineno)
            return None

        def on_resume(code: CodeType, _offset: int) -> Any:
            try:
                function = functions.get(id(code)) or adopt(code)
                if function is None:
                    return disable
                return go_on(function, getframe(1))
            except Exception as error:  # noqa: BLE001 - it would reach the user's code
                fail(error)
            return None

        def on_throw(code: CodeType, _offset: int, _exception: BaseException) -> None:
            try:
                function = functions.get(id(code)) or adopt(code)
                if function is not None:
                    go_on(function, getframe(1))
            except Exception as error:  # noqa: BLE001 - it would reach the user's code
                fail(error)

        return on_resume, on_throw

    def _end_callbacks(self) -> tuple[Callback, Callback]:
        fail, functions, stacks = self._fail, self._table.functions, self._stacks
        own, owner, foreign = self._threads.own, self._threads.owner, self._threads.foreign
        pulse, long_ns, clock, spare = stacks.marks.pulse, stacks.marks.long_ns, perf_counter_ns, stacks.spare
        leave, leave_to, note_event = stacks.leave, stacks.leave_to, stacks.marks.note_event

        def on_leave(code: CodeType, _offset: int, _value: Any) -> None:
            try:
                stack = own if get_ident() == owner else foreign()
                if not stack:
                    return
                if stack is own:
                    now = clock()
                    if now - pulse.last >= long_ns:
                        pulse.long(now)
                    pulse.last = now
                entry = stack[-1]
                if entry.code is not code:
                    leave_to(stack, code)
                    return
                if entry.is_special:
                    leave(stack)
                    return
                pair = entry.pair
                if pair is not None:
                    pair[1]()
                    entry.pool.append(pair)
                    entry.pair = None
                stack.pop()
                spare.append(entry)
            except Exception as error:  # noqa: BLE001 - it would reach the user's code
                fail(error)

        def on_unwind(code: CodeType, _offset: int, _exception: BaseException) -> None:
            try:
                if id(code) in functions:
                    stack = own if get_ident() == owner else foreign()
                    if stack:
                        note_event(stack)
                        leave_to(stack, code)
            except Exception as error:  # noqa: BLE001 - it would reach the user's code
                fail(error)

        return on_leave, on_unwind

"""Line scopes from `sys.monitoring` (Python 3.12 and later): every thread, and no cost in code that is not the user's.

The rules that keep it safe, each from a crash or a wrong line seen without it:

- Only code that is not the user's is disabled, and only from PY_START and PY_RESUME. Disabling holds for the process,
  past the window and past the tool's id; from PY_UNWIND it would replace the user's exception.
- A frame's first scope may have to come from PY_START: one-line lambdas and generator expressions send no LINE then.
- An exception in a callback reaches the user's code, so each catches everything; what is left is Ctrl-C, which must.
- An event may be lost (Ctrl-C arrives in a callback), so each checks that the top of the stack is its own frame's.
"""

from __future__ import annotations

import sys
from _thread import get_ident
from collections.abc import Callable, Hashable
from types import CodeType, FrameType
from typing import Any

from deepscope.capture.lines.calibration import CostSamples
from deepscope.capture.lines.modules import ModuleCalls
from deepscope.capture.lines.stacks import Stacks
from deepscope.capture.lines.table import Function, ScopeTable

__all__ = ["MonitoringHooks", "monitoring"]

monitoring: Any = getattr(sys, "monitoring", None)
"""None before Python 3.12."""

_IDS = (4, 3, 2, 1)
"""Tool ids to try. 0, 1, 2 and 5 have names (debugger, coverage, profiler, optimizer); 3 and 4 are for all."""

_disabled_for: Hashable = None
"""Tool id and selection for which code has been disabled in this process."""

Callback = Callable[..., Any]


class MonitoringHooks:
    """The hooks of one window; `install` on the training thread, `remove` on any."""

    backend = "monitoring"

    def __init__(
        self,
        table: ScopeTable,
        stacks: Stacks,
        modules: ModuleCalls | None,
        costs: CostSamples,
        fail: Callable[[Exception], None],
    ) -> None:
        self._table = table
        self._stacks = stacks
        self._modules = modules
        self._costs = costs
        self._fail = fail
        self._tool: int | None = None
        self._local: list[CodeType] = []

    def install(self, frame: FrameType | None) -> str | None:
        """Hook in; `frame` is the innermost one that runs already. Returns why not, or None."""
        self._tool = next((number for number in _IDS if monitoring.get_tool(number) is None), None)
        if self._tool is None:
            return "all tool ids of sys.monitoring are taken by other tools"
        monitoring.use_tool_id(self._tool, "deepscope")
        self._enable_again()
        for event, callback in self._callbacks().items():
            monitoring.register_callback(self._tool, event, callback)
        self._stacks.align(self._stacks.own, frame)
        events = monitoring.events
        monitoring.set_events(self._tool, events.PY_START | events.PY_RESUME | events.PY_THROW | events.PY_UNWIND)
        return None

    def remove(self) -> None:
        """Leave nothing behind; safe to call twice, from any thread, and in a forked child."""
        tool, self._tool = self._tool, None
        if tool is None:
            return
        monitoring.set_events(tool, 0)
        while self._local:
            monitoring.set_local_events(tool, self._local.pop(), 0)
        for event in self._callbacks():
            monitoring.register_callback(tool, event, None)
        monitoring.free_tool_id(tool)

    def adopt(self, code: CodeType) -> Function | None:
        """The facts of a code object that is seen for the first time; None for code that gets no scopes."""
        events = monitoring.events
        if self._modules is not None and code is self._modules.code:
            wanted = events.PY_RETURN
        elif self._table.owns(code):
            wanted = events.LINE | events.PY_RETURN | events.PY_YIELD
        else:
            return None
        function = self._table.function(code)
        if self._tool is not None:
            self._local.append(code)
            monitoring.set_local_events(self._tool, code, wanted)
        return function

    def _enable_again(self) -> None:
        global _disabled_for
        state = (self._tool, self._table.user_code.signature, self._modules is not None)
        if state != _disabled_for:
            monitoring.restart_events()
            _disabled_for = state

    def _callbacks(self) -> dict[int, Callback]:
        """The callbacks, as closures: a name from the enclosing scope is the cheapest that Python has."""
        events = monitoring.events
        on_line = self._line_callback()
        on_start, on_resume, on_throw = self._start_callbacks()
        on_leave, on_unwind = self._end_callbacks()
        return {
            events.LINE: self._sampled(on_line),
            events.PY_START: on_start,
            events.PY_RESUME: on_resume,
            events.PY_THROW: on_throw,
            events.PY_RETURN: on_leave,
            events.PY_YIELD: on_leave,
            events.PY_UNWIND: on_unwind,
        }

    def _sampled(self, on_line: Callback) -> Callback:
        """`on_line` for as long as the cost of an entry is still being measured; it then puts itself in place."""
        costs = self._costs

        def on_line_sampled(code: CodeType, line: int) -> None:
            started = costs.clock()
            on_line(code, line)
            costs.add(costs.clock() - started)
            if costs.is_complete and self._tool is not None:
                monitoring.register_callback(self._tool, monitoring.events.LINE, on_line)

        return on_line_sampled

    def _line_callback(self) -> Callback:
        fail, new_slot, stacks = self._fail, self._table.line, self._stacks
        own, owner, foreign = stacks.own, stacks.owner, stacks.foreign
        align, run, set_line, getframe = stacks.align, stacks.run, stacks.set_line, sys._getframe

        def on_line(code: CodeType, line: int) -> None:
            try:
                stack = own if get_ident() == owner else foreign()
                if stack is None:
                    return
                entry = stack[-1] if stack else None
                if entry is None or entry.code is not code:
                    align(stack, getframe(1))
                    return
                if entry.line == line:
                    return
                slot = entry.function.lines.get(line) or new_slot(entry.function, line)
                if slot is None:
                    set_line(stack, line)
                    return
                slot.left = left = slot.left - 1
                if left < 0 or entry.is_special:
                    run(stack, slot, line)
                    return
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

        return on_line

    def _start_callbacks(self) -> tuple[Callback, Callback, Callback]:
        fail, adopt, functions, stacks = self._fail, self.adopt, self._table.functions, self._stacks
        own, owner, foreign, spare = stacks.own, stacks.owner, stacks.foreign, stacks.spare
        enter, set_line, getframe = stacks.enter, stacks.set_line, sys._getframe
        disable = monitoring.DISABLE
        module_code = self._modules.code if self._modules is not None else None
        enter_module = self._modules.enter if self._modules is not None else None

        def on_start(code: CodeType, _offset: int) -> Any:
            try:
                function = functions.get(id(code)) or adopt(code)
                if function is None:
                    return disable
                stack = own if get_ident() == owner else foreign()
                if stack is None:
                    return None
                if enter_module is not None and code is module_code:
                    enter_module(stack, function, getframe(1))
                    return None
                if not spare or (stack and stack[-1].is_special):
                    enter(stack, function)
                else:
                    entry = spare.pop()
                    entry.code = code
                    entry.function = function
                    entry.line = 0
                    entry.pair = None
                    entry.is_special = False
                    stack.append(entry)
                if function.opens_at_start:
                    set_line(stack, getframe(1).f_lineno)
            except Exception as error:  # noqa: BLE001 - it would reach the user's code
                fail(error)
            return None

        def go_on(function: Function, frame: FrameType) -> None:
            stack = own if get_ident() == owner else foreign()
            if stack is not None:
                enter(stack, function)
                set_line(stack, frame.f_lineno)

        def on_resume(code: CodeType, _offset: int) -> Any:
            try:
                function = functions.get(id(code)) or adopt(code)
                if function is None:
                    return disable
                go_on(function, getframe(1))
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

        return on_start, on_resume, on_throw

    def _end_callbacks(self) -> tuple[Callback, Callback]:
        fail, functions, stacks = self._fail, self._table.functions, self._stacks
        own, owner, foreign, spare = stacks.own, stacks.owner, stacks.foreign, stacks.spare
        leave, leave_to = stacks.leave, stacks.leave_to

        def on_leave(code: CodeType, _offset: int, _value: Any) -> None:
            try:
                stack = own if get_ident() == owner else foreign()
                if not stack:
                    return
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
                        leave_to(stack, code)
            except Exception as error:  # noqa: BLE001 - it would reach the user's code
                fail(error)

        return on_leave, on_unwind

"""Follows one thread through the lines of user code for a short while, where no recording need be going on."""

from __future__ import annotations

import sys
from _thread import get_ident
from collections.abc import Callable
from contextlib import suppress
from types import CodeType, FrameType
from typing import Any

from deepscope.capture.compiled.breaks import Frame
from deepscope.capture.lines import UserCode

_monitoring: Any = getattr(sys, "monitoring", None)
_IDS = (3, 4, 2, 1)
"""Tool ids to try; recordings take 4 first."""
_DEEPEST = 50

Moved = Callable[[tuple[Frame, ...]], None]


class LineFollower:
    """Tells `moved` the stack of user code, outermost first, each time that the thread comes to another of its lines.

    The stack begins with the frame that `start` is given. `moved` must not raise. It costs much, and is meant for what
    happens once.
    """

    def __init__(self, code: UserCode, moved: Moved) -> None:
        self._code = code
        self._moved = moved
        self._thread = 0
        self._base: FrameType | None = None
        self._tool: int | None = None
        self._is_tracing = False
        self._before: Any = None
        """The trace function of the frame that it began with."""

    def start(self, base: FrameType) -> bool:
        """Follow from here on; whether that can be done beside whoever else follows lines."""
        self._thread, self._base = get_ident(), base
        found = self._monitor() if _monitoring is not None else self._trace()
        if found:
            self._moved(self._stack(base))
        return found

    def stop(self) -> None:
        """Leave nothing behind; safe to call twice."""
        tool, self._tool = self._tool, None
        if tool is not None:
            _monitoring.set_events(tool, 0)
            for event in self._callbacks():
                _monitoring.register_callback(tool, event, None)
            _monitoring.free_tool_id(tool)
            _monitoring.restart_events()
        if self._is_tracing:
            self._is_tracing = False
            sys.settrace(None)
            if self._base is not None:
                self._base.f_trace = self._before
        self._base = self._before = None

    def _stack(self, frame: FrameType | None) -> tuple[Frame, ...]:
        """The frames of user code from the base to `frame`; () for one that the base did not call."""
        found: list[Frame] = []
        while frame is not None:
            code = frame.f_code
            if len(found) < _DEEPEST and self._code.owns(code.co_filename):
                name = getattr(code, "co_qualname", code.co_name)
                found.append(Frame(code.co_filename, frame.f_lineno or code.co_firstlineno, name))
            if frame is self._base:
                return tuple(reversed(found))
            frame = frame.f_back
        return ()

    def _tell(self, frame: FrameType | None) -> None:
        with suppress(Exception):  # it would reach the user's code
            if stack := self._stack(frame):
                self._moved(stack)

    def _monitor(self) -> bool:
        self._tool = next((number for number in _IDS if _monitoring.get_tool(number) is None), None)
        if self._tool is None:
            return False
        _monitoring.use_tool_id(self._tool, "deepscope-capture")
        _monitoring.restart_events()
        callbacks = self._callbacks()
        for event, callback in callbacks.items():
            _monitoring.register_callback(self._tool, event, callback)
        _monitoring.set_events(self._tool, sum(callbacks))
        return True

    def _callbacks(self) -> dict[int, Callable[..., Any]]:
        events = _monitoring.events
        ends = (events.PY_RETURN, events.PY_YIELD)
        return {events.LINE: self._on_line, **dict.fromkeys(ends, self._on_end), events.PY_UNWIND: self._on_unwind}

    def _on_line(self, code: CodeType, _line: int) -> Any:
        if not self._code.owns(code.co_filename):
            return _monitoring.DISABLE
        if get_ident() == self._thread:
            self._tell(sys._getframe(1))
        return None

    def _on_end(self, code: CodeType, _offset: int, _value: Any) -> Any:
        if not self._code.owns(code.co_filename):
            return _monitoring.DISABLE
        if get_ident() == self._thread:
            self._tell(sys._getframe(1).f_back)
        return None

    def _on_unwind(self, code: CodeType, _offset: int, _error: BaseException) -> None:
        if get_ident() == self._thread and self._code.owns(code.co_filename):
            self._tell(sys._getframe(1).f_back)

    def _trace(self) -> bool:
        if sys.gettrace() is not None:
            return False
        self._is_tracing = True
        if self._base is not None and self._code.owns(self._base.f_code.co_filename):
            self._before, self._base.f_trace = self._base.f_trace, self._traced
        sys.settrace(self._on_call)
        return True

    def _on_call(self, frame: FrameType, _event: str, _value: Any) -> Any:
        return self._traced if self._code.owns(frame.f_code.co_filename) else None

    def _traced(self, frame: FrameType, event: str, _value: Any) -> Any:
        if get_ident() == self._thread:
            self._tell(frame.f_back if event == "return" else frame)
        return self._traced

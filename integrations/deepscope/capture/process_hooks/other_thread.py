"""Calls on another thread: Python offers none, but its hooks for lines run on the thread whose line begins."""

from __future__ import annotations

import sys
from _thread import get_ident
from collections.abc import Callable
from contextlib import suppress
from threading import Event
from types import FrameType
from typing import Any

_monitoring: Any = getattr(sys, "monitoring", None)  # from Python 3.12 on
_TOOL_IDS = (4, 3, 2, 1)  # those of `lines/monitoring.py`


def call_between_lines(thread: int, call: Callable[[], None], *, within_s: float) -> bool:
    """Have `call` made on another thread where its next line of Python begins, and return once it has been made.

    Returns whether it has: the thread may begin no line within that time. Before Python 3.12 a line tells only where
    the thread has a trace function already. `call` must not raise.
    """
    turn = _Turn(thread, call)
    take_out = _monitor(turn) if _monitoring is not None else _trace(turn)
    turn.begun.wait(within_s)
    is_made = turn.close()
    take_out()
    if is_made:
        turn.ended.wait()
    return is_made


class _Turn:
    """The one time that the call is made."""

    def __init__(self, thread: int, call: Callable[[], None]) -> None:
        self.begun, self.ended = Event(), Event()
        self.thread = thread
        self._calls = [call]

    def take(self) -> None:
        if get_ident() != self.thread or not self._calls:
            return
        with suppress(IndexError):  # the other thread has closed it just now
            call = self._calls.pop()
            self.begun.set()
            try:
                call()
            finally:
                self.ended.set()

    def close(self) -> bool:
        """Let the call be made no more; returns whether it has begun."""
        with suppress(IndexError):
            self._calls.pop()
            return False
        return True


def _monitor(turn: _Turn) -> Callable[[], None]:
    tool = next((number for number in _TOOL_IDS if _monitoring.get_tool(number) is None), None)
    if tool is None:
        return lambda: None
    events = _monitoring.events.LINE, _monitoring.events.JUMP  # a loop on one line begins that line once
    _monitoring.use_tool_id(tool, "deepscope")
    for event in events:
        _monitoring.register_callback(tool, event, lambda *_: turn.take())
    _monitoring.set_events(tool, sum(events))

    def take_out() -> None:
        _monitoring.set_events(tool, 0)
        for event in events:
            _monitoring.register_callback(tool, event, None)
        _monitoring.free_tool_id(tool)

    return take_out


def _trace(turn: _Turn) -> Callable[[], None]:
    def on_line(_frame: FrameType, _event: str, _arg: Any) -> None:
        turn.take()

    frame = sys._current_frames().get(turn.thread)
    while frame is not None:
        frame.f_trace, frame.f_trace_lines = on_line, True
        frame = frame.f_back
    return lambda: None  # the thread ends with the process

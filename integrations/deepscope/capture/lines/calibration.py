"""What recording a line costs, measured where it is paid: in the first entries of a process and an empty hook."""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

__all__ = ["CostSamples", "measure_dispatch_ns"]

_WANTED = 256
_TURNS = 100


class CostSamples:
    """Durations of the first line callbacks of a process; complete once there are enough of them."""

    clock = staticmethod(perf_counter_ns)

    def __init__(self) -> None:
        self._samples: list[int] = []
        self.dispatch_ns = 0
        """What Python takes to call a hook; 0 until `prepare`."""
        self._is_prepared = False

    @property
    def is_complete(self) -> bool:
        """Whether no more samples are needed."""
        return len(self._samples) >= _WANTED

    def add(self, duration_ns: int) -> None:
        """Take in one callback's duration."""
        self._samples.append(duration_ns)

    def prepare(self) -> None:
        """Measure, once, what Python itself takes to call a hook; when no hook of ours is in place."""
        if not self._is_prepared:
            self._is_prepared = True
            self.dispatch_ns = measure_dispatch_ns()

    @property
    def entry_ns(self) -> int:
        """Nanoseconds that one line entry costs; 0 before the first.

        The lower quartile: the first run of each line, which makes its scope, is ten times as long.
        """
        if not self._samples:
            return 0
        return sorted(self._samples)[len(self._samples) // 4] + self.dispatch_ns


def measure_dispatch_ns() -> int:
    """What a line hook costs that does nothing: Python's own part; about a millisecond of work."""
    bare = _shortest(_lines)
    hooked = _with_hook(_lines)
    return max(hooked - bare, 0) // (2 * _TURNS)


def _lines() -> None:
    for turn in range(_TURNS):
        _ = turn


def _shortest(lines: Callable[[], None]) -> int:
    best = 1 << 62
    for _ in range(5):
        started = perf_counter_ns()
        lines()
        best = min(best, perf_counter_ns() - started)
    return best


def _with_hook(lines: Callable[[], None]) -> int:
    monitoring: Any = getattr(sys, "monitoring", None)
    if monitoring is None:
        if sys.gettrace() is not None:
            return 0

        def on_local(_frame: Any, _event: str, _arg: Any) -> None:
            return None

        sys.settrace(lambda _frame, _event, _arg: on_local)
        try:
            return _shortest(lines)
        finally:
            sys.settrace(None)
    tool = next((number for number in (4, 3) if monitoring.get_tool(number) is None), None)
    if tool is None:
        return 0
    code, line_event = lines.__code__, monitoring.events.LINE
    monitoring.use_tool_id(tool, "deepscope")
    try:
        monitoring.register_callback(tool, line_event, lambda _code, _line: None)
        monitoring.set_local_events(tool, code, line_event)
        return _shortest(lines)
    finally:
        monitoring.set_local_events(tool, code, 0)
        monitoring.register_callback(tool, line_event, None)
        monitoring.free_tool_id(tool)

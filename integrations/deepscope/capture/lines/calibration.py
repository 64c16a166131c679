"""What recording costs, measured where it is paid: in callbacks taken as samples while a window is open."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable
from enum import Enum, auto
from time import perf_counter_ns
from typing import Any

__all__ = ["CostSamples", "Work", "measure_dispatch_ns"]

_KEPT = 512
_FIRST_BURST = 384
_BURST = 96
_TURNS = 100
_OUTLIERS = 10
"""One in so many samples, the longest, was interrupted, or did what is done once in a while."""
_FEWEST = 4
_UNKNOWN_NS = 800


class Work(Enum):
    """What one callback did."""

    ENTRY = auto()
    """A line began, with a scope."""
    QUIET = auto()
    """A line past its budget began, without one."""
    FIRST = auto()
    """A line began for the first time, and its scope was made."""
    CALL = auto()
    """A frame began, or ended: half a call."""


class CostSamples:
    """Durations of callbacks of this process, the newest of each kind of work, taken in bursts."""

    clock = staticmethod(perf_counter_ns)

    def __init__(self) -> None:
        self._samples: dict[Work, deque[int]] = {work: deque(maxlen=_KEPT) for work in Work}
        self._means: dict[Work, int] = {}
        self._wanted = _FIRST_BURST
        self.dispatch_ns = 0
        """What Python takes to call a hook; 0 until `prepare`."""
        self._is_prepared = False

    @property
    def is_complete(self) -> bool:
        """Whether the burst is over."""
        return self._wanted <= 0

    def begin_burst(self) -> None:
        """Take samples again for a while."""
        self._wanted = max(self._wanted, _BURST)

    def add(self, work: Work, duration_ns: int) -> None:
        """Take in one callback's duration."""
        self._wanted -= 1
        self._samples[work].append(duration_ns)
        self._means.pop(work, None)

    def prepare(self) -> None:
        """Before a window: measure, once, what Python itself takes to call a hook; when none of ours is in place."""
        self.begin_burst()
        if not self._is_prepared:
            self._is_prepared = True
            self.dispatch_ns = measure_dispatch_ns()

    def of(self, work: Work) -> int:
        """Nanoseconds that one callback costs, Python's part included; a guess where there are few samples."""
        known = self._means.get(work)
        if known is None:
            samples = sorted(self._samples[work])
            if len(samples) < _FEWEST:
                return 2 * self.of(Work.ENTRY) if work is Work.QUIET else _UNKNOWN_NS + self.dispatch_ns
            kept = samples[: len(samples) - len(samples) // _OUTLIERS]
            known = self._means[work] = sum(kept) // len(kept)
        return known + self.dispatch_ns


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

"""What recording costs, measured where it is paid: in callbacks taken as samples while a window is open.

And the clock by which a window's costs are compared with its length.
"""

from __future__ import annotations

import sys
from _thread import get_ident
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from time import perf_counter_ns, thread_time_ns
from typing import Any

from deepscope.capture.lines.scopes import Enter, Exit, make_pair
from deepscope.capture.machine_use import core_wait_ns
from deepscope.trace.format.span_names import MOMENT_NAME

_TURNS = 100
_MANY = 1023
_RUNS = 7


@dataclass(frozen=True)
class Overhead:
    """Python's own part in the cost of hooks."""

    event_ns: int = 0
    """To call a hook."""
    call_ns: int = 0
    """A call of code that gets no scopes, the hook that says so included; 0 where such code is left alone."""
    off_ns: int = 0
    """To switch off the events of one instruction, the hook that asks for it included."""
    slowdown: float = 1.0
    """How much longer instructions take."""


def measure_overhead() -> Overhead:
    """Measure, warm, with hooks that do nothing; one or two milliseconds of work."""
    monitoring: Any = getattr(sys, "monitoring", None)
    if monitoring is not None:
        return _of_monitoring(monitoring)
    return Overhead() if sys.gettrace() is not None else _of_tracing()


def _of_tracing() -> Overhead:
    calls_ns, ordinary_ns = _shortest(_calls), _shortest(_ordinary)
    files: dict[str, bool] = {__file__: False}
    dropped: dict[int, object] = {}
    left_alone = 0

    def leave_alone(frame: Any, _event: str, _arg: Any) -> Any:
        nonlocal left_alone
        try:
            code = frame.f_code
            wanted = id(code) not in dropped and files.get(code.co_filename)
            if wanted is None:
                return None
            function = code if wanted else None
            if function is None:
                left_alone += 1
                if not left_alone & _MANY:
                    left_alone += 0
                return None
        except Exception:  # noqa: BLE001 - as the hook itself
            pass
        return None

    def on_line(_frame: Any, _event: str, _arg: Any) -> None:
        return None

    slowdown = max(_shortest(_ordinary, leave_alone) / ordinary_ns, 1.0)
    return Overhead(
        event_ns=max(_shortest(_lines, lambda *_: on_line) - _shortest(_lines, leave_alone), 0) // (2 * _TURNS),
        call_ns=max(_shortest(_calls, leave_alone) - calls_ns, 0) // _TURNS,
        slowdown=slowdown,
    )


def _of_monitoring(monitoring: Any) -> Overhead:
    tool = next((number for number in (4, 3) if monitoring.get_tool(number) is None), None)
    if tool is None:
        return Overhead()
    events, code = monitoring.events, _lines.__code__
    bare_ns = _shortest(_lines)
    monitoring.use_tool_id(tool, "deepscope")
    try:
        monitoring.register_callback(tool, events.LINE, lambda _code, _line: None)
        monitoring.set_local_events(tool, code, events.LINE)
        event_ns = max(_shortest(_lines) - bare_ns, 0) // (2 * _TURNS)
        monitoring.set_local_events(tool, code, 0)
        return Overhead(event_ns=event_ns, off_ns=_switching_off_ns(monitoring, tool))
    finally:
        for event in (events.LINE, events.INSTRUCTION):
            monitoring.register_callback(tool, event, None)
        monitoring.free_tool_id(tool)


def _switching_off_ns(monitoring: Any, tool: int) -> int:
    code, event = _ordinary.__code__, monitoring.events.INSTRUCTION
    functions, count, best = {id(code): {0: 0}}, 0, 1 << 62

    def switch_off(code: Any, offset: int) -> Any:
        nonlocal count
        count += 1
        starts = functions.get(id(code))
        return monitoring.DISABLE if starts is None or starts.get(offset) is None else None

    bare_ns = _shortest(_ordinary)
    monitoring.register_callback(tool, event, switch_off)
    for _ in range(_RUNS // 2):
        count = 0
        monitoring.set_local_events(tool, code, event)
        started = perf_counter_ns()
        _ordinary()
        best = min(best, perf_counter_ns() - started)
        monitoring.set_local_events(tool, code, 0)
        monitoring.restart_events()
    return max(best - bare_ns, 0) // max(count, 1)


def _shortest(work: Callable[[], object], trace: Any = None) -> int:
    best = 1 << 62
    for _ in range(_RUNS):
        if trace is not None:
            sys.settrace(trace)
        try:
            started = perf_counter_ns()
            work()
            best = min(best, perf_counter_ns() - started)
        finally:
            if trace is not None:
                sys.settrace(None)
    return best


def _lines() -> None:
    for turn in range(_TURNS):
        _ = turn


def _calls() -> None:
    for _ in (turn for turn in range(_TURNS // 2)):
        pass
    sorted(range(_TURNS // 2), key=lambda turn: turn)


class _Box:
    def __init__(self) -> None:
        self.count = 0


def _ordinary() -> object:
    box, found, names = _Box(), {}, ("a", "b", "c", "d")
    for turn in range(_TURNS):
        if turn & 1:
            box.count = box.count + turn
        found[names[turn & 3]] = box.count
    return found


_OPERATOR_SCOPES = 0.8
"""Scopes that the recording of an operator costs, without shapes and memory (torch 2.13: 0.7 to 0.9 of one)."""
_SCOPES = 32


def cost_of_operator_ns() -> float:
    """What torch's recording of an operator takes on this machine, by that of bare scopes; while torch records."""
    enter, leave = make_pair(MOMENT_NAME)
    best_ns = min(_scopes_ns(enter, leave) for _ in range(3))
    return round(_OPERATOR_SCOPES * best_ns / _SCOPES, 1)


def _scopes_ns(enter: Enter, leave: Exit) -> int:
    started = perf_counter_ns()
    for _ in range(_SCOPES):
        enter()
        leave()
    return perf_counter_ns() - started


_KEPT = 512
_FIRST_BURST = 384
_BURST = 96
_INTERRUPTED = 8
"""A sample of so many times the median was interrupted. Shorter ones count: in some of them torch takes memory."""
_FEWEST = 4
_UNKNOWN_NS = 800


class HookWork(Enum):
    """What one callback did."""

    ENTRY = auto()
    """A line began, with a scope."""
    QUIET = auto()
    """A line past its budget began, without one."""
    SILENT = auto()
    """A library's line that holds no operator began, without a scope."""
    TRIAL = auto()
    """A line on trial began, with a scope whose time is taken."""
    MODULE = auto()
    """A module's call began, with a scope."""
    CALL = auto()
    """A frame began, or ended: half a call."""


_TIMES_AN_ENTRY = {HookWork.QUIET: 2, HookWork.TRIAL: 3, HookWork.MODULE: 2}


class CostSamples:
    """Durations of callbacks of this process, the newest of each kind of work, taken in bursts."""

    clock = staticmethod(perf_counter_ns)

    def __init__(self) -> None:
        self._samples: dict[HookWork, deque[int]] = {work: deque(maxlen=_KEPT) for work in HookWork}
        self._means: dict[HookWork, int] = {}
        self._wanted = _FIRST_BURST
        self.is_complete = False
        """Whether the burst is over; no property, for the hooks read it."""
        self.overhead = Overhead()
        """Python's own part; none until `prepare`."""
        self._is_prepared = False

    def begin_burst(self) -> None:
        """Take samples again for a while."""
        self._wanted = max(self._wanted, _BURST)
        self.is_complete = False

    def add(self, work: HookWork, duration_ns: int) -> None:
        """Take in one callback's duration."""
        self._wanted -= 1
        self.is_complete = self._wanted <= 0
        self._samples[work].append(duration_ns)
        self._means.pop(work, None)

    def prepare(self) -> None:
        """Before a window, while no hook is in place: measure once what Python itself takes."""
        self.begin_burst()
        if not self._is_prepared:
            self._is_prepared = True
            self.overhead = measure_overhead()

    def of(self, work: HookWork) -> int:
        """Nanoseconds that one callback costs, Python's part included; a guess where there are few samples."""
        known = self._means.get(work)
        if known is None:
            samples = sorted(self._samples[work])
            if len(samples) < _FEWEST:
                if work in _TIMES_AN_ENTRY:
                    return _TIMES_AN_ENTRY[work] * self.of(HookWork.ENTRY)
                return _UNKNOWN_NS + self.overhead.event_ns
            longest = _INTERRUPTED * samples[len(samples) // 2]
            kept = [sample for sample in samples if sample <= longest]
            known = self._means[work] = sum(kept) // len(kept)
        return known + self.overhead.event_ns


class RunClock:
    """Nanoseconds since it was made, less what the calling threads waited for a core, where the system tells that.

    A busy machine makes both the recording and the program longer, so the clock on the wall tells neither.
    """

    def __init__(self) -> None:
        self._started = perf_counter_ns()
        self._cpu_started = thread_time_ns()
        self._thread = get_ident()
        self._waited_ns = 0
        self._last: dict[int, int] = {get_ident(): core_wait_ns() or 0}

    def now_ns(self) -> int:
        """Time that has passed, never going back; some microseconds of work."""
        thread, waited_ns = get_ident(), core_wait_ns() or 0
        self._waited_ns += max(waited_ns - self._last.get(thread, waited_ns), 0)
        self._last[thread] = waited_ns
        return max(perf_counter_ns() - self._started - self._waited_ns, 0)

    def share_on_core(self) -> float:
        """Of the time in which the thread that made this could run, the part in which it had a core; 1 if not known."""
        self.now_ns()
        cpu_ns = thread_time_ns() - self._cpu_started
        if get_ident() != self._thread or cpu_ns <= 0:
            return 1.0
        return cpu_ns / (cpu_ns + self._waited_ns)

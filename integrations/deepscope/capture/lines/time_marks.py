"""Marks in the recording of what the open line did not do itself: its thread was off the CPU, or DeepScope recorded.

Off the CPU a thread was blocked (a file, a socket, a lock, another process, a sleep), or waited for a core. Its own CPU
clock tells it, and takes a quarter of a microsecond a reading. So it is read at the end of long stretches alone. That
is enough: a wait makes a stretch long, so what a thread misses between two readings falls into the long stretch between
them. How much of it the thread could have run and had no core, the kernel's scheduler counts.
"""

from __future__ import annotations

import time
from _thread import get_ident
from time import perf_counter_ns, thread_time_ns
from typing import NamedTuple

try:
    from resource import RUSAGE_THREAD, getrusage
except ImportError:  # macOS counts by process alone, Windows not at all
    getrusage = None  # type: ignore[assignment]

from deepscope.capture.lines.frames import Stack, ThreadStacks
from deepscope.capture.lines.overhead_budget import OverheadBudget
from deepscope.capture.lines.scopes import make_pair
from deepscope.capture.machine_use import core_wait_ns
from deepscope.trace.format.span_names import OffCpu, off_cpu_name, recording_name

UNPAID = 32
"""Happenings in the hooks after which a mark tells what they cost: at the line that is open, as most of them were."""

LONG_NS = 50_000
"""A shorter stretch counts as time on the CPU."""
_SHORTEST_NS = 10_000
"""Off-CPU time that is shorter is not marked."""
_COARSEST_S = 1e-5
_NEVER_NS = 1 << 62
_LONGEST_MARK_NS = 5_000


class OffCpuTime:
    """The readings of one thread, on which it is made."""

    def __init__(self) -> None:
        self._thread = get_ident()
        self.read_at = perf_counter_ns()
        """When the CPU clock was read last."""
        self._cpu_ns = thread_time_ns()

    def read(self, since: int, now: int) -> int:
        """How long the thread was off the CPU between `since` and `now`, both by `perf_counter_ns`."""
        cpu_ns = thread_time_ns()
        missed = now - self.read_at - (cpu_ns - self._cpu_ns)
        self.read_at, self._cpu_ns = now, cpu_ns
        return min(max(missed, 0), now - since)

    def peek(self, since: int, now: int) -> int:
        """As `read`, but on any thread, and the next `read` counts it again; 0 where the system has no such clock."""
        clock_of = getattr(time, "pthread_getcpuclockid", None)
        if clock_of is None:
            return 0
        try:
            cpu_ns = time.clock_gettime_ns(clock_of(self._thread))
        except OSError:  # the thread has ended
            return 0
        return min(max(now - self.read_at - (cpu_ns - self._cpu_ns), 0), now - since)


class Pulse:
    """When the hooks of one thread saw it last; made on that thread.

    They ask the cheap clock alone, and call `long` at the end of a stretch of `LONG_NS` or more. That marks in the
    recording how much of the stretch was off the CPU, while the scope of the line is still open.
    """

    __slots__ = ("_core_wait_ns", "_off_cpu", "_switches", "last")

    def __init__(self) -> None:
        self.last = perf_counter_ns()
        self._off_cpu = OffCpuTime()
        self._core_wait_ns = core_wait_ns()
        self._switches = _count_switches()

    def long(self, now: int) -> None:
        """A long stretch has ended `now`; the caller sets `last`."""
        off_cpu_ns = self._off_cpu.read(self.last, now)
        if off_cpu_ns < _SHORTEST_NS:
            return
        found = self._divided(off_cpu_ns)
        if found is not None and found.duration_ns >= _SHORTEST_NS:
            enter, leave = make_pair(off_cpu_name(found))
            enter()
            leave()

    def _divided(self, off_cpu_ns: int) -> OffCpu | None:
        """What is known of time off the CPU since this was asked last; None for nothing."""
        total_ns, before_ns = core_wait_ns(), self._core_wait_ns
        switches, before = _count_switches(), self._switches
        self._core_wait_ns, self._switches = total_ns, switches
        has_blocked = switches is None or before is None or switches.voluntary != before.voluntary
        if total_ns is not None and before_ns is not None:
            waited_ns = min(max(total_ns - before_ns, 0), off_cpu_ns)
            return OffCpu(off_cpu_ns if has_blocked else waited_ns, waited_ns)
        # Without the scheduler's figures: how a stretch in which the thread both blocked and was preempted divides is
        # not known, and such a stretch counts as on the CPU.
        was_preempted = switches is not None and before is not None and switches.involuntary != before.involuntary
        return OffCpu(off_cpu_ns, 0) if has_blocked and not was_preempted else None


class _Switches(NamedTuple):
    """How often a thread has left its core."""

    voluntary: int
    """By itself, since it blocked."""
    involuntary: int
    """For another thread."""


def _count_switches() -> _Switches | None:
    """Of this thread; None where the system does not count them."""
    usage = getrusage(RUSAGE_THREAD) if getrusage is not None else None
    return _Switches(usage.ru_nvcsw, usage.ru_nivcsw) if usage is not None else None


def tells_cpu_time() -> bool:
    """Whether the thread's CPU clock is fine enough: that of Windows goes by sixtieths of a second."""
    return time.get_clock_info("thread_time").resolution <= _COARSEST_S


class TimeMarks:
    """The marks of one window, all of them on its owner's thread."""

    def __init__(self, threads: ThreadStacks, overhead_budget: OverheadBudget, *, are_wanted: bool) -> None:
        self.pulse = Pulse()
        """Of the owner."""
        self.long_ns = LONG_NS if are_wanted and tells_cpu_time() else _NEVER_NS
        """From this length on a stretch between two events of the hooks may have been off the CPU."""
        self._threads = threads
        self._own = threads.own
        self._overhead_budget = overhead_budget
        self._mark_ns = 0
        """What the last mark of `pay` took."""
        self._own_work_since: int | None = None
        """The thread's CPU time, once DeepScope is at its own work and from its last mark on."""

    def note_event(self, stack: Stack) -> None:
        """An event of the hooks on the thread of `stack`, before anything comes of it."""
        if stack is self._own:
            now = perf_counter_ns()
            if now - self.pulse.last >= self.long_ns:
                self.pulse.long(now)
            self.pulse.last = now

    def pay(self, stack: Stack) -> None:
        """Mark in the recording what recording has cost the open line since the last mark."""
        if stack is not self._own or not self._threads.is_open:
            return
        started = perf_counter_ns()
        _mark(self._overhead_budget.pay() + self._mark_ns)
        now = perf_counter_ns()
        self._mark_ns = min(now - started, _LONGEST_MARK_NS)
        begin_stretch(stack, now)

    def begin_own_work(self) -> None:
        """What DeepScope does on the owner from here on is its own work, and no part of the line that is open."""
        self._own_work_since = thread_time_ns()

    def mark_own_work(self) -> None:
        """Mark in the recording what such work has taken since it began, or since the last such mark.

        And for how long the thread was off the CPU: of what comes behind the last step's end the trace tells nothing.
        """
        self.note_event(self._own)
        since, self._own_work_since = self._own_work_since, None
        if since is not None and self._threads.is_open:
            now = thread_time_ns()
            _mark(now - since)
            self._own_work_since = now

    def end_own_work(self) -> None:
        """It is over."""
        self.mark_own_work()
        self._own_work_since = None
        begin_stretch(self._own, perf_counter_ns())


def begin_stretch(stack: Stack, now: int) -> None:
    """What was done up to `now` is the hooks' own, and no part of what the line open in `stack` does."""
    if stack and stack[-1].is_special:
        stack[-1].since = now


def _mark(recording_ns: int) -> None:
    """Put into the recording that it took so long of the open line."""
    enter, leave = make_pair(recording_name(recording_ns))
    enter()
    leave()

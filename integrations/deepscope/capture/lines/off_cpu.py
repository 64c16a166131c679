"""Off-CPU time of a thread: it was blocked (a file, a socket, a lock, another process, a sleep), or waited for a core.

The thread's own CPU clock tells it, and takes a quarter of a microsecond a reading. So it is read at the end of long
stretches alone. That is enough: a wait makes a stretch long, so what a thread misses between two readings falls into
the long stretch between them. How much of it the thread could have run and had no core, the kernel's scheduler counts.
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

from deepscope.capture.lines.emit import make_pair
from deepscope.capture.machine_use import core_wait_ns
from deepscope.trace.format.span_names import OffCpu, off_cpu_name

LONG_NS = 50_000
"""A shorter stretch counts as time on the CPU."""
_SHORTEST_NS = 10_000
"""Off-CPU time that is shorter is not marked."""
_COARSEST_S = 1e-5


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

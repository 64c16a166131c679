"""Time that a thread spent away from the CPU: asleep, or waiting for a file, a socket, a lock, another process.

The thread's own CPU clock tells, at a quarter of a microsecond a reading. So it is read behind long stretches alone,
and often enough that the reading before is not far: what a thread misses between two readings falls into the long
stretch between them, since a wait makes a stretch long.
"""

from __future__ import annotations

import time
from _thread import get_ident
from time import perf_counter_ns, thread_time_ns

try:
    from resource import RUSAGE_THREAD, getrusage
except ImportError:  # macOS counts by process alone, Windows not at all
    getrusage = None  # type: ignore[assignment]

from deepscope.capture.lines.emit import make_pair
from deepscope.trace.format.span_names import off_cpu_name

__all__ = ["LONG_NS", "Pulse", "TimeAway", "tells_cpu_time"]

LONG_NS = 50_000
"""A shorter stretch counts as on the CPU."""
_SHORTEST_NS = 10_000
"""Less is not worth a mark."""
_COARSEST_S = 1e-5


class TimeAway:
    """The readings of one thread, on which it is made."""

    def __init__(self) -> None:
        self._thread = get_ident()
        self.read_at = perf_counter_ns()
        """When the CPU clock was read last."""
        self._cpu_ns = thread_time_ns()

    def read(self, since: int, now: int) -> int:
        """How long the thread was away between `since` and `now`, by `perf_counter_ns`; at most the whole of it."""
        cpu_ns = thread_time_ns()
        missed = now - self.read_at - (cpu_ns - self._cpu_ns)
        self.read_at, self._cpu_ns = now, cpu_ns
        return min(max(missed, 0), now - since)

    def peek(self, since: int, now: int) -> int:
        """Likewise from another thread, reading nothing anew; 0 where the system does not tell a thread's clock."""
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

    They ask the cheap clock alone, and call `long` behind a stretch of `LONG_NS` or more. It marks in the recording how
    long of it the thread was away, while the scope of the line is still open.
    """

    __slots__ = ("_away", "_waits", "last")

    def __init__(self) -> None:
        self.last = perf_counter_ns()
        self._away = TimeAway()
        self._waits = _count_waits()

    def long(self, now: int) -> None:
        """A long stretch has ended `now`; the caller sets `last`."""
        away_ns = self._away.read(self.last, now)
        waits, before = _count_waits(), self._waits
        self._waits = waits
        # Without a wait of its own the thread only had to leave the CPU to another one for a while.
        if away_ns >= _SHORTEST_NS and (waits != before or waits < 0):
            enter, leave = make_pair(off_cpu_name(away_ns))
            enter()
            leave()


def _count_waits() -> int:
    """How often this thread has given up the CPU by itself; -1 where the system does not count that."""
    return int(getrusage(RUSAGE_THREAD).ru_nvcsw) if getrusage is not None else -1


def tells_cpu_time() -> bool:
    """Whether the thread's CPU clock is fine enough: that of Windows goes by sixtieths of a second."""
    return time.get_clock_info("thread_time").resolution <= _COARSEST_S

"""Time in which a thread could run, and what it waited for a core of the machine."""

from __future__ import annotations

import os
from _thread import get_ident
from time import perf_counter_ns, thread_time_ns

_SCHEDULER = "/proc/thread-self/schedstat"
"""Linux: ns on a core, ns waiting for one, and how often it had one (Documentation/scheduler/sched-stats.rst)."""
_LONGEST = 64


def core_wait_ns() -> int | None:
    """How long the calling thread could have run and had no core, since it started; some microseconds of work.

    None where the system does not tell.
    """
    try:
        file = os.open(_SCHEDULER, os.O_RDONLY)
    except OSError:
        return None
    try:
        return int(os.read(file, _LONGEST).split()[1])
    except (OSError, ValueError, IndexError):
        return None
    finally:
        os.close(file)


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

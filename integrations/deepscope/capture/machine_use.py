"""What else uses the machine: who has its cores, and whether its memory suffices for the end of a window."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from time import perf_counter_ns, process_time_ns
from typing import NamedTuple

from deepscope.capture.counters.container import Container, available_bytes, unmapped_bytes
from deepscope.capture.counters.source import NoSensorError
from deepscope.capture.process_hooks.signals import is_main_thread
from deepscope.capture.process_hooks.threads import call_soon
from deepscope.trace.format.header import MachineUse

_ROOT = Path("/")
_OWN_SCHEDULE = "/proc/thread-self/schedstat"
"""Linux: ns on a core, ns waiting for one, and how often it had one (Documentation/scheduler/sched-stats.rst)."""
_LONGEST_SCHEDULE = 64


def core_wait_ns() -> int | None:
    """How long the calling thread could have run and had no core, since it started; some microseconds of work.

    None where the system does not tell.
    """
    try:
        file = os.open(_OWN_SCHEDULE, os.O_RDONLY)
    except OSError:
        return None
    try:
        return int(os.read(file, _LONGEST_SCHEDULE).split()[1])
    except (OSError, ValueError, IndexError):
        return None
    finally:
        os.close(file)


class _Cores(NamedTuple):
    """What all cores have done since the machine started."""

    cores: int
    used_ns: int
    """By this machine and, stolen, by others on its host."""
    stolen_ns: int


class MachineWatch:
    """The machine's counters as they stood when this was made; on Linux alone, elsewhere nothing is known.

    `root`: where /proc and /sys are looked for.
    """

    def __init__(self, root: Path = _ROOT) -> None:
        self._root = root
        self._started_ns = perf_counter_ns()
        self._process_ns = process_time_ns()
        self._threads = _scheduled(root)
        self._container = _opened(root)
        self._cores = _cores(root)
        self._periods = self._read_periods()

    def end(self) -> MachineUse:
        """What has been used since; the files are closed."""
        wall_ns = max(perf_counter_ns() - self._started_ns, 1)
        own = (process_time_ns() - self._process_ns) / wall_ns
        periods, throttled = (now - before for now, before in zip(self._read_periods(), self._periods, strict=True))
        others = stolen = None
        cores = 0
        now = _cores(self._root)
        if self._cores is not None and now is not None:
            cores = now.cores
            taken = (now.stolen_ns - self._cores.stolen_ns) / wall_ns
            others = round(max((now.used_ns - self._cores.used_ns) / wall_ns - taken - own, 0.0), 2)
            stolen = _ratio(taken, cores)
        if self._container is not None:
            self._container.close()
        return MachineUse(
            cores=cores,
            allowed_cores=len(os.sched_getaffinity(0)) if cores and hasattr(os, "sched_getaffinity") else 0,
            quota_cores=self._container.limits.cpus if self._container is not None else 0.0,
            own_cores=round(own, 2),
            others_cores=others,
            core_wait_ratio=_core_wait_ratio(self._threads, _scheduled(self._root)),
            stolen_ratio=stolen,
            throttled_ratio=_ratio(throttled, periods),
        )

    def _read_periods(self) -> tuple[float, float]:
        """Periods of the container's quota, and those in which it was used up."""
        if self._container is None:
            return 0.0, 0.0
        values = zip(self._container.series, self._container.read(), strict=True)
        periods = {one.name: value for one, value in values if one.track == "container periods"}
        return periods.get("all", 0.0), periods.get("throttled", 0.0)


def _opened(root: Path) -> Container | None:
    with suppress(OSError, ValueError, NoSensorError):
        return Container(root)
    return None


def _cores(root: Path) -> _Cores | None:
    """From /proc/stat (proc(5)), for this is on the training thread, with psutil or without."""
    with suppress(OSError, ValueError, AttributeError):
        lines = [line.split() for line in (root / "proc/stat").read_bytes().splitlines() if line.startswith(b"cpu")]
        user, nice, system, _, _, interrupts, soft, stolen = map(int, lines[0][1:9])  # guests are in user's already
        tick_ns = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
        return _Cores(len(lines) - 1, (user + nice + system + interrupts + soft + stolen) * tick_ns, stolen * tick_ns)
    return None


def _ratio(part: float, whole: float) -> float | None:
    return round(min(max(part / whole, 0.0), 1.0), 3) if whole > 0 else None


def _scheduled(root: Path) -> dict[str, tuple[int, int]]:
    """Of each thread of this process the nanoseconds on a core and those that it waited for one."""
    found: dict[str, tuple[int, int]] = {}
    tasks = root / "proc/self/task"
    with suppress(OSError):
        for thread in os.listdir(tasks):  # noqa: PTH208 - names alone
            with suppress(OSError, ValueError):
                ran, waited, *_ = (tasks / thread / "schedstat").read_bytes().split()
                found[thread] = int(ran), int(waited)
    return found


def _core_wait_ratio(before: dict[str, tuple[int, int]], after: dict[str, tuple[int, int]]) -> float | None:
    """Of the time in which the process's threads could run, the part without a core; None where it is not known."""
    ran, waited = (
        sum(now[which] - before.get(thread, (0, 0))[which] for thread, now in after.items()) for which in (0, 1)
    )
    return _ratio(waited, ran + waited)


_TIMES_THE_GROWTH = 10
"""Measured with torch 2.13: 5 times what a window has added to the process, 8 to 11 times with `profile_memory`."""
_SHARE = 2
"""Half of what is free is left to others, and to the processes that rewrite the trace."""
_EVERY_S = 1.0


class EndMemory:
    """What the end of a window that begins now will take, as this process grows; on Linux alone, elsewhere no limit.

    `processes`: so many of this host's record the same, and end their windows at once.
    """

    def __init__(
        self,
        processes: int = 1,
        *,
        root: Path = _ROOT,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._processes = processes
        self._root = root
        self._clock = clock
        self._looked_s = clock()
        self._began_bytes = unmapped_bytes(root)

    def shortage(self) -> tuple[int, int] | None:
        """The bytes that the end may take and those that are free, where these are too few; looks once a second."""
        now = self._clock()
        if now - self._looked_s < _EVERY_S:
            return None
        self._looked_s = now
        needed = _TIMES_THE_GROWTH * (unmapped_bytes(self._root) - self._began_bytes)
        if needed <= 0:
            return None
        free = available_bytes(self._root) // self._processes
        return (needed, free) if _SHARE * needed > free else None


class EndMemoryWatch:
    """Looks at the memory of a window in which no step does: on a thread of its own, until `stop`.

    Where `shortage` finds too little, the main thread calls `end` with it, between two of its instructions. A window
    that another thread opened is not watched, since no call reaches that thread.
    """

    def __init__(self, shortage: Callable[[], tuple[int, int] | None], end: Callable[[tuple[int, int]], None]) -> None:
        self._shortage = shortage
        self._end = end
        self._is_over = threading.Event()
        if is_main_thread():
            threading.Thread(target=self._run, name="deepscope-end-memory", daemon=True).start()

    def stop(self) -> None:
        self._is_over.set()

    def _run(self) -> None:
        while not self._is_over.wait(_EVERY_S):
            if short := self._shortage():
                call_soon(partial(self._end_once, short))
                return

    def _end_once(self, short: tuple[int, int]) -> None:
        if not self._is_over.is_set():
            self._is_over.set()
            self._end(short)

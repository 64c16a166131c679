"""CPU, memory, disks and network of the machine and of this process, as psutil tells them on every system."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

from deepscope.capture.counters.source import NoSensorError, Series

MOST_CORES = 256
"""That have a series of their own."""
MOST_DISKS = 16
MOST_INTERFACES = 16
_SWAP_EVERY = 10
"""Samples for which swap holds: it changes slowly, and psutil reads two long files for it."""
_NO_DISK = ("loop", "ram", "zram", "sr", "fd")
_NAN = math.nan


class _Unopened:
    """A source that holds nothing open."""

    def close(self) -> None:
        """Nothing to let go of."""


class Cores(_Unopened):
    """All cores together, and each one."""

    def __init__(self) -> None:
        cores = psutil.cpu_times(percpu=True)
        if not cores:
            raise NoSensorError("the system tells of no cores")
        self.count = len(cores)
        self._waits = [name for name in ("iowait", "steal") if hasattr(cores[0], name)]
        names = {"iowait": "waiting for I/O", "steal": "stolen"}
        self.series = [
            *(
                Series("CPU", name, is_total=True, scale=100 / self.count, most=100)
                for name in ("all", *(names[one] for one in self._waits))
            ),
            *(
                Series("CPU cores", str(core), is_total=True, scale=100, most=100)
                for core in range(min(self.count, MOST_CORES))
            ),
        ]

    def read(self) -> Sequence[float]:
        """Seconds since the machine started."""
        cores = psutil.cpu_times(percpu=True)
        used = [_in_use(core) for core in cores]
        waits = [sum(getattr(core, name) for core in cores) for name in self._waits]
        if len(cores) != self.count:  # one was switched off or on: which one is not told
            used = [_NAN] * self.count
        return [sum(used), *waits, *used[:MOST_CORES]]


def _in_use(core: Any) -> float:
    """Seconds that a core was in use; guests are in user's already."""
    guests = getattr(core, "guest", 0.0) + getattr(core, "guest_nice", 0.0)
    return float(sum(core) - core.idle - getattr(core, "iowait", 0.0) - guests)


class ThisProcess(_Unopened):
    """CPU time of all threads of the process, of no child; page faults where the system tells them."""

    def __init__(self) -> None:
        most = 100 * (os.cpu_count() or 1)
        self.series = [Series("process CPU", "process", is_total=True, scale=1e-7, most=most)]
        try:
            import resource
        except ImportError:  # Windows
            self._usage: Any = None
        else:
            self._usage = lambda: resource.getrusage(resource.RUSAGE_SELF)
            self.series += [Series("page faults", kind, is_total=True) for kind in ("minor", "major")]

    def read(self) -> Sequence[float]:
        """Nanoseconds, and faults since it started."""
        if self._usage is None:
            return [time.process_time_ns()]
        usage = self._usage()
        return time.process_time_ns(), usage.ru_minflt, usage.ru_majflt


class MainMemory(_Unopened):
    """Memory and swap."""

    series = (
        Series("memory", "used"),
        Series("memory", "process"),
        Series("memory", "swap", may_vanish=True),
    )

    def __init__(self) -> None:
        self._process = psutil.Process()
        self._swap_bytes = 0
        self._reads = 0
        self.read()
        self._reads = 0

    def read(self) -> Sequence[float]:
        """Bytes."""
        if self._reads % _SWAP_EVERY == 0:
            self._swap_bytes = psutil.swap_memory().used
        self._reads += 1
        memory = psutil.virtual_memory()
        return memory.total - memory.available, self._process.memory_info().rss, self._swap_bytes


class Disks(_Unopened):
    """Whole disks that have been used since the machine started, those with most traffic first.

    `blocks`: the folder in which Linux lists whole disks; where it is not there, all that is told of counts.
    """

    def __init__(self, blocks: Path) -> None:
        whole = {path.name.replace("!", "/") for path in blocks.glob("*")}
        found = _disks()
        moved = {name: disk.read_bytes + disk.write_bytes for name, disk in found.items()}
        is_disk = {name for name in found if (not whole or name in whole) and name.rstrip("0123456789") not in _NO_DISK}
        self._names = _most(moved, is_disk, MOST_DISKS)
        if not self._names:
            raise NoSensorError("no disk of this machine can be seen from here")
        # Linux alone tells how long a disk had a request.
        self._is_busy_known = all(hasattr(found[name], "busy_time") for name in self._names)
        tracks = {
            "disk busy": (0.1, 100),  # from milliseconds in a second to percent
            "disk queue": (0.001, math.inf),  # milliseconds of all requests in a second: how many there were at a time
            "disk requests": (1, math.inf),
            "disk read": (1, math.inf),
            "disk written": (1, math.inf),
        }
        if not self._is_busy_known:
            del tracks["disk busy"]
        self.series = [
            Series(track, name, is_total=True, scale=scale, most=most)
            for name in self._names
            for track, (scale, most) in tracks.items()
        ]

    def read(self) -> Sequence[float]:
        """Milliseconds, requests and bytes since the machine started."""
        disks = _disks()
        found: list[float] = []
        for name in self._names:
            disk = disks.get(name)
            if disk is None:  # one that was pulled out
                found += [_NAN] * (4 + self._is_busy_known)
                continue
            if self._is_busy_known:
                found.append(disk.busy_time)
            found += [disk.read_time + disk.write_time, disk.read_count + disk.write_count]
            found += [disk.read_bytes, disk.write_bytes]
        return found


class Interfaces(_Unopened):
    """The interfaces that have carried anything, those with most traffic first."""

    def __init__(self) -> None:
        moved = {name: net.bytes_recv + net.bytes_sent for name, net in _interfaces().items()}
        self._names = _most(moved, set(moved), MOST_INTERFACES)
        if not self._names:
            raise NoSensorError("no network interface has carried anything")
        self.series = [
            Series(track, name, is_total=True) for name in self._names for track in ("network received", "network sent")
        ]

    def read(self) -> Sequence[float]:
        """Bytes since each came up."""
        found = _interfaces()
        return [
            number
            for name in self._names
            for number in ((_NAN, _NAN) if name not in found else (found[name].bytes_recv, found[name].bytes_sent))
        ]


def _most(moved: Mapping[str, float], wanted: set[str], count: int) -> list[str]:
    """The names of those that moved most, of these that moved anything."""
    return sorted((name for name in wanted if moved[name]), key=lambda name: (-moved[name], name))[:count]


def _disks() -> Mapping[str, Any]:
    """By name. What a counter loses when it begins anew is told by a gap, so psutil need not remember."""
    return dict(psutil.disk_io_counters(perdisk=True, nowrap=False) or {})


def _interfaces() -> Mapping[str, Any]:
    return dict(psutil.net_io_counters(pernic=True, nowrap=False) or {})

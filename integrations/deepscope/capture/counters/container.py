"""What this process and its control group may use and use: containers, and jobs of Slurm and Kubernetes.

Version 2: Documentation/admin-guide/cgroup-v2.rst; version 1: Documentation/scheduler/sched-bwc.rst and
admin-guide/cgroup-v1/memory.rst.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from deepscope.capture.counters.source import KernelFile, NoSensorError, Series, number_in, text_of
from deepscope.trace.format.counters import ContainerLimits

_MOST_BYTES = 1 << 50
"""Version 1 says "no limit" by a number near the largest."""


class Container:
    """The group with the tightest quota of CPU time, and the one with the least memory."""

    def __init__(self, root: Path) -> None:
        cpu, quota = _tightest(_folders(root, "cpu"), _quota)
        memory, limit = _tightest(_folders(root, "memory"), _memory_limit)
        self.limits = ContainerLimits(cpus=round(quota, 3), memory_bytes=int(limit))
        self.series: list[Series] = []
        self._cpu: KernelFile | None = None
        self._memory: KernelFile | None = None
        if cpu is not None:
            self._cpu = KernelFile(cpu / "cpu.stat")
            self._is_second = b"usage_usec" in self._cpu.read()
            if self._is_second:
                self.series.append(Series("container CPU", "used", is_total=True, scale=1e-4))
            self.series += [
                Series("container periods", "all", is_total=True),
                Series("container periods", "throttled", is_total=True),
            ]
        if memory is not None:
            name = "memory.current" if (memory / "memory.current").exists() else "memory.usage_in_bytes"
            self._memory = KernelFile(memory / name)
            self.series.append(Series("memory", "container"))
        if not self.series:
            raise NoSensorError("the process's control group has no limits")

    def read(self) -> Sequence[float]:
        """Microseconds, periods and bytes."""
        found: list[float] = []
        if self._cpu is not None:
            values_by_name = dict(line.split() for line in self._cpu.read().splitlines() if line.count(b" ") == 1)
            names = [*([b"usage_usec"] if self._is_second else []), b"nr_periods", b"nr_throttled"]
            found += [int(values_by_name.get(name, b"0")) for name in names]
        if self._memory is not None:
            found.append(int(self._memory.read()))
        return found

    def close(self) -> None:
        for file in (self._cpu, self._memory):
            if file is not None:
                file.close()


def free_in_groups(root: Path) -> list[int]:
    """Bytes that each of the process's groups with a limit leaves; unused files in its cache count as free."""
    found = []
    for folder in _folders(root, "memory"):
        if limit := int(_memory_limit(folder)):
            used = max(number_in(folder / "memory.current"), number_in(folder / "memory.usage_in_bytes"), 0)
            values_by_name = dict(
                line.split() for line in text_of(folder / "memory.stat").splitlines() if line.count(" ") == 1
            )
            cached = int(values_by_name.get("total_inactive_file") or values_by_name.get("inactive_file") or 0)
            found.append(max(limit - used + min(cached, used), 0))
    return found


def _folders(root: Path, controller: str) -> Iterator[Path]:
    """The folders of the process's group and those above it, the innermost first."""
    for line in text_of(root / "proc/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        names = controllers.split(",")
        if controllers and controller not in names:
            continue
        # A container sees its own group at the mount's root, whatever path the host has for it.
        for mount in (root / "sys/fs/cgroup" / controller,) if controllers else _unified(root):
            here = mount / path.strip("/")
            here = here if here.is_dir() else mount
            while here.is_relative_to(mount):
                yield here
                here = here.parent


def _unified(root: Path) -> Iterator[Path]:
    for mount in (root / "sys/fs/cgroup", root / "sys/fs/cgroup/unified"):
        if (mount / "cgroup.controllers").exists():
            yield mount


def _tightest(folders: Iterator[Path], limit: Callable[[Path], float]) -> tuple[Path | None, float]:
    found: list[tuple[float, Path | None]] = [(value, folder) for folder in folders if (value := limit(folder))]
    value, folder = min(found, key=lambda one: one[0], default=(0.0, None))
    return folder, value


def _quota(folder: Path) -> float:
    """Cores; 0 for no limit."""
    words = text_of(folder / "cpu.max").split()
    if len(words) == 2 and words[0].isdigit() and words[1].isdigit() and int(words[1]):
        return int(words[0]) / int(words[1])
    quota, period = number_in(folder / "cpu.cfs_quota_us"), number_in(folder / "cpu.cfs_period_us")
    return quota / period if quota > 0 and period > 0 else 0.0


def _memory_limit(folder: Path) -> float:
    limit = number_in(folder / "memory.max", 0) or number_in(folder / "memory.limit_in_bytes", 0)
    return float(limit) if 0 < limit < _MOST_BYTES else 0.0


def resident_bytes(root: Path) -> int:
    """Memory of this process; 0 where the system does not say."""
    return _resident(root)[0]


def unmapped_bytes(root: Path) -> int:
    """The same without files that are mapped and memory that processes share."""
    resident, shared = _resident(root)
    return resident - shared


def _resident(root: Path) -> tuple[int, int]:
    """All that is resident, and its part of files and of memory that is shared."""
    fields = text_of(root / "proc/self/statm").split()[1:3]
    if len(fields) < 2 or not all(field.isdigit() for field in fields):
        return 0, 0
    resident, shared = (int(field) * os.sysconf("SC_PAGE_SIZE") for field in fields)
    return resident, shared


def available_bytes(root: Path = Path("/")) -> int:
    """Memory that can be had without swapping, on the host and in a container; much where that is not known."""
    words = text_of(root / "proc/meminfo").partition("MemAvailable:")[2].split()
    on_host = int(words[0]) << 10 if words and words[0].isdigit() else 1 << 62
    return min([on_host, *free_in_groups(root)])

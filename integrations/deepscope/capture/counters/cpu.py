"""How much the cores are in use, from /proc/stat (proc(5))."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from deepscope.capture.counters.source import KernelFile, NoSensorError, Series

__all__ = ["Cores", "ticks_per_second"]

MOST_CORES = 256
"""That have a series of their own."""


def ticks_per_second() -> int:
    """In what the kernel counts CPU time."""
    return os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


class Cores:
    """All cores together, and each one."""

    def __init__(self, root: Path) -> None:
        self._file = KernelFile(root / "proc/stat")
        self._names = [line.split(None, 1)[0] for line in self._lines()]
        if not self._names:
            self._file.close()
            raise NoSensorError("/proc/stat tells of no cores")
        percent = 100 / ticks_per_second()
        cores = [name[3:].decode() for name in self._names[1:]][:MOST_CORES]
        of_all = percent / max(len(self._names) - 1, 1)
        self.count = len(self._names) - 1
        self.series = [
            Series("CPU", "all", is_total=True, scale=of_all, most=100),
            Series("CPU", "waiting for I/O", is_total=True, scale=of_all, most=100),
            Series("CPU", "stolen", is_total=True, scale=of_all, most=100),
            *(Series("CPU cores", core, is_total=True, scale=percent, most=100) for core in cores),
        ]

    def _lines(self) -> list[bytes]:
        text = self._file.read()
        return text[: text.find(b"\nintr")].splitlines() if text.startswith(b"cpu") else []

    def read(self) -> Sequence[float]:
        """Ticks in use since the machine started."""
        lines = self._lines()
        user, nice, system, _, waits, irq, soft, stolen = _ticks(lines[0])
        found: list[float] = [user + nice + system + irq + soft + stolen, waits, stolen]
        if len(lines) != len(self._names):  # a core was switched off or on: by name from here on
            by_name = {line.split(None, 1)[0]: line for line in lines}
            lines = [by_name.get(name, b"") for name in self._names]
        for line in lines[1 : MOST_CORES + 1]:
            user, nice, system, _, _, irq, soft, stolen = _ticks(line)
            found.append(user + nice + system + irq + soft + stolen if line else float("nan"))
        return found

    def close(self) -> None:
        """Lets go of the file."""
        self._file.close()


def _ticks(line: bytes) -> list[int]:
    """User, nice, system, idle, waiting for I/O, interrupts, soft interrupts, stolen: guests are in user's already."""
    found = [int(word) for word in line.split()[1:9]]
    return found + [0] * (8 - len(found))

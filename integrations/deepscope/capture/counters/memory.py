"""Memory of the machine and of this process, from /proc/meminfo and /proc/self/statm (proc(5))."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from deepscope.capture.counters.source import KernelFile, NoSensorError, Series, text_of

__all__ = ["MainMemory", "resident_bytes"]

_KIB = 1024


class MainMemory:
    """Memory and swap."""

    series = (
        Series("memory", "used"),
        Series("memory", "process"),
        Series("memory", "swap", may_vanish=True),
    )

    def __init__(self, root: Path) -> None:
        self._machine = KernelFile(root / "proc/meminfo")
        try:
            self._process = KernelFile(root / "proc/self/statm")
        except NoSensorError:
            self._machine.close()
            raise
        self._page = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096

    def read(self) -> Sequence[float]:
        """Bytes."""
        found = dict(line.split(b":", 1) for line in self._machine.read().splitlines() if b":" in line)
        total, available = _kib(found, b"MemTotal"), _kib(found, b"MemAvailable")
        swap = _kib(found, b"SwapTotal") - _kib(found, b"SwapFree")
        resident = int(self._process.read().split()[1])
        return (total - available) * _KIB, resident * self._page, swap * _KIB

    def close(self) -> None:
        """Lets go of the files."""
        self._machine.close()
        self._process.close()


def resident_bytes(root: Path) -> int:
    """Memory of this process; 0 where it is not told."""
    fields = text_of(root / "proc/self/statm").split()
    page = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
    return int(fields[1]) * page if len(fields) > 1 and fields[1].isdigit() else 0


def _kib(found: dict[bytes, bytes], name: bytes) -> int:
    return int(found.get(name, b"0").split()[0])

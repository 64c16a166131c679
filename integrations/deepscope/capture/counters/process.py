"""CPU time and page faults of this process, from /proc/self/stat (proc(5)): of all its threads, of no child."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from deepscope.capture.counters.cpu import ticks_per_second
from deepscope.capture.counters.source import KernelFile, Series

__all__ = ["ThisProcess"]


class ThisProcess:
    """What the process uses."""

    series = (
        Series(
            "process CPU", "process", is_total=True, scale=100 / ticks_per_second(), most=100 * (os.cpu_count() or 1)
        ),
        Series("page faults", "minor", is_total=True),
        Series("page faults", "major", is_total=True),
    )

    def __init__(self, root: Path) -> None:
        self._file = KernelFile(root / "proc/self/stat")

    def read(self) -> Sequence[float]:
        """Ticks, and faults since it started."""
        # The second field is the program's name, which may hold spaces and brackets.
        fields = self._file.read().rpartition(b")")[2].split()
        return int(fields[11]) + int(fields[12]), int(fields[7]), int(fields[9])

    def close(self) -> None:
        """Lets go of the file."""
        self._file.close()

"""How busy disks are and what they read and write, from /proc/diskstats.

https://docs.kernel.org/admin-guide/iostats.html
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path

from deepscope.capture.counters.source import KernelFile, NoSensorError, Series

__all__ = ["Disks"]

MOST_DISKS = 16
_SECTOR = 512
"""Bytes, whatever the disk's own sectors are."""
_NO_DISK = re.compile(r"(loop|ram|zram|sr|fd)\d+$")
_NAN = float("nan")


class Disks:
    """Whole disks that have been used since the machine started, those with most traffic first."""

    def __init__(self, root: Path) -> None:
        self._file = KernelFile(root / "proc/diskstats")
        whole = {path.name.replace("!", "/") for path in (root / "sys/block").glob("*")}
        found = {name: int(fields[2]) + int(fields[6]) for name, fields in self._fields().items() if name in whole}
        used = [name for name, sectors in found.items() if sectors and not _NO_DISK.match(name)]
        self._names = sorted(used, key=lambda name: -found[name])[:MOST_DISKS]
        if not self._names:
            self._file.close()
            raise NoSensorError("no disk of this machine can be seen from here")
        self.series = [
            Series(track, name, is_total=True, scale=scale, most=100 if track == "disk busy" else math.inf)
            for name in self._names
            for track, scale in (
                ("disk busy", 0.1),  # from milliseconds in a second to percent
                ("disk queue", 0.001),  # milliseconds of all requests in a second: how many there were at a time
                ("disk requests", 1),
                ("disk read", _SECTOR),
                ("disk written", _SECTOR),
            )
        ]

    def _fields(self) -> dict[str, list[bytes]]:
        rows = (line.split() for line in self._file.read().splitlines())
        return {row[2].decode(errors="replace"): row[3:] for row in rows if len(row) >= 14}

    def read(self) -> Sequence[float]:
        """Milliseconds, requests and sectors since the machine started."""
        fields = self._fields()
        found: list[float] = []
        for name in self._names:
            row = fields.get(name)
            if row is None:  # a disk that was pulled out
                found += [_NAN] * 5
            else:
                found += [int(row[9]), int(row[10]), int(row[0]) + int(row[4]), int(row[2]), int(row[6])]
        return found

    def close(self) -> None:
        """Lets go of the file."""
        self._file.close()
